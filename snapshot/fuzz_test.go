package snapshot_test

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

// FuzzDecode passes arbitrary bytes to a decoder that has some snapshots. An accepted payload is a
// valid set. A rejected one has no effect: the next payload decodes as in a decoder that did not
// receive it.
func FuzzDecode(f *testing.F) {
	const held, more = 19, 6
	sc := newScene(f, 5, 12)
	world := snapshot.NewWorld(sc.schema, nil)
	enc := snapshot.NewEncoder(sc.schema, world)
	payloads := make([][]byte, 0, held+more)
	prepare := func(t testing.TB) *snapshot.Decoder {
		dec := snapshot.NewDecoder(sc.schema, nil)
		for _, p := range payloads[:min(len(payloads), held)] {
			if _, _, err := dec.Decode(p); err != nil {
				t.Fatal(err)
			}
		}
		return dec
	}
	next := func(enc *snapshot.Encoder) []byte {
		out, _, err := enc.Append(nil, 1<<16)
		must(f, err)
		return out
	}
	dec := prepare(f)
	for n := range held + more {
		sc.step()
		sc.fill(f, world.Begin())
		payloads = append(payloads, next(enc))
		f.Add(payloads[n])
		if n >= held { // of a baseline that is older each time
			continue
		}
		if _, _, err := dec.Decode(payloads[n]); err != nil {
			f.Fatal(err)
		}
		must(f, enc.Ack(dec.Ack()))
	}
	f.Add(next(snapshot.NewEncoder(sc.schema, world))) // without one

	acked := dec.Ack()
	f.Fuzz(func(t *testing.T, payload []byte) {
		seq, set, err := dec.Decode(payload)
		if errors.Is(err, snapshot.ErrDesync) { // nothing is held any more
			dec = prepare(t)
			return
		}
		if err != nil {
			a := dec.Ack()
			a.Epoch = acked.Epoch // a new start may have been asked for
			if a != acked {
				t.Fatalf("a refused payload changed the ack to %+v", a)
			}
			return
		}
		dec = prepare(t)
		again, same, err := dec.Decode(payload)
		if err != nil || again != seq || !same.Equal(set) {
			t.Fatalf("snapshot %d came as %d after others were refused: %v", again, seq, err)
		}
		dec = prepare(t)
		whole(t, sc.schema, set)
	})
}

// whole checks that a decoded set is in order and within bounds.
func whole(t *testing.T, s *snapshot.Schema, got *snapshot.Set) {
	t.Helper()
	again := s.NewSet()
	for i := range got.Len() {
		if err := again.Add(got.Object(i), got.Row(i)); err != nil {
			t.Fatalf("what was decoded is no set: %v", err)
		}
	}
}
