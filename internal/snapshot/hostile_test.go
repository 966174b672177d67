package snapshot_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/sessions"
	"github.com/uplink-rpc/uplink/internal/uplinktest/steer"
)

// TestRefusals checks the reason for each kind of malformed payload, and that it is not acked.
func TestRefusals(t *testing.T) {
	sc := newScene(t, 3, 4)
	world := snapshot.NewHistory(sc.schema, nil)
	enc := newSender(world)
	sc.fill(t, world.Begin())
	good, _, err := enc.send(nil, 1<<16)
	must(t, err)
	otherHash := append([]byte(nil), good...)
	otherHash[3]++
	for _, c := range []struct {
		name    string
		payload []byte
		want    error
	}{
		{"nothing", nil, malformed.ErrTruncated},
		{"a byte", good[:1], malformed.ErrTruncated},
		{"no flags", good[:2], malformed.ErrTruncated},
		{"half a hash", good[:4], malformed.ErrTruncated},
		{"no distance", []byte{63, 0}, malformed.ErrTruncated},
		{"distance 0 with a hash", []byte{63, 0, 0, 1, 1, 1}, snapshot.ErrMalformed},
		{"distance 63", []byte{63, 0, 63, 1, 1, 1}, snapshot.ErrMalformed},
		{"unknown baseline", []byte{1, 0, 1}, snapshot.ErrBaselineMissing},
		{"unknown baseline, distance 60", []byte{60, 0, 1}, snapshot.ErrBaselineMissing},
		{"unknown baseline, maximum distance", []byte{62, 255}, snapshot.ErrBaselineMissing},
		{"another hash", otherHash, snapshot.ErrDesync},
		{"a byte more", append(append([]byte(nil), good...), 1, 1, 1, 1, 1), malformed.ErrLength},
		{"a zero more", append(append([]byte(nil), good...), 0), malformed.ErrLength},
	} {
		dec := snapshot.NewDecoder(sc.schema, nil)
		if _, _, err := dec.Decode(c.payload); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if a := dec.Ack(); !a.None {
			t.Errorf("%s: acked %+v", c.name, a)
		}
		if _, _, err := dec.Decode(good); err != nil {
			t.Errorf("%s: then a good one: %v", c.name, err)
		}
		if _, _, err := dec.Decode(good); !errors.Is(err, snapshot.ErrLate) {
			t.Errorf("%s: then it again: %v", c.name, err)
		}
	}
}

// TestForgedObjects checks the reason for payloads of objects that no set has, each coded against a
// snapshot that the decoder has too, or another one in its place.
func TestForgedObjects(t *testing.T) {
	ids := func(from, to int) (o []snapshot.Object) {
		for id := from; id < to; id++ {
			o = append(o, snapshot.Object{ID: uint16(id)})
		}
		return o
	}
	row := func(component int, v int32) []int32 {
		r := []int32{0, 3, 0, 0, 0, 0, 0, 0, -1, -1, 0}
		r[component] = v
		return r
	}
	good := row(0, 0)
	s := testSchema(t)
	for _, c := range []struct {
		name           string
		held, base, to []snapshot.Object // in the decoder's baseline, the encoder's, and the payload
		row            []int32
		floor, half    int64
		want           error
	}{
		{"too many objects", nil, nil, ids(0, snapshot.MaxObjects+1), good, 0, 0, malformed.ErrCount},
		{"too many with those of the baseline", ids(0, 10), nil, ids(10, snapshot.MaxObjects+1), good, 0, 0, malformed.ErrCount},
		{"ids that do not ascend", nil, nil, []snapshot.Object{{ID: 7}, {ID: 3}}, good, 0, 0, malformed.ErrID},
		{"an id of the baseline", ids(0, 10), ids(0, 9), ids(0, 10), good, 0, 0, malformed.ErrID},
		{"a new object out of bounds", nil, nil, ids(0, 1), row(5, 5001), 0, 0, malformed.ErrBounds},
		{"a number out of bounds", ids(0, 3), ids(0, 3), ids(0, 3), row(5, 5001), 0, 0, malformed.ErrBounds},
		{"an orientation out of bounds", ids(0, 3), ids(0, 3), ids(0, 3), row(3, -256), 0, 0, malformed.ErrBounds},
		{"an integer out of bounds", ids(0, 3), ids(0, 3), ids(0, 3), row(0, 5), 0, 0, malformed.ErrBounds},
		{"a ground out of bounds", ids(0, 3), ids(0, 3), ids(0, 3), good, 1 << 30, 0, malformed.ErrBounds},
		{"a ground out of bounds below", ids(0, 3), ids(0, 3), ids(0, 3), good, -1 << 30, 0, malformed.ErrBounds},
		{"objects of size -1", ids(0, 3), ids(0, 3), ids(0, 3), good, 0, -1, malformed.ErrBounds},
		{"objects of a size out of bounds", ids(0, 3), ids(0, 3), ids(0, 3), good, 0, 1<<24 + 1, malformed.ErrBounds},
		{"other objects in the baseline", ids(0, 3), ids(0, 300), ids(0, 300), row(5, 5), 0, 0, malformed.ErrLength},
		{"nothing forged", ids(0, 3), ids(0, 3), ids(0, 3), row(5, 5000), 1<<30 - 1, 1 << 24, nil},
	} {
		payloads := func(base, to []snapshot.Object, row []int32, floor, half int64) (p [2][]byte) {
			w := snapshot.NewHistory(s, nil)
			var enc snapshot.Encoder
			for i, objects := range [][]snapshot.Object{base, to} {
				set, r := w.Begin(), good
				if i > 0 {
					r = row
					set.PushPhysics(0, floor, half, 0)
				}
				for _, o := range objects {
					set.Push(o, r)
				}
				var err error
				p[i], _, err = enc.Append(nil, w, snapshot.Baseline{Distance: i}, 1<<20)
				must(t, err)
			}
			return p
		}
		honest, forged := payloads(c.held, c.held, good, 0, 0), payloads(c.base, c.to, c.row, c.floor, c.half)
		dec := snapshot.NewDecoder(s, nil)
		_, _, err := dec.Decode(honest[0])
		must(t, err)
		_, _, err = dec.Decode(forged[1])
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if a := dec.Ack(); err != nil && a.Newest != 0 {
			t.Errorf("%s: acked %+v", c.name, a)
		}
		if _, _, again := dec.Decode(honest[1]); errors.Is(again, snapshot.ErrLate) != (err == nil) {
			t.Errorf("%s: then an honest payload: %v", c.name, again)
		}
	}
}

