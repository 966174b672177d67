package statesync_test

import (
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

const (
	players = 16
	// budget is the size in bytes of packets at 256 kbit/s and 60 Hz, without headers.
	budget = 486
)

// ackDelay is the round trip of a player in ticks: 20 to 200 ms.
func ackDelay(player int) int64 { return 1 + int64(player*11/(players-1)) }

// worldServer sends the cubeStream to several players of a World.
type worldServer struct {
	t       testing.TB
	world   *statesync.Shared
	senders []*statesync.Sender
	buf     []byte
	deaf    bool            // no ack comes
	times   []time.Duration // of a player's part, if it has room
}

func newWorldServer(t testing.TB, q *snapshot.Type[cube]) *worldServer {
	cfg := statesync.Config{Velocities: velocities(t, q), Budget: budget}
	w, err := statesync.NewShared(q.Schema(), cfg)
	must(t, err)
	v := &worldServer{t: t, world: w, buf: make([]byte, 0, budget)}
	for range players {
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

// BenchmarkPlayers measures the senders of a World, as medians: the World's part of a tick, and the
// part of one player.
func BenchmarkPlayers(b *testing.B) {
	q, sets := recorded(b)
	before := allocs.Heap()
	v := newWorldServer(b, q)
	tick := int64(0)
	for ; tick < int64(3*len(sets)); tick++ {
		v.setTick(tick, sets[tick%int64(len(sets))])
		v.send(tick)
	}
	bytes := allocs.Heap() - before
	v.times = make([]time.Duration, 0, 1<<16)
	var once []time.Duration
	for b.Loop() {
		tick++
		start := time.Now()
		v.setTick(tick, sets[tick%int64(len(sets))])
		once = append(once, time.Since(start))
		v.send(tick)
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Nanoseconds())
	}
	b.ReportMetric(median(once), "world-ns")
	b.ReportMetric(median(v.times), "ns/player")
	b.ReportMetric(float64(bytes)/players/1024, "KiB/player")
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
