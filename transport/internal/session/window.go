package session

import "math/bits"

const (
	windowSize = 64
	// maxAhead is how far a packet number may be ahead of the newest one. It is more than a peer can
	// send until a timeout of 10 s, at 800 datagrams a second, and leaves out 7 of 8 strays.
	maxAhead = 1 << 13
)

// window knows which of the last 64 packet numbers have come, and counts those that never did.
// Nothing that is older than the newest by 64 or more gets through: layers above, whose sequences
// are short, depend on it.
type window struct {
	newest uint64 // unwrapped
	seen   uint64 // bit i: newest-i has come
	lost   uint64 // numbers that left the window unseen
}

// newWindow returns the window of a direction whose first number is start.
func newWindow(start uint16) window {
	// One turn up, so that the numbers before start do not go below zero.
	return window{newest: 1<<16 + uint64(start) - 1, seen: ^uint64(0)}
}

// check unwraps a packet number and returns [Accepted] if it is new, else why it is not.
func (w *window) check(number uint16) (uint64, Verdict) {
	ahead := int64(int16(number - uint16(w.newest)))
	unwrapped := w.newest + uint64(ahead)
	switch {
	case ahead > maxAhead:
		return 0, Stray
	case ahead > 0:
		return unwrapped, Accepted
	case ahead <= -windowSize:
		return 0, Late
	case w.seen>>-ahead&1 != 0:
		return 0, Duplicate
	}
	return unwrapped, Accepted
}

// mark notes that a number that check accepted has come.
func (w *window) mark(number uint64) {
	if number <= w.newest {
		w.seen |= 1 << (w.newest - number)
		return
	}
	shift := number - w.newest
	if shift >= windowSize {
		w.lost += uint64(bits.OnesCount64(^w.seen)) + shift - windowSize
		w.seen = 0
	} else {
		gone := w.seen >> (windowSize - shift)
		w.lost += shift - uint64(bits.OnesCount64(gone))
		w.seen <<= shift
	}
	w.newest = number
	w.seen |= 1
}
