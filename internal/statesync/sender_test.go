package statesync_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// still returns a set of n objects at rest.
func still(t testing.TB, s *snapshot.Schema, n int) *snapshot.Set {
	set := s.NewSet()
	for id := range n {
		must(t, set.Add(snapshot.Object{ID: uint16(id)}, []int32{int32(id) * 100, 5, 7, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}))
	}
	return set
}

func TestBudget(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 40)
	must(t, s.Prioritize(0, 1))
	must(t, s.SetBudget(9))
	out, _, err := s.Append([]byte("x"), 1, set)
	if !errors.Is(err, statesync.ErrBudget) || string(out) != "x" || !strings.Contains(err.Error(), "takes a packet of") {
		t.Fatalf("got %q, %v", out, err)
	}
	for tick, budget := range []int{60, 533, 90, 1024, 64} {
		must(t, s.SetBudget(budget))
		out, info := send(t, s, int64(tick+1), set)
		if len(out) > budget || len(info.Objects) == 0 {
			t.Fatalf("%d bytes with %d objects of a budget of %d", len(out), len(info.Objects), budget)
		}
		if budget < 300 && len(out) < budget-25 {
			t.Errorf("%d bytes of a budget of %d", len(out), budget)
		}
		decode(t, r, out)
	}
	for _, bad := range []int{0, -1, statesync.MaxPacket + 1} {
		if s.SetBudget(bad) == nil {
			t.Errorf("a budget of %d was taken", bad)
		}
	}
}

// TestLargeInputs sends inputs that fill the budget: updates are sent too.
func TestLargeInputs(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 5)
	must(t, s.SetBudget(60))
	for tick := range int64(20) {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(tick*int64(i) ^ 0x5a)
		}
		must(t, s.AddInputs(tick, statesync.Input{Data: data}))
		_ = s.Prioritize(uint16(tick%5), 1)
		out, info, err := s.Append(nil, tick, set)
		if err != nil || len(info.Objects) != 1 {
			t.Fatalf("%+v, %v", info, err)
		}
		decode(t, r, out)
	}
}

func TestTicks(t *testing.T) {
	s, _ := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 3)
	for _, c := range []struct {
		tick int64
		ok   bool
	}{{100, true}, {100, false}, {99, false}, {101, true}, {1 << 40, true}, {math.MaxInt64, false}, {5, false}, {1<<40 + 1, true}} {
		_, _, err := s.Append(nil, c.tick, set)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, statesync.ErrTick) {
			t.Errorf("tick %d gave %v", c.tick, err)
		}
	}
	must(t, s.AddInputs(7))
	if err := s.AddInputs(7); !errors.Is(err, statesync.ErrTick) {
		t.Errorf("inputs of the same tick gave %v", err)
	}
	if s.AddInputs(8, statesync.Input{Player: 2}, statesync.Input{Player: 2}) == nil ||
		s.AddInputs(8, statesync.Input{Data: make([]byte, 256)}) == nil {
		t.Error("bad inputs were taken")
	}
}

func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("pools allocate under the race detector")
	}
	w := newWorld(t, 3, 64)
	w.churn = 1 << 30
	s, r := pair(t, w.schema, config)
	s.SetViewer(0)
	set := w.schema.NewSet()
	buf, tick := make([]byte, 0, 2000), int64(0)
	input := statesync.Input{Player: 1, Data: []byte{1, 2, 3}}
	inputs := []statesync.Input{input}
	once := func() {
		tick++
		for i, x := range w.things {
			if x.step(); i%16 == int(tick%16) {
				x.speed[i%3] = float64(tick*int64(i)%9000) - 4500
			}
		}
		w.fill(t, set)
		for i := range set.Len() {
			must(t, s.Prioritize(set.Object(i).ID, 1))
		}
		input.Data[0] = byte(tick / 4)
		must(t, s.AddInputs(tick, inputs...))
		out, _, err := s.Append(buf, tick, set)
		must(t, err)
		decode(t, r, out)
		if tick%3 == 0 {
			ack := r.Ack()
			must(t, s.Ack(ack))
		}
	}
	for range 300 {
		once()
	}
	if n := allocs.PerRun(200, once); n != 0 {
		t.Errorf("%g allocations a packet", n)
	}
}

// TestRelativePlaces checks that positions relative to the viewer take fewer bits, and deltas far
// fewer.
func TestRelativePlaces(t *testing.T) {
	set := still(t, testSchema(t), 200)
	updates := func(viewer, acks bool) (first, later int) {
		s, r := pair(t, testSchema(t), statesync.Config{Velocities: config.Velocities, Budget: 300})
		if viewer {
			s.SetViewer(0)
		}
		for tick := range int64(30) {
			out, info := send(t, s, tick, set)
			if acks {
				deliver(t, s, r, out)
			}
			if later = len(info.Objects); tick == 0 {
				first = later
			}
		}
		return first, later
	}
	far, same := updates(false, false)
	near, _ := updates(true, false)
	_, deltas := updates(true, true)
	if near < far*11/10 || same < far-1 || same > far+1 || deltas < 5*far {
		t.Errorf("%d objects with places whole, %d then, %d from the viewer's, %d as deltas", far, same, near, deltas)
	}
}

