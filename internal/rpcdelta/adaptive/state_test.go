package adaptive_test

import (
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
)

// TestLearnLate checks that the state does not depend on when a frame is learned, as long as the
// frames before it are still stored.
func TestLearnLate(t *testing.T) {
	m := adaptive.Generic().Compile(vehicleFields)
	for _, ring := range []int{2, 16, 64} {
		r := rand.New(rand.NewPCG(uint64(ring), 1))
		early, late := newEnd(m, vehicleFields, ring), newEnd(m, vehicleFields, ring)
		first := early.state.Hash()
		for i, frame := range smoothFrames(400) {
			if r.IntN(8) == 0 {
				continue // lost
			}
			early.learn(uint64(i), frame)
			late.accept(uint64(i), frame)
			if r.IntN(60) != 0 {
				continue
			}
			if !late.state.Learn(uint64(i), late.known) || late.state.Hash() != early.state.Hash() {
				t.Fatalf("ring %d: the state of %d depends on when it was learned", ring, i)
			}
			if late.state.Learn(uint64(i-1), late.known) {
				t.Fatalf("ring %d: %d is the last frame learned, after %d", ring, i-1, i)
			}
		}
		if early.state.Hash() == first {
			t.Errorf("ring %d: nothing was learned", ring)
		}
	}
}

// TestReach checks that an end reads only the frames that LearnReach and the ring allow: an end
// that stores no others behaves the same.
func TestReach(t *testing.T) {
	m := adaptive.Generic().Compile(vehicleFields)
	ints, blobs := frameSize(vehicleFields)
	short := &end{state: m.NewState(0), known: adaptive.NewFrames(ints, blobs, adaptive.LearnReach)}
	long := &end{state: m.NewState(0), known: adaptive.NewFrames(ints, blobs, 300)}
	frames := smoothFrames(300)
	for i, frame := range frames[:236] {
		seq := uint64(i)
		short.learn(seq, frame)
		long.known.Put(seq, frame, adaptive.Shape{Frames: 1})
		long.state.Learn(seq, long.known)
		if short.state.Hash() != long.state.Hash() {
			t.Fatalf("learning %d reads frames more than LearnReach older", i)
		}
		for _, d := range []int{1, 9, 63} {
			newest := seq + uint64(d)
			want := long.encode(nil, frames[i+d:i+d+1], newest, seq, true)
			only := adaptive.NewFrames(ints, blobs, adaptive.MaxRing)
			for q := max(0, i+d-adaptive.MaxRing+1); q <= i; q++ {
				only.Put(uint64(q), frames[q], adaptive.Shape{Frames: 1})
			}
			bounded := &end{state: long.state, known: only}
			if got := bounded.encode(nil, frames[i+d:i+d+1], newest, seq, true); string(got) != string(want) {
				t.Fatalf("coding %d against %d reads frames beyond the ring", newest, i)
			}
		}
	}
}
