package ds

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// cube is a recorded cube as a game would declare it.
type cube struct {
	Rotation    schema.Quat `uplink:"bits=10"`
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-256,max=255.99"`
	Interacting bool
}

// recorded gives the frames of a recording.
func recorded(t testing.TB, name string) [][]cube {
	t.Helper()
	frames, err := cubes.Load("../testdata/traces/" + name)
	must(t, err)
	out := make([][]cube, len(frames))
	for n := range frames {
		for i := range frames[n] {
			c := &frames[n][i]
			out[n] = append(out[n], cube{c.Orientation(), c.Meters(), c.Interacting != 0})
		}
	}
	return out
}

// nowhere is a carrier that keeps what it gets last.
type nowhere struct{ last []byte }

func (n *nowhere) Send(b []byte) error         { n.last = append(n.last[:0], b...); return nil }
func (n *nowhere) SendReliable(b []byte) error { n.last = append(n.last[:0], b...); return nil }
func (n *nowhere) Unacked() int                { return 0 }

// reel is a world of recorded cubes, played forth and back.
type reel struct {
	t      testing.TB
	frames [][]cube
	world  *World[cube]
	tick   uint64
}

// next makes a tick of the next frame, and gives it.
func (r *reel) next() []cube {
	r.tick++
	must(r.t, r.world.Begin(r.tick))
	frame := r.frames[bounce(r.tick, uint64(len(r.frames)))]
	for i := range frame {
		if err := r.world.Put(uint16(i), 0, &frame[i]); err != nil {
			r.t.Fatal(err)
		}
	}
	r.world.Commit()
	return frame
}

// send sends the tick to so many players.
func (r *reel) send(players int) {
	n, err := r.world.Send()
	must(r.t, err)
	if n != players {
		r.t.Fatalf("tick %d was sent to %d of %d", r.tick, n, players)
	}
}

// join has another player get the world in a way, and say that it is ready.
func (r *reel) join(b *bench, link carrier, way func(*Player) way) *downstream {
	p := b.join(0).player
	d := &downstream{player: p, link: link, source: r.world.common(), way: way(p)}
	p.downs().list[0] = d
	r.world.common().join(d)
	p.receiveReply(control.AppendReply(nil, 0, control.Ready)[1:], &arrival{reliable: true})
	return d
}

// crowd is a reel and players who ack each snapshot some ticks later.
type crowd struct {
	reel
	players []*downstream
	ack     []byte
}

// ackedAfter is how many ticks after a snapshot its ack comes: a round trip of 100 ms at 60 Hz.
const ackedAfter = 6

func newCrowd(t testing.TB, frames [][]cube, players int) *crowd {
	t.Helper()
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	w, err := NewWorld(b.srv, "cubes", WorldConfig[cube]{Initial: func(put func(uint16, uint8, *cube) error) error {
		for i := range frames[0] {
			if err := put(uint16(i), 0, &frames[0][i]); err != nil {
				return err
			}
		}
		return nil
	}})
	must(t, err)
	c := &crowd{reel: reel{t: t, frames: frames, world: w}}
	for range players {
		c.join(b, &nowhere{})
	}
	return c
}

// join adds a player that is ready.
func (c *crowd) join(b *bench, link carrier) *downstream {
	d := c.reel.join(b, link, func(p *Player) way { return &snapshotWay{world: &c.world.w, player: p} })
	c.players = append(c.players, d)
	return d
}

// step makes a tick, sends it, and acks an older one.
func (c *crowd) step() {
	c.next()
	c.send(len(c.players))
	if c.tick <= ackedAfter {
		return
	}
	newest := c.tick - 1 - ackedAfter // snapshots count from 0
	a := snapshot.Ack{Newest: uint16(newest), Window: 1<<min(newest, 63) - 1}
	c.ack = a.Append(append(c.ack[:0], 0))
	for _, d := range c.players {
		d.player.receiveDownAck(c.ack, time.Time{})
	}
}

// bounce goes from 0 to n-1 and back, for ever: a recording without a jump.
func bounce(tick, n uint64) uint64 {
	if at := tick % (2*n - 2); at < n {
		return at
	}
	return 2*n - 2 - tick%(2*n-2)
}

// BenchmarkWorldTick is a tick of a world of 901 recorded cubes at 60 Hz that goes to many players, each with baselines
// of its own: quantizing it once, coding it for each, and taking each one's ack. Sending datagrams is not in it.
func BenchmarkWorldTick(b *testing.B) {
	frames := recorded(b, "cubes_delta_data_2000.bin.gz")[900:1000] // the player rolls through heaps of cubes
	world := int64(0)
	for _, players := range []int{0, 1, 16, 64} {
		b.Run(fmt.Sprintf("players=%d", players), func(b *testing.B) {
			before := heap()
			c := newCrowd(b, frames, players)
			for range 100 {
				c.step()
			}
			memory := heap() - before
			b.ReportAllocs()
			for b.Loop() {
				c.step()
			}
			st := c.world.Stats()
			if players == 0 {
				world = memory
				b.ReportMetric(float64(memory)/1024, "KiB/world")
			} else {
				b.ReportMetric(float64(memory-world)/float64(players)/1024, "KiB/player")
				b.ReportMetric(float64(st.Bytes)/float64(st.Messages), "bytes/snapshot")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(players), "us/player")
			}
			runtime.KeepAlive(c)
		})
	}
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestWorldTickAllocatesNothing, nor does taking acks.
func TestWorldTickAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := newCrowd(t, recorded(t, "cubes_delta_data_120.bin.gz"), 9)
	for range 150 {
		c.step()
	}
	if n := testing.AllocsPerRun(100, c.step); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
	if st := c.world.Stats(); st.Acked != 9*(c.tick-ackedAfter) || st.InvalidAcks != 0 || st.BaselineAge != ackedAfter+1 {
		t.Errorf("%d ticks, counted %+v", c.tick, st)
	}
}

// TestWorldMemory: what a player costs does not grow with their number.
func TestWorldMemory(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("memory is measured in whole")
	}
	frames := recorded(t, "cubes_delta_data_120.bin.gz")
	measure := func(players int) float64 {
		before := heap()
		c := newCrowd(t, frames, players)
		for range 100 {
			c.step()
		}
		n := float64(heap() - before)
		runtime.KeepAlive(c)
		return n
	}
	none, four, sixteen := measure(0), measure(4), measure(16)
	each, later := (four-none)/4, (sixteen-four)/12
	t.Logf("%.0f KiB a world, %.0f KiB a player of 4, %.0f of 16", none/1024, each/1024, later/1024)
	if later > 1.1*each || each > 2<<20 {
		t.Errorf("a player takes %.0f bytes of 4, %.0f of 16", each, later)
	}
}

// TestNobodyCostsNothing: a player to whom nothing is offered has nothing for it.
func TestNobodyCostsNothing(t *testing.T) {
	c := newCrowd(t, recorded(t, "cubes_delta_data_120.bin.gz"), 0)
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	s := b.join(0)
	s.call()
	c.step()
	s.player.stopDowns()
	if s.player.down.Load() != nil {
		t.Error("it has downstreams")
	}
}
