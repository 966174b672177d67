package adaptive_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/schema"
)

// bench is a stream of vehicle frames whose baseline is six frames old.
type bench struct {
	*end
	m      *adaptive.Model
	frames []*schema.Frame
	seq    uint64
	batch  [adaptive.MaxFrames]*schema.Frame
}

func newBench() *bench {
	m := adaptive.Generic().Compile(vehicleFields)
	b := &bench{end: newEnd(m, vehicleFields, 64), m: m, frames: smoothFrames(4096)}
	for range 1000 {
		b.acceptNext()
	}
	return b
}

// frame returns the frame of a sequence number: the frames forwards, then backwards, so that they
// join.
func (b *bench) frame(seq uint64) *schema.Frame {
	n := uint64(len(b.frames))
	if i := seq & (2*n - 1); i >= n {
		return b.frames[2*n-1-i]
	}
	return b.frames[seq&(n-1)]
}

// acceptNext accepts and learns the next frame.
func (b *bench) acceptNext() {
	b.learn(b.seq, b.frame(b.seq))
	b.seq++
}

const distance = 6

func (b *bench) payload(n int, base uint64) ([]*schema.Frame, uint64) {
	frames := b.batch[:0]
	newest := base + distance
	for i := range n {
		frames = append(frames, b.frame(newest+1-uint64(n)+uint64(i)))
	}
	return frames, newest
}

func TestAllocations(t *testing.T) {
	s := newBench()
	dst := make([]byte, 0, 400)
	out := newFrames(vehicleFields)
	if n := allocs.PerRun(500, func() {
		s.acceptNext()
		frames, newest := s.payload(3, s.seq-1)
		p := s.encode(dst, frames, newest, s.seq-1, true)
		if _, err := s.decode(out, p, newest, s.seq-1, true); err != nil {
			t.Fatal(err)
		}
		s.state.Hash()
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
	if n := allocs.PerRun(10, s.state.Reset); n != 0 {
		t.Errorf("%v allocations a reset", n)
	}
}
