package statesync

import (
	"errors"
	"math"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// forge encodes a keyframe with the given ids, in an order that no sender uses.
func forge(t *testing.T, p *plan, seq uint64, tick int64, ids []uint16) []byte {
	t.Helper()
	var b sentStore
	b.init(p)
	var pc payloadCodec
	pc.init(p, false)
	pc.sent = &b
	pc.out, pc.keyframe = &packet{seq: seq, tick: tick}, true
	b.open(pc.out)
	pc.begin(p.newState())
	h := header{seq: seq, tick: tick}
	pc.Enc.Reset(h.append(nil), 0)
	pc.codeViewerID(0, false)
	var none inputLog
	pc.codeInputs(&none)
	s := pc.out.state
	pc.Bit(&s.more[0], false)
	last, ctx := int64(-1), 2
	for _, id := range ids {
		pc.Bit(&s.more[ctx], true)
		pc.codeNewID(int64(id), last)
		pc.codeUpdate(pc.newRecord(id), nil, &objectState{row: make([]int32, p.ints), words: make([]uint64, p.packing.Words())})
		last, ctx = int64(id), 3
	}
	pc.Bit(&s.more[ctx], false)
	return pc.Enc.Finish()
}

// TestForged checks that the receiver rejects packets that no sender writes, whose parts are valid.
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
	p := r.store.plan
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

// TestHeaderBounds parses the header of a keyframe with ticks at the ends of their range, and next
// to them, and headers with each distance.
func TestHeaderBounds(t *testing.T) {
	for _, tick := range []int64{0, maxTick, -maxTick, maxTick + 1, -maxTick - 1, math.MaxInt64, math.MinInt64} {
		h := header{tick: tick}
		got, _, err := parseHeader(h.append(nil), 0)
		if valid := tick >= -1<<53 && tick <= 1<<53; (err == nil) != valid || valid && got.tick != tick {
			t.Errorf("tick %d: %+v, %v", tick, got, err)
		}
	}
	for distance := uint64(1); distance < 1<<distanceBits; distance++ {
		h := header{seq: 100, distance: distance}
		if _, _, err := parseHeader(h.append(nil), 100); (err == nil) != (distance <= maxDistance) {
			t.Errorf("distance %d: %v", distance, err)
		}
	}
}
