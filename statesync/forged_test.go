package statesync

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// forge makes a packet that refers to nothing, of objects that no sender puts together: of each id and whether it has a
// baseline.
func forge(t *testing.T, p *plan, seq uint64, tick int64, ids []uint16) []byte {
	t.Helper()
	var b book
	b.plan = p
	var w walk
	w.Coder = rangecoder.NewCoder(slowest, false)
	w.init(&b)
	w.out, w.root = &packet{seq: seq, tick: tick}, true
	b.open(w.out)
	w.begin(p.newState())
	h := header{seq: seq, tick: tick}
	w.Enc.Reset(h.append(nil), 0)
	w.viewer(0, false)
	var none inputLog
	w.inputs(&none)
	s := w.out.state
	w.Bit(&s.more[0], false)
	last, ctx := int64(-1), 2
	for _, id := range ids {
		w.Bit(&s.more[ctx], true)
		w.stranger(int64(id), last)
		w.update(w.fresh(id), nil, make([]int32, p.ints))
		last, ctx = int64(id), 3
	}
	w.Bit(&s.more[ctx], false)
	return w.Enc.Finish()
}

// TestForged has the receiver refuse what no sender writes, though each of its parts is right, and take the next packet.
func TestForged(t *testing.T) {
	schema, err := snapshot.NewSchema(snapshot.Field{Name: "Position", Class: schema.ClassNumber, N: 1, Lo: -8, Hi: 7})
	if err != nil {
		t.Fatal(err)
	}
	ids := func(n int) (ids []uint16) {
		for i := range n {
			ids = append(ids, uint16(3*i))
		}
		return ids
	}
	r, err := NewReceiver(schema, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := r.book.plan
	refused := uint64(0)
	for i, c := range []struct {
		what string
		seq  uint64
		tick int64
		ids  []uint16
		ok   bool
	}{
		{"as many updates as there can be", 5, 100, ids(MaxUpdates), true},
		{"one more", 6, 101, ids(MaxUpdates + 1), false},
		{"a later packet of the same tick", 6, 100, ids(1), false},
		{"a later packet of an earlier tick", 6, 99, ids(1), false},
		{"an earlier packet of the same tick", 4, 100, ids(1), false},
		{"an earlier packet of a later tick", 4, 101, ids(1), false},
		{"an earlier packet", 4, 98, ids(1), true},
		{"an object twice", 6, 101, []uint16{3, 3}, false},
		{"objects out of order", 6, 101, []uint16{3, 2}, false},
		{"a later packet", 6, 101, ids(2), true},
	} {
		u, err := r.Decode(forge(t, p, c.seq, c.tick, c.ids))
		if c.ok {
			if err != nil || len(u.Objects) != len(c.ids) || u.Late != (c.seq < 5) || u.First != (i == 0) {
				t.Errorf("%s: %+v, %v", c.what, u, err)
			}
			continue
		}
		if refused++; !errors.Is(err, snapshot.ErrMalformed) || r.Stats().Malformed != refused {
			t.Errorf("%s: %v, %+v", c.what, err, r.Stats())
		}
	}
}
