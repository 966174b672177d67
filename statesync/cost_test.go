package statesync_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// cube is a recorded cube as a game would declare it.
type cube struct {
	Position rpcdelta.Vec3 `rpcdelta:"resolution=0.001953125,min=-256,max=255.99,velocity=Velocity"`
	Velocity rpcdelta.Vec3 `rpcdelta:"resolution=0.03125,min=-64,max=64"`
	Rotation rpcdelta.Quat `rpcdelta:"bits=10"`
}

// recorded are the sets of a piece of the recording, there and back, so that it can go on for ever.
func recorded(t testing.TB) (*statesync.Quantizer[cube], []*snapshot.Set) {
	q := quantizer[cube](t)
	frames, err := cubes.Load("../testdata/traces/cubes_delta_data_2000.bin.gz")
	if err != nil {
		t.Fatal(err)
	}
	frames = frames[900:1000] // the player rolls through heaps of cubes
	n := len(frames)
	var sets []*snapshot.Set
	for tick := range 2*n - 2 {
		at, before := tick, max(tick-1, 0)
		if tick >= n {
			at, before = 2*n-2-tick, 2*n-1-tick
		}
		set := q.Schema().NewSet()
		for i := range frames[at] {
			is, was := frames[at][i].Meters(), frames[before][i].Meters()
			c := cube{
				Position: is, Rotation: frames[at][i].Orientation(),
				Velocity: rpcdelta.Vec3{X: speed(is.X - was.X), Y: speed(is.Y - was.Y), Z: speed(is.Z - was.Z)},
			}
			if err := q.Add(set, snapshot.Object{ID: uint16(i)}, &c); err != nil {
				t.Fatal(err)
			}
		}
		sets = append(sets, set)
	}
	return q, sets
}

func speed(moved float64) float64 { return min(max(moved*cubes.Rate, -64), 64) }

// BenchmarkPacket is a tick of 901 recorded cubes for one player, at 60 Hz and a round trip of 100 ms: priorities, the
// packet, an ack; and with both ends what the client decodes. What the players share, quantizing the cubes, is not in it.
func BenchmarkPacket(b *testing.B) {
	q, sets := recorded(b)
	for _, kbit := range []float64{64, 256} {
		for _, both := range []bool{false, true} {
			b.Run(fmt.Sprintf("kbit=%g/both=%t", kbit, both), func(b *testing.B) {
				before := heap()
				cfg := statesync.Config{Velocities: q.Velocities(), Budget: statesync.BytesPerPacket(kbit, cubes.Rate, 47)}
				s, r := pair(b, q.Schema(), cfg)
				s.SetViewer(0)
				buf, tick := make([]byte, 0, statesync.MaxPacket), int64(0)
				step := func() {
					set := sets[tick%int64(len(sets))]
					for i := range set.Len() {
						if err := s.Prioritize(uint16(i), priority(i, set.Row(i)[3:6])); err != nil {
							b.Fatal(err)
						}
					}
					out, _, err := s.Append(buf, tick, set)
					if err != nil {
						b.Fatal(err)
					}
					if both {
						if _, err := r.Decode(out); err != nil {
							b.Fatal(err)
						}
					}
					if newest := tick - 6; newest >= 0 {
						if err := s.Ack(statesync.Ack{Newest: uint16(newest), Window: 1<<min(newest, 63) - 1}); err != nil {
							b.Fatal(err)
						}
					}
					tick++
				}
				for range 3 * len(sets) {
					step()
				}
				memory := heap() - before
				was := s.Stats()
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
				st := s.Stats()
				n := float64(st.Packets - was.Packets)
				b.ReportMetric(float64(memory)/1024, "KiB")
				b.ReportMetric(float64(st.Bytes-was.Bytes)/n, "bytes/packet")
				b.ReportMetric(float64(st.Updates-was.Updates)/n, "updates/packet")
				runtime.KeepAlive(r)
			})
		}
	}
}

// priority has the player's cube always sent, and what moves before what rests.
func priority(id int, velocity []int32) float64 {
	switch {
	case id == 0:
		return 1_000_000
	case velocity[0] != 0 || velocity[1] != 0 || velocity[2] != 0:
		return 100
	}
	return 1
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
