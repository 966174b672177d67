package seal

import "math/bits"

// WindowSize is the number of packet numbers that a [Window] covers, including the newest one.
const WindowSize = 1024

// LossAge is the number of newer packet numbers after which a missing number counts as lost.
const LossAge = 64

// Verdict is the result of [Window.Check].
type Verdict uint8

// The verdicts.
const (
	New       Verdict = iota // not marked yet
	Duplicate                // marked before
	Late                     // older than the window
)

// Window is the replay window of a direction: it records which of the last [WindowSize] packet
// numbers were received, and counts lost ones. The zero value expects the number 0. It is not safe
// for concurrent use.
type Window struct {
	next    uint64                  // newest number plus one
	lost    uint64                  // count of numbers that were missing at LossAge
	bursts  uint64                  // count of runs of lost numbers
	losing  bool                    // whether the newest number at LossAge is lost
	missing [WindowSize / 64]uint64 // bit n%64 of word n/64%16 is 1 if number n is missing
}

// Check completes a packet number from its low width bits, 1 to 32, to the number nearest to the
// newest one. It returns the number and whether it was received before; the number is undefined if
// the verdict is [Late]. Check does not change the window. Call [Window.Mark] after the datagram
// was authenticated.
func (w *Window) Check(truncated uint32, width uint) (number uint64, verdict Verdict) {
	shift := 64 - width
	ahead := int64((uint64(truncated)-w.next)<<shift) >> shift
	number = w.next + uint64(ahead)
	switch {
	case ahead >= 0:
		return number, New
	case ahead < -WindowSize || number > w.next: // the latter: negative
		return number, Late
	case !w.misses(number):
		return number, Duplicate
	}
	return number, New
}

// Mark records a received number for which [Window.Check] returned [New].
func (w *Window) Mark(number uint64) {
	switch {
	case number == w.next && (number < LossAge || !w.misses(number-LossAge)): // the common case
		w.next++
		w.losing = false
	case number >= w.next:
		w.advance(number)
	}
	w.missing[number/64%uint64(len(w.missing))] &^= 1 << (number % 64)
}

func (w *Window) misses(number uint64) bool {
	return w.missing[number/64%uint64(len(w.missing))]>>(number%64)&1 != 0
}

// advance makes number the newest one. It marks all numbers between the previous newest number and
// this one as missing.
func (w *Window) advance(number uint64) {
	w.age(number)
	n := max(w.next, number+1-min(number+1, WindowSize)) // limited to the window
	for n <= number {
		word, mask, size := w.part(n, number)
		*word |= mask
		n += size
	}
	w.next = number + 1
}

// age counts losses among the numbers that reach LossAge when number becomes the newest one.
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
	if n <= last { // numbers beyond the window's newest were never received
		w.lost += last - n + 1
		if !w.losing {
			w.bursts++
		}
		w.losing = true
	}
}

// lose counts the lost numbers and bursts in bits first to last of a word.
func (w *Window) lose(missing, first, last uint64) {
	w.lost += uint64(bits.OnesCount64(missing))
	begins := missing &^ (missing << 1)
	if w.losing {
		begins &^= 1 << first
	}
	w.bursts += uint64(bits.OnesCount64(begins))
	w.losing = missing>>last&1 != 0
}

// part returns the word that contains number n, and the mask and number of its bits from n to last.
func (w *Window) part(n, last uint64) (word *uint64, mask, size uint64) {
	size = min(64-n%64, last-n+1)
	return &w.missing[n/64%uint64(len(w.missing))], ^uint64(0) >> (64 - size) << (n % 64), size
}

// Next returns the newest received number plus one, or 0.
func (w *Window) Next() uint64 { return w.next }

// Behind returns the distance of a number behind the newest received number, 0 if it is newer.
func (w *Window) Behind(number uint64) uint64 {
	if number >= w.next {
		return 0
	}
	return w.next - 1 - number
}

// Missing returns the number of numbers from first to last of the window that were not received.
func (w *Window) Missing(first, last uint64) int {
	missing := uint64(0)
	for n := max(first, w.next-min(w.next, WindowSize)); n <= last && n < w.next; {
		word, mask, size := w.part(n, min(last, w.next-1))
		missing += uint64(bits.OnesCount64(*word & mask))
		n += size
	}
	return int(missing)
}

// Lost returns the number of lost numbers. It never decreases: a number that is received later
// still counts as lost.
func (w *Window) Lost() uint64 { return w.lost }

// Bursts returns the number of loss bursts: runs of consecutive lost numbers.
func (w *Window) Bursts() uint64 { return w.bursts }
