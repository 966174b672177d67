package statesync_test

import (
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/perplayerstate"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// ackDelay is the round trip in ticks of a player of the comparison: 20 to 200 ms.
func ackDelay(player int) int64 { return 1 + int64(player*11/(comparedPlayers-1)) }

// comparedBudget is the size of packets at 256 kbit/s and 60 Hz, without headers.
const (
	comparedBudget  = 486
	comparedPlayers = 16
)

// worldServer sends the course to several players of a World.
type worldServer struct {
	t       testing.TB
	world   *statesync.World
	senders []*statesync.Sender
	buf     []byte
	deaf    bool            // no ack comes
	times   []time.Duration // of a player's part, if it has room
}

func newWorldServer(t testing.TB, q *statesync.Quantizer[cube]) *worldServer {
	cfg := statesync.Config{Velocities: q.Velocities(), Budget: comparedBudget}
	w, err := statesync.NewWorld(q.Schema(), cfg)
	must(t, err)
	v := &worldServer{t: t, world: w, buf: make([]byte, 0, comparedBudget)}
	for range comparedPlayers {
		s, err := w.NewSender(cfg)
		must(t, err)
		s.SetViewer(0)
		v.senders = append(v.senders, s)
	}
	return v
}

// setTick does what the server does once per tick.
func (v *worldServer) setTick(tick int64, set *snapshot.Set) {
	must(v.t, v.world.SetTick(tick, set))
	for i := range set.Len() {
		must(v.t, v.world.Prioritize(uint16(i), priority(i, set.Row(i)[3:6])))
	}
}

// send sends a packet to each player and processes an ack of each.
func (v *worldServer) send(tick int64) {
	for i, s := range v.senders {
		start := time.Now()
		_, _, err := s.Append(v.buf)
		must(v.t, err)
		if newest := tick - ackDelay(i); newest >= 0 && !v.deaf {
			must(v.t, s.Ack(statesync.Ack{Newest: uint16(newest), Window: 1<<min(newest, 63) - 1}))
		}
		if len(v.times) < cap(v.times) {
			v.times = append(v.times, time.Since(start))
		}
	}
}

// ownServer does the same with senders that share nothing and have models of their own.
type ownServer struct {
	t       testing.TB
	senders []*perplayerstate.Sender
	buf     []byte
	times   []time.Duration
}

func newOwnServer(t testing.TB, q *statesync.Quantizer[cube]) *ownServer {
	v := &ownServer{t: t, buf: make([]byte, 0, comparedBudget)}
	for range comparedPlayers {
		s, err := perplayerstate.NewSender(q.Schema(), perplayerstate.Config{Velocities: q.Velocities(), Budget: comparedBudget})
		must(t, err)
		s.SetViewer(0)
		v.senders = append(v.senders, s)
	}
	return v
}

func (v *ownServer) send(tick int64, set *snapshot.Set) {
	for i, s := range v.senders {
		start := time.Now()
		for k := range set.Len() {
			must(v.t, s.Prioritize(uint16(k), priority(k, set.Row(k)[3:6])))
		}
		_, _, err := s.Append(v.buf, tick, set)
		must(v.t, err)
		if newest := tick - ackDelay(i); newest >= 0 {
			must(v.t, s.Ack(perplayerstate.Ack{Newest: uint16(newest), Window: 1<<min(newest, 63) - 1}))
		}
		if len(v.times) < cap(v.times) {
			v.times = append(v.times, time.Since(start))
		}
	}
}

// BenchmarkPerPlayer compares the senders of a World with senders that share nothing, for the same
// players in turns. Times are medians: of a World's part of a tick, and of the part of one player
// with both; ratio is that of the latter.
func BenchmarkPerPlayer(b *testing.B) {
	q, sets := recorded(b)
	before := allocs.Heap()
	shared := newWorldServer(b, q)
	tick := int64(0)
	for ; tick < int64(3*len(sets)); tick++ {
		set := sets[tick%int64(len(sets))]
		shared.setTick(tick, set)
		shared.send(tick)
	}
	sharedBytes := allocs.Heap() - before
	own := newOwnServer(b, q)
	for tick = range int64(3 * len(sets)) {
		own.send(tick, sets[tick%int64(len(sets))])
	}
	ownBytes := allocs.Heap() - before - sharedBytes
	const calls = 1 << 16
	shared.times, own.times = make([]time.Duration, 0, calls), make([]time.Duration, 0, calls)
	var once []time.Duration
	for b.Loop() {
		tick++
		set := sets[tick%int64(len(sets))]
		start := time.Now()
		shared.setTick(tick, set)
		once = append(once, time.Since(start))
		shared.send(tick)
		own.send(tick, set)
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Nanoseconds())
	}
	b.ReportMetric(median(once), "world-ns")
	b.ReportMetric(median(shared.times), "ns/player")
	b.ReportMetric(median(own.times), "own-ns/player")
	b.ReportMetric(median(shared.times)/median(own.times), "ratio")
	b.ReportMetric(float64(sharedBytes)/comparedPlayers/1024, "KiB/player")
	b.ReportMetric(float64(ownBytes)/comparedPlayers/1024, "own-KiB/player")
}

// TestWorldAllocations checks that a tick allocates nothing once warm.
func TestWorldAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("pools allocate under the race detector")
	}
	q, sets := recorded(t)
	v, tick := newWorldServer(t, q), int64(0)
	once := func() {
		v.setTick(tick, sets[tick%int64(len(sets))])
		v.send(tick)
		tick++
	}
	for range 2 * len(sets) {
		once()
	}
	if n := allocs.PerRun(20, once); n != 0 {
		t.Errorf("%g allocations a tick", n)
	}
}
