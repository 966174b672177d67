package statesync_test

import (
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

// TestRest has an object that came to rest sent as often as it was while it moved, until its final state is acked.
func TestRest(t *testing.T) {
	for _, rest := range []string{"", "Burning"} {
		cfg := config
		cfg.Rest, cfg.Budget = rest, 120
		s, r := pair(t, schema(t), cfg)
		row := func(speed, sleeps int32) []int32 {
			return []int32{50, 60, 70, 3, 0, 0, 0, speed, 0, 0, 0, 0, 0, 0, sleeps}
		}
		sent := 0
		tick := int64(0)
		packet := func(mine []int32, lost, acked bool) {
			set := schema(t).NewSet()
			if err := set.Add(snapshot.Object{ID: 0}, mine); err != nil {
				t.Fatal(err)
			}
			for id := uint16(1); id < 60; id++ { // others move, and matter more than one at rest
				x := int32(id) * int32(tick) * 7 % 60000
				if err := set.Add(snapshot.Object{ID: id}, []int32{x, -x, x, 3, 0, 0, 0, x, x, 9, 9, 9, 9, 0, 0}); err != nil {
					t.Fatal(err)
				}
				_ = s.Prioritize(id, 10)
			}
			p := 100.
			if mine[7] == 0 {
				p = .01
			}
			_ = s.Prioritize(0, p)
			out, info, err := s.Append(nil, tick, set)
			if err != nil {
				t.Fatal(err)
			}
			tick++
			if slices.Contains(info.Objects, 0) {
				sent++
			}
			if !lost {
				if _, err := r.Decode(out); err != nil {
					t.Fatal(err)
				}
			}
			if acked {
				if err := s.Ack(r.Ack()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 30 {
			packet(row(500, 0), false, true)
		}
		moving := sent
		sent = 0
		for range 30 { // nothing gets through
			packet(row(0, 1), true, true)
		}
		if sent < moving*9/10 || moving < 10 {
			t.Errorf("rest %q: sent %d times in 30 packets while it moved, %d times once at rest", rest, moving, sent)
		}
		for range 20 {
			packet(row(0, 1), false, true)
		}
		sent = 0
		for range 100 {
			packet(row(0, 1), false, true)
		}
		if sent > 2 {
			t.Errorf("rest %q: sent %d times after its rest was acked", rest, sent)
		}
	}
}

// TestGone has the receiver told that an object is gone, whatever is lost, and not again once it is known.
func TestGone(t *testing.T) {
	s, r := pair(t, schema(t), config)
	set := still(t, schema(t), 10)
	for id := range 10 {
		_ = s.Prioritize(uint16(id), 1)
	}
	first, _, err := s.Append(nil, 0, set) // in flight while the objects go
	if err != nil {
		t.Fatal(err)
	}
	set = still(t, schema(t), 7)
	told, decoded := map[uint16]int{}, false
	for tick := int64(1); tick < 400; tick++ {
		_ = s.Prioritize(9, 1) // the game has not noticed
		_ = s.Prioritize(0, 1)
		out, info, err := s.Append(nil, tick, set)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(info.Objects, 9) && info.Gone == 0 {
			t.Fatalf("an object that is no more was sent: %+v", info)
		}
		if tick < 80 && tick%3 > 0 || tick < 70 { // 70 packets are lost, more than the ring has
			continue
		}
		u, err := r.Decode(out)
		if err != nil {
			t.Fatal(err)
		}
		if tick == 72 { // what was in flight before all of that
			_, err := r.Decode(first)
			decoded = err == nil
		}
		for _, o := range u.Objects {
			if o.Gone {
				told[o.ID]++
			}
		}
		if tick%4 == 0 {
			if err := s.Ack(r.Ack()); err != nil {
				t.Fatal(err)
			}
		}
		if tick > 100 && info.Gone > 0 {
			t.Fatalf("tick %d: told again: %+v", tick, info)
		}
	}
	if len(told) != 3 || told[7] == 0 || told[8] == 0 || told[9] == 0 || decoded {
		t.Errorf("told %v; the old packet was taken: %v", told, decoded)
	}
}
