// Package snapbench measures what forms of snapshots take on recorded worlds.
package snapbench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Distance is how many frames before it the baseline of a frame is, and the first frame that is
// counted.
const Distance = 6

// Row is what one form of the frames takes.
type Row struct {
	Form string `json:"form"`
	// Frames that were counted, and Delivered of them.
	Frames    int `json:"frames"`
	Delivered int `json:"delivered"`
	// Bytes a frame, rounded up in each, and Kbits a second of them at 60 Hz.
	Bytes float64 `json:"bytes"`
	Kbits float64 `json:"kbits"`
	// EncodeUs and DecodeUs are the medians of microseconds a frame; 0: not taken.
	EncodeUs float64 `json:"encode_us"`
	DecodeUs float64 `json:"decode_us"`
	// Wrong is how many were rebuilt wrongly.
	Wrong int `json:"wrong"`
}

func (r *Row) finish(bytes int) *Row {
	r.Bytes = float64(bytes) / float64(max(1, r.Frames))
	r.Kbits = r.Bytes * 8 * 60 / 1000
	return r
}

// Link is how the frames travel, in frames of 1/60 s.
type Link struct {
	// Loss is the share of snapshots and acks that are lost.
	Loss float64
	// Down and Up are how many frames a snapshot and its ack take.
	Down, Up int
	// Seed chooses the losses.
	Seed uint64
}

// Clock gives the time that has passed since some moment, or is nil.
type Clock func() time.Duration

// Adaptive measures encoder and decoder over a link. Frames that come before the first frame to be
// counted are what both ends are given.
func Adaptive(form string, sets []*snapshot.Set, link Link, clock Clock) (*Row, error) {
	random := rand.New(rand.NewPCG(link.Seed, 1))
	s := Cubes()
	world := snapshot.NewWorld(s, sets[0])
	enc, dec := snapshot.NewEncoder(s, world), snapshot.NewDecoder(s, sets[0])
	r, bytes := &Row{Form: form}, 0
	var encode, decode times
	payloads := make([][]byte, len(sets))
	acks := make([]snapshot.Ack, len(sets)+link.Down)
	for now := 0; now < len(sets)+link.Down; now++ {
		if n := now - link.Up; n >= 0 && (n < Distance || random.Float64() >= link.Loss) {
			if err := enc.Ack(acks[n]); err != nil {
				return nil, err
			}
		}
		if now < len(sets) {
			world.Begin().CopyFrom(sets[now])
			start := clock.now()
			out, _, err := enc.Append(nil, 1<<20)
			encode.add(clock.now() - start)
			if err != nil {
				return nil, err
			}
			payloads[now] = out
			if now >= Distance {
				r.Frames++
				bytes += len(out)
			}
		}
		acks[now] = dec.Ack()
		n := now - link.Down
		if n < 0 || n >= Distance && random.Float64() < link.Loss {
			continue
		}
		start := clock.now()
		_, got, err := dec.Decode(payloads[n])
		decode.add(clock.now() - start)
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		if !got.Equal(sets[n]) {
			r.Wrong++
		}
		if n >= Distance {
			r.Delivered++
		}
		acks[now] = dec.Ack()
	}
	r.EncodeUs, r.DecodeUs = encode.median(), decode.median()
	return r.finish(bytes), nil
}

// Cubes is the schema of a recorded cube: orientation, position and whether it interacts.
func Cubes() *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Orientation", Class: schema.ClassQuat, N: 4, Hi: cubes.MaxComponent},
		snapshot.Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -1 << 17, Hi: 1<<17 - 1},
		snapshot.Field{Name: "Interacting", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	if err != nil {
		panic(err)
	}
	return s
}

// Sets gives the frames of a recording as snapshots. A position out of the schema's bounds is an
// error that names its frame and cube.
func Sets(frames []cubes.Frame) ([]*snapshot.Set, error) {
	s := Cubes()
	sets := make([]*snapshot.Set, len(frames))
	for n := range frames {
		sets[n] = s.NewSet()
		for i := range frames[n] {
			c := &frames[n][i]
			row := []int32{c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], c.Interacting}
			if err := sets[n].Add(snapshot.Object{ID: uint16(i)}, row); err != nil {
				return nil, fmt.Errorf("frame %d: %w", n, err)
			}
		}
	}
	return sets, nil
}

type times []time.Duration

func (t *times) add(d time.Duration) { *t = append(*t, d) }

// median is in microseconds.
func (t times) median() float64 {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return float64(t[len(t)/2]) / 1e3
}

func (c Clock) now() time.Duration {
	if c == nil {
		return 0
	}
	return c()
}
