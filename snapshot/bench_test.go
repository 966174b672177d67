package snapshot_test

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/snapbench"
	"github.com/uplink-rpc/uplink/snapshot"
)

// behind is the number of snapshots until an ack arrives.
const behind = 6

// recording is a recorded world of 901 cubes, sent to one player repeatedly.
type recording struct {
	sets   []*snapshot.Set
	world  *snapshot.World
	enc    *sender
	dec    *snapshot.Decoder
	acks   [behind]snapshot.Ack
	buffer []byte
	frame  int
}

func newRecording(b *testing.B) *recording {
	frames, err := cubes.Load("../testdata/traces/cubes_delta_data_2000.bin.gz")
	must(b, err)
	sets, err := snapbench.Sets(frames)
	must(b, err)
	r := &recording{sets: sets, buffer: make([]byte, 0, 1<<16)}
	r.restart()
	return r
}

func (r *recording) restart() {
	s := snapbench.Cubes()
	r.world = snapshot.NewWorld(s, r.sets[0])
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

// BenchmarkRecorded codes one frame of the recording per iteration and times each end.
func BenchmarkRecorded(b *testing.B) {
	r := newRecording(b)
	bytes, encode, decode := 0, time.Duration(0), time.Duration(0)
	for b.Loop() {
		n, e, d := r.step(b)
		bytes, encode, decode = bytes+n, encode+e, decode+d
	}
	n := float64(b.N)
	b.ReportMetric(float64(bytes)/n, "B/frame")
	b.ReportMetric(encode.Seconds()*1e6/n, "encode-us")
	b.ReportMetric(decode.Seconds()*1e6/n, "decode-us")
}
