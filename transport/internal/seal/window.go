package seal

import "math/bits"

// WindowSize is how many packet numbers a [Window] remembers, the newest one included.
const WindowSize = 1024

// LossAge is how many newer numbers have to be known until one that did not come counts as lost.
const LossAge = 64

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
	lost    uint64                  // numbers that were not marked when they had LossAge
	bursts  uint64                  // runs of them
	losing  bool                    // the newest number that has LossAge is one
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
	case !w.misses(number):
		return number, Duplicate
	}
	return number, New
}

// Mark notes that a number has come that [Window.Check] called [New].
func (w *Window) Mark(number uint64) {
	switch {
	case number == w.next && (number < LossAge || !w.misses(number-LossAge)): // as nearly all
		w.next++
		w.losing = false
	case number >= w.next:
		w.advance(number)
	}
	w.missing[number/64%uint64(len(w.missing))] &^= 1 << (number % 64)
}

// misses reports whether a number of the window has not come.
func (w *Window) misses(number uint64) bool {
	return w.missing[number/64%uint64(len(w.missing))]>>(number%64)&1 != 0
}

// advance makes number the newest one. All numbers from the last newest one on are missing then.
func (w *Window) advance(number uint64) {
	w.age(number)
	n := max(w.next, number+1-min(number+1, WindowSize)) // the window holds these alone
	for n <= number {
		word, mask, size := w.part(n, number)
		*word |= mask
		n += size
	}
	w.next = number + 1
}

// age counts the numbers that have LossAge when number is the newest one, and had it not before.
func (w *Window) age(number uint64) {
	if number < LossAge {
		return
	}
	n, last := w.next-min(w.next, LossAge), number-LossAge
	for n <= last && n < w.next {
		word, mask, size := w.part(n, min(last, w.next-1))
		w.lose(*word&mask, n%64, n%64+size-1)
		n += size
	}
	if n <= last { // these never came
		w.lost += last - n + 1
		if !w.losing {
			w.bursts++
		}
		w.losing = true
	}
}

// lose counts what is lost of the numbers that bits first to last of a word stand for.
func (w *Window) lose(missing, first, last uint64) {
	w.lost += uint64(bits.OnesCount64(missing))
	begins := missing &^ (missing << 1)
	if w.losing {
		begins &^= 1 << first
	}
	w.bursts += uint64(bits.OnesCount64(begins))
	w.losing = missing>>last&1 != 0
}

// part returns the word that holds number n, and the bits of it, size of them, that hold n up to last.
func (w *Window) part(n, last uint64) (word *uint64, mask, size uint64) {
	size = min(64-n%64, last-n+1)
	return &w.missing[n/64%uint64(len(w.missing))], ^uint64(0) >> (64 - size) << (n % 64), size
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

// Lost returns how many numbers had not been marked when [LossAge] newer ones were known. It never goes down:
// one that comes later than that stays lost.
func (w *Window) Lost() uint64 { return w.lost }

// Bursts returns how many runs of neighbors the numbers of [Window.Lost] are.
func (w *Window) Bursts() uint64 { return w.bursts }
