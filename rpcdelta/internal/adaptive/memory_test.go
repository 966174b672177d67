package adaptive

import (
	"testing"
	"unsafe"
)

func bytesOf[T any](s []T) int {
	var v T
	return cap(s) * int(unsafe.Sizeof(v))
}

func (c *bitModels) size() int { return bytesOf(c.index) + bytesOf(c.bits) + bytesOf(c.bytes) }

// size is the bytes that a State keeps.
func (s *State) size() int {
	l := &s.learned
	return int(unsafe.Sizeof(*s)) + bytesOf(l.inputs) + bytesOf(l.components) + bytesOf(l.lists) + bytesOf(l.groups) + l.bitModels.size()
}

func (f *Frames) size() int {
	return int(unsafe.Sizeof(*f)) + bytesOf(f.seqs) + bytesOf(f.ints) + bytesOf(f.bytes) + bytesOf(f.diffs)
}

// A player's 20 components may cost 16 KiB, of which a session takes 3: the state,
// and a ring of 64 frames.
func TestMemory(t *testing.T) {
	m := New([]Field{
		{Kind: Number, At: 0, N: 3, Lo: -1 << 22, Hi: 1 << 22, VelocityAt: 3, VelocityFactor: 1},
		{Kind: Number, At: 3, N: 3, Lo: -1 << 22, Hi: 1 << 22, VelocityAt: -1},
		{Kind: Quat, At: 6, N: 4, Hi: 1<<11 - 1, Bits: 12, VelocityAt: 10, VelocityFactor: 0.01},
		{Kind: Number, At: 10, N: 3, Lo: -1 << 22, Hi: 1 << 22, VelocityAt: -1},
		{Kind: Angle, At: 13, N: 2, Bits: 16, VelocityAt: -1},
		{Kind: Number, At: 15, N: 2, Lo: -1 << 15, Hi: 1 << 15, Scalar: true, VelocityAt: -1},
		{Kind: Integer, At: 17, N: 1, Bits: 32, VelocityAt: -1},
		{Kind: Bits, At: 18, N: 1, Bits: 16, VelocityAt: -1},
		{Kind: Integer, At: 19, N: 1, Bits: 8, VelocityAt: -1},
	}, 60)
	state, frames := m.NewState(64).size(), NewFrames(20, 0, 64+LearnReach).size()
	t.Logf("state %d bytes, frames %d", state, frames)
	if state+frames > 13<<10 {
		t.Errorf("%d bytes are too many", state+frames)
	}
}
