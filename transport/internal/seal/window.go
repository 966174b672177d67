package seal

import "math/bits"

// WindowSize is how many packet numbers a [Window] remembers, the newest one included.
const WindowSize = 1024

// Verdict is what a [Window] says of a packet number.
type Verdict uint8

// The verdicts.
const (
	New       Verdict = iota // not marked yet
	Duplicate                // marked before
	Late                     // so old that the window does not know
)

// Window knows which of the last [WindowSize] packet numbers of a direction have come, and counts those
// that never did. The zero value is that of a direction whose first number is 0. It is not safe for
// concurrent use.
type Window struct {
	next    uint64                  // the newest number + 1
	lost    uint64                  // numbers that left the window unmarked
	missing [WindowSize / 64]uint64 // number n has bit n%64 of word n/64%16; 1: it has not come
}

// Check unwraps a packet number of which the low bits came, width of them, 1 to 32: it takes the number nearest
// to the newest one. It returns the whole number, and whether it is to be accepted; the number means
// nothing if the verdict is [Late]. The window is as it was: only [Window.Mark] changes it, and only
// after the datagram was opened.
func (w *Window) Check(truncated uint32, width uint) (number uint64, verdict Verdict) {
	shift := 64 - width
	ahead := int64((uint64(truncated)-w.next)<<shift) >> shift
	number = w.next + uint64(ahead)
	switch {
	case ahead >= 0:
		return number, New
	case ahead < -WindowSize || number > w.next: // the latter: below zero
		return number, Late
	case w.missing[number/64%uint64(len(w.missing))]>>(number%64)&1 == 0:
		return number, Duplicate
	}
	return number, New
}

// Mark notes that a number has come that [Window.Check] called [New].
func (w *Window) Mark(number uint64) {
	if number >= w.next {
		w.advance(number)
	}
	w.missing[number/64%uint64(len(w.missing))] &^= 1 << (number % 64)
}

// advance makes number the newest one. All numbers from the last newest one on are missing then.
func (w *Window) advance(number uint64) {
	if number-w.next >= WindowSize {
		w.lost += number - w.next + 1 - WindowSize
		w.next = number + 1 - WindowSize // the window holds these alone
	}
	for n := w.next; n <= number; {
		word := &w.missing[n/64%uint64(len(w.missing))]
		size := min(64-n%64, number-n+1)
		mask := ^uint64(0) >> (64 - size) << (n % 64)
		w.lost += uint64(bits.OnesCount64(*word & mask))
		*word |= mask
		n += size
	}
	w.next = number + 1
}

// Next returns the number after the newest one that was marked: 0 if there was none.
func (w *Window) Next() uint64 { return w.next }

// Overtaken returns by how much the newest number is newer than that one: 0 if it is not.
func (w *Window) Overtaken(number uint64) uint64 {
	if number >= w.next {
		return 0
	}
	return w.next - 1 - number
}

// Lost returns how many numbers have left the window without having been marked.
func (w *Window) Lost() uint64 { return w.lost }