func TestBadConfigs(t *testing.T) {
	link := func(field, of string, per int64) statesync.Config {
		return statesync.Config{Velocities: []schema.Velocity{{Field: field, Of: of, PerTick: per}}}
	}
	for _, c := range []statesync.Config{
		link("Position", "Speed", 1),
		link("Position", "Team", 1), link("Position", "Position", 1), link("Team", "Velocity", 1),
		link("Position", "Velocity", 0), link("Position", "Velocity", 1<<31+1), link("Rotation", "Spin", schema.RadiansPerTick(15)),
		{Velocities: append([]schema.Velocity{{Field: "Velocity", Of: "Spin", PerTick: 1}}, config.Velocities...)},
		{Velocities: []schema.Velocity{config.Velocities[0], {Field: "Velocity", Of: "Spin", PerTick: 1}}},
		{Rest: "Position"},
		{Rest: "?"},
		{Budget: -1},
		{Budget: 1 << 20},
		{Ticks: 33},
		{Ticks: -1},
	} {
		if _, err := newSender(testSchema(t), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// TestRest checks that an object that came to rest is sent as often as before until its final state
// is acked.
func TestRest(t *testing.T) {
	for _, rest := range []string{"", "Burning"} {
		cfg := config
		cfg.Rest, cfg.Budget = rest, 120
		s, r := pair(t, testSchema(t), cfg)
		tick := int64(0)
		play := func(packets int, speed, sleeps int32, lost bool) (sent int) {
			for range packets {
				set := testSchema(t).NewSet()
				must(t, set.Add(snapshot.Object{}, []int32{50, 60, 70, 3, 0, 0, 0, speed, 0, 0, 0, 0, 0, 0, sleeps}))
				for id := uint16(1); id < 60; id++ { // others move, and matter more than one at rest
					x := int32(id) * int32(tick) * 7 % 60000
					must(t, set.Add(snapshot.Object{ID: id}, []int32{x, -x, x, 3, 0, 0, 0, x, x, 9, 9, 9, 9, 0, 0}))
					must(t, s.Prioritize(id, 10))
				}
				must(t, s.Prioritize(0, max(.01, float64(speed)/5)))
				out, info, err := s.Append(nil, tick, set)
				must(t, err)
				tick++
				if slices.Contains(info.Objects, 0) {
					sent++
				}
				if !lost {
					decode(t, r, out)
				}
				must(t, s.Ack(r.Ack()))
			}
			return sent
		}
		moving := play(30, 500, 0, false)
		if resting := play(30, 0, 1, true); resting < moving*9/10 || moving < 10 {
			t.Errorf("rest %q: sent %d times in 30 packets while it moved, %d times once at rest", rest, moving, resting)
		}
		play(20, 0, 1, false)
		if sent := play(100, 0, 1, false); sent > 2 {
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

// TestSharedWorld checks that the senders of a world do not affect each other: each one's packets
// are those of a sender with a world of its own.
func TestSharedWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), 64)
		w.churn = rapid.IntRange(16, 300).Draw(rt, "churn")
		shared, err := statesync.NewShared(w.schema, config)
		must(rt, err)
		type player struct {
			s   *statesync.Sender
			own *sender
			r   *statesync.Receiver
		}
		var players []player
		for i, budget := range rapid.SliceOfN(rapid.IntRange(8, 400), 2, 3).Draw(rt, "budgets") {
			cfg := config
			cfg.Budget = budget
			p := player{}
			p.s, err = shared.NewSender(cfg)
			must(rt, err)
			p.own, p.r = pair(t, w.schema, cfg)
			p.s.SetViewer(uint16(i * 7))
			p.own.SetViewer(uint16(i * 7))
			players = append(players, p)
		}
		set := w.schema.NewSet()
		for tick := range int64(60) {
			w.step()
			w.fill(t, set)
			must(rt, shared.SetTick(tick, set))
			for i, p := range players {
				for k := range set.Len() {
					must(rt, p.s.Prioritize(set.Object(k).ID, float64(1+k%3)))
					must(rt, p.own.Prioritize(set.Object(k).ID, float64(1+k%3)))
				}
				got, _, err := p.s.Append(nil)
				want, _, ownErr := p.own.Append(nil, tick, set)
				if !bytes.Equal(got, want) || errors.Is(err, statesync.ErrBudget) != errors.Is(ownErr, statesync.ErrBudget) {
					rt.Fatalf("packet %d of player %d is %x (%v), want %x (%v)", tick, i, got, err, want, ownErr)
				}
				if err == nil && w.r.IntN(4) > 0 {
					decode(rt, p.r, got)
					must(rt, p.s.Ack(p.r.Ack()))
					must(rt, p.own.Ack(p.r.Ack()))
				}
			}
		}
	})
}
