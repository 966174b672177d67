package reliable

import "time"

// An end may send [creditPerByte] bytes for each byte of its messages that the peer newly acknowledges, and 64 KiB
// besides in any one second without acknowledgments: the base burst and one second of the base rate.
const (
	creditPerByte = 3
	baseRate      = 32 << 10 // bytes per second
	baseBurst     = 32 << 10 // bytes
	// maxBudget is the most bytes that acknowledgments can save up. A full window of the largest segments takes less.
	maxBudget = 96 << 10
)

// budget is how many bytes an end may send now, with all headers down to IP. In any period of T seconds these are at
// most baseRate*T + creditPerByte times the bytes newly acknowledged in it, and what was saved up before: baseBurst
// at the start of a session, at most maxBudget later.
type budget struct {
	bytes float64
	at    time.Time // of the last refill
}

func newBudget(now time.Time) budget { return budget{bytes: baseBurst, at: now} }

// refill adds what the base rate allows since the last call. A time before that of the last call adds nothing.
func (b *budget) refill(now time.Time) {
	passed := now.Sub(b.at)
	if passed <= 0 {
		return
	}
	b.at = now
	if b.bytes < baseBurst {
		b.bytes = min(b.bytes+passed.Seconds()*baseRate, baseBurst)
	}
}

// credit adds what n newly acknowledged bytes allow.
func (b *budget) credit(n int) { b.bytes = min(b.bytes+float64(creditPerByte*n), maxBudget) }

// take reports whether n bytes may be sent, and deducts them if so.
func (b *budget) take(n int) bool {
	if float64(n) > b.bytes {
		return false
	}
	b.bytes -= float64(n)
	return true
}