// TestAnyBytes decodes random bytes behind each kind of header; the stream then recovers.
func TestAnyBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLink(t, rapid.Uint64().Draw(rt, "seed"), 5, nil, nil)
		l.run(40)
		for range 20 {
			head := rapid.SampledFrom([][]byte{{0, 0, 64}, {0, 0, 0}, {0x41, 9}, {0x82, 9}}).Draw(rt, "header")
			noise := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "noise")
			_, _, _ = l.dec.Decode(append(append([]byte(nil), head...), noise...))
		}
		l.run(200)
		l.fresh()
		l.run(60)
		if l.wrong > 0 || l.right < 50 {
			rt.Fatal(l)
		}
	})
}

// TestDoubt checks that the eighth consecutive malformed payload requests a reset.
func TestDoubt(t *testing.T) {
	sc := newScene(t, 3, 4)
	dec, world := snapshot.NewDecoder(sc.schema, nil), snapshot.NewHistory(sc.schema, nil)
	sc.fill(t, world.Begin())
	bad, _, err := newSender(world).send(nil, 1<<16)
	must(t, err)
	bad = append(bad, 0)
	for n := range 8 {
		if a := dec.Ack(); a.Epoch != 0 {
			t.Fatalf("after %d payloads: %+v", n, a)
		}
		if _, _, err := dec.Decode(bad); !errors.Is(err, malformed.ErrLength) {
			t.Fatal(err)
		}
	}
	if a := dec.Ack(); a.Epoch != 1 || !a.None {
		t.Errorf("after eight: %+v", a)
	}
}

// FuzzDecode passes payloads to a decoder that has received the first payloads of a golden session:
// the input has the number of the session, the number of these payloads, and entries. An accepted
// payload is a valid set, in a decoder without the rejected ones too: these have no effect, and the
// next payload of the session decodes after them.
func FuzzDecode(f *testing.F) {
	const history = 16
	var all []sessions.Session
	for _, name := range []string{"cubes", "ground", "kinds", "physics"} {
		all = append(all, sessions.Read(f, "internal/snapshot/testdata/"+name+".session", "send"))
	}
	begin := func(in []byte) (s *sessions.Session, dec *snapshot.Decoder, held int) {
		s = &all[int(in[0])%len(all)]
		dec, held = snapshot.NewDecoder(s.Schemas[0], nil), min(int(in[1])%(history+1), len(s.Messages)-1)
		for _, m := range s.Messages[:held] {
			_, _, _ = dec.Decode(m)
		}
		return s, dec, held
	}
	x := corpus.Target{Parser: "snapshot", Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		if len(in) < 2 {
			return
		}
		s, dec, held := begin(in)
		_, other, _ := begin(in)
		check := func(payload []byte, set *snapshot.Set) {
			valid := s.Schemas[0].NewSet()
			for i := range set.Len() {
				must(t, valid.Add(set.Object(i), set.Row(i)))
			}
			if a := dec.Ack(); a.None {
				t.Fatalf("accepted, and the ack is %+v", a)
			}
			if _, same, err := other.Decode(payload); err != nil || !same.Equal(set) {
				t.Fatalf("%x: accepted, but not without rejected ones before it: %v", payload, err)
			}
		}
		for payload := range entries.All(in[2:]) {
			before := dec.Ack()
			_, set, err := dec.Decode(payload)
			after := dec.Ack()
			after.Epoch = before.Epoch // a new start may have been asked for
			switch {
			case err == nil:
				check(payload, set)
			case errors.Is(err, snapshot.ErrDesync):
				return
			case after != before:
				t.Fatalf("%v, and the ack changes from %+v to %+v", err, before, after)
			}
		}
		if _, set, err := dec.Decode(s.Messages[held]); err == nil {
			check(s.Messages[held], set)
		} else if _, _, wanted := other.Decode(s.Messages[held]); wanted == nil {
			t.Fatalf("the next payload after rejected ones: %v", err)
		}
	}, Results: func(_ testing.TB, in []byte) (line string) {
		if len(in) < 2 {
			return ""
		}
		_, dec, _ := begin(in)
		for m := range entries.All(in[2:]) {
			var h corpus.Hash
			_, set, err := dec.Decode(m)
			if err == nil {
				sessions.AddSet(&h, set)
			}
			line += sessions.Result(err, h)
		}
		return line
	}}
	if steer.Message != nil {
		x.Inputs, x.Generate = 100_000, func(r *rand.Rand) []byte {
			in := []byte{byte(r.IntN(len(all))), byte(r.IntN(history + 1))}
			s, dec, held := begin(in)
			for range 1 + r.IntN(3) {
				m := steer.Message(r, s.Messages[min(held, len(s.Messages)-1)], func(m []byte) { _, _, _ = dec.Decode(m) })
				held++
				in = append(in, entries.Of(m, false)...)
			}
			return in
		}
	}
	x.Run(f)
}
