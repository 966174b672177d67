package adaptive

import (
	"testing"
	"unsafe"
)

func bytesOf[T any](s []T) int {
	var v T
	return cap(s) * int(unsafe.Sizeof(v))
}

func (c *counters) bytes() int { return bytesOf(c.index) + bytesOf(c.bits) + bytesOf(c.blobs) }

// size is the bytes that a State keeps.
func (s *State) size() int {
	l := &s.live
	n := int(unsafe.Sizeof(*s)) + bytesOf(s.digests) + bytesOf(s.seqs)
	n += bytesOf(l.weights) + bytesOf(l.comps) + bytesOf(l.lists) + bytesOf(l.groups) + l.counters.bytes()
	for i := range s.digests {
		d := &s.digests[i]
		n += bytesOf(d.comps) + bytesOf(d.lists) + bytesOf(d.groups) + d.counters.bytes()
	}
	return n
}

// A player's 20 components may cost 16 KiB: the state, and a ring of 64 frames.
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
	const frames = 64 * 20 * 4
	n := m.NewState(64).size()
	t.Logf("state %d bytes, with a ring %d", n, n+frames)
	if n+frames > 16<<10 {
		t.Errorf("%d bytes are too many", n+frames)
	}
}
