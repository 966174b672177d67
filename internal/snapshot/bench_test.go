package snapshot_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

// behind is the number of snapshots until an ack arrives.
const behind = 6

// recording is a recorded world of 901 cubes, sent to one player repeatedly.
type recording struct {
	sets   []*snapshot.Set
	world  *snapshot.History
	enc    *sender
	dec    *snapshot.Decoder
	acks   [behind]snapshot.Ack
	buffer []byte
	frame  int
}

var recorded = flag.String("recording", "../../testdata/traces/cubes_delta_data_2000.bin.gz", "recording of cubes for BenchmarkRecorded")

func newRecording(b *testing.B) *recording {
	frames, err := cubes.Load(*recorded)
	must(b, err)
	sets, err := cubeset.Of(frames)
	must(b, err)
	r := &recording{sets: sets, buffer: make([]byte, 0, 1<<16)}
	r.restart()
	return r
}

func (r *recording) restart() {
	s := cubeset.Schema()
	r.world = snapshot.NewHistory(s, r.sets[0])
	r.enc, r.dec, r.frame = newSender(r.world), snapshot.NewDecoder(s, r.sets[0]), 0
}

// step encodes and decodes one frame and returns the durations.
func (r *recording) step(b *testing.B) (bytes int, encode, decode time.Duration) {
	if r.frame == len(r.sets) {
		r.restart()
	}
	ack := &r.acks[r.frame%behind]
	if r.frame >= behind {
		_, err := r.enc.Ack(*ack)
		must(b, err)
	}
	r.world.Begin().CopyFrom(r.sets[r.frame])
	start := time.Now()
	payload, _, err := r.enc.send(r.buffer[:0], cap(r.buffer))
	encode = time.Since(start)
	must(b, err)
	start = time.Now()
	_, _, err = r.dec.Decode(payload)
	decode = time.Since(start)
	must(b, err)
	*ack = r.dec.Ack()
	r.frame++
	return len(payload), encode, decode
}

// BenchmarkRecorded codes one frame of the recording per iteration and times each end. The times
// are means over the frames, of each frame the minimum of all passes, since other programs slow
// some passes down.
func BenchmarkRecorded(b *testing.B) {
	r := newRecording(b)
	bytes := 0
	encode, decode := make([]time.Duration, len(r.sets)), make([]time.Duration, len(r.sets))
	least := func(d *time.Duration, v time.Duration) {
		if *d == 0 || v < *d {
			*d = v
		}
	}
	for b.Loop() {
		n, e, d := r.step(b)
		bytes += n
		least(&encode[r.frame-1], e)
		least(&decode[r.frame-1], d)
	}
	mean := func(of []time.Duration) float64 {
		sum := time.Duration(0)
		for _, d := range of {
			sum += d
		}
		return sum.Seconds() * 1e6 / float64(min(b.N, len(of)))
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/frame")
	b.ReportMetric(mean(encode), "encode-us")
	b.ReportMetric(mean(decode), "decode-us")
}

// BenchmarkSmall encodes 25 cubes, of which none or three move: one of many areas of a world. With
// none it takes what every payload takes.
func BenchmarkSmall(b *testing.B) {
	for _, moving := range []int{0, 3} {
		b.Run(fmt.Sprintf("%dMoving", moving), func(b *testing.B) {
			s := cubeset.Schema()
			w := snapshot.NewHistory(s, nil)
			for n := range snapshot.Ring {
				set := w.Begin()
				for i := range 25 {
					row := []int32{3, 256, 256, 256, int32(i%5) * 1000, int32(i/5) * 1000, 100, 0}
					if i < moving {
						row[1], row[4], row[6] = row[1]+int32(n), row[4]+int32(9*n), row[6]+int32(n*(60-n)/8)
					}
					must(b, set.Add(snapshot.Object{ID: uint16(i)}, row))
				}
			}
			e, buffer, bytes := new(snapshot.Encoder), make([]byte, 0, 1<<10), 0
			for b.Loop() {
				out, _, err := e.Append(buffer, w, snapshot.Baseline{Distance: behind, Step: 1}, cap(buffer))
				must(b, err)
				bytes = len(out)
			}
			b.ReportMetric(float64(bytes), "B/payload")
		})
	}
}
