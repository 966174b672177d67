package statesync_test

import (
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

// TestRest checks that an object that came to rest is sent as often as before until its final state
// is acked.
func TestRest(t *testing.T) {
	for _, rest := range []string{"", "Burning"} {
		cfg := config
		cfg.Rest, cfg.Budget = rest, 120
		s, r := pair(t, testSchema(t), cfg)
		row := func(speed, sleeps int32) []int32 {
			return []int32{50, 60, 70, 3, 0, 0, 0, speed, 0, 0, 0, 0, 0, 0, sleeps}
		}
		sent := 0
		tick := int64(0)
		packet := func(mine []int32, lost, acked bool) {
			set := testSchema(t).NewSet()
			must(t, set.Add(snapshot.Object{ID: 0}, mine))
			for id := uint16(1); id < 60; id++ { // others move, and matter more than one at rest
				x := int32(id) * int32(tick) * 7 % 60000
				must(t, set.Add(snapshot.Object{ID: id}, []int32{x, -x, x, 3, 0, 0, 0, x, x, 9, 9, 9, 9, 0, 0}))
				_ = s.Prioritize(id, 10)
			}
			p := 100.
			if mine[7] == 0 {
				p = .01
			}
			_ = s.Prioritize(0, p)
			out, info, err := s.Append(nil, tick, set)
			must(t, err)
			tick++
			if slices.Contains(info.Objects, 0) {
				sent++
			}
			if !lost {
				decode(t, r, out)
			}
			if acked {
				must(t, s.Ack(r.Ack()))
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

// TestGone checks that removals arrive despite losses, and are not repeated once acked.
func TestGone(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 10)
	for id := range 10 {
		_ = s.Prioritize(uint16(id), 1)
	}
	first, _, err := s.Append(nil, 0, set) // in flight while the objects go
	must(t, err)
	set = still(t, testSchema(t), 7)
	told, decoded := map[uint16]int{}, false
	for tick := int64(1); tick < 400; tick++ {
		_ = s.Prioritize(9, 1) // the game has not noticed
		_ = s.Prioritize(0, 1)
		out, info, err := s.Append(nil, tick, set)
		must(t, err)
		if slices.Contains(info.Objects, 9) && info.Gone == 0 {
			t.Fatalf("an object that is no more was sent: %+v", info)
		}
		if tick < 80 && tick%3 > 0 || tick < 70 { // 70 packets are lost, more than the ring has
			continue
		}
		u := decode(t, r, out)
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
			must(t, s.Ack(r.Ack()))
		}
		if tick > 100 && info.Gone > 0 {
			t.Fatalf("tick %d: told again: %+v", tick, info)
		}
	}
	if len(told) != 3 || told[7] == 0 || told[8] == 0 || told[9] == 0 || decoded {
		t.Errorf("told %v; the old packet was taken: %v", told, decoded)
	}
}

// TestNoPriority checks that an object without a priority is never sent. One whose priority becomes
// 0 is sent at most once for its sum, and once more when it comes to rest.
func TestNoPriority(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	tick, sent := int64(0), map[uint16]int{}
	play := func(ticks int, priority float64, speed int32) {
		clear(sent)
		for range ticks {
			set := testSchema(t).NewSet()
			for id := range uint16(3) {
				row := []int32{int32(tick) % 1000 * speed, 0, 0, 3, 0, 0, 0, speed, 0, 0, 0, 0, 0, 0, 0}
				must(t, set.Add(snapshot.Object{ID: id}, row))
			}
			_ = s.Prioritize(1, priority)
			_ = s.Prioritize(2, 1)
			out, info, err := s.Append(nil, tick, set)
			must(t, err)
			tick++
			for _, id := range info.Objects {
				sent[id]++
			}
			deliver(t, s, r, out)
		}
	}
	for _, c := range []struct {
		priority    float64
		speed       int32
		least, most int
	}{{1, 50, 50, 50}, {0, 50, 0, 1}, {0, 0, 1, 2}, {0, 0, 0, 0}} {
		play(50, c.priority, c.speed)
		if n := sent[1]; n < c.least || n > c.most || sent[0] != 0 {
			t.Errorf("priority %v, speed %d: sent %d times, want %d to %d; one without any %d times", c.priority, c.speed, n, c.least, c.most, sent[0])
		}
	}
}
