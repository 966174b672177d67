package transport

import "time"

const (
	hintRate  = 100 // hints a second that a listener sends at most, over all addresses
	hintBurst = 100
)

// hints limits how many hints a listener sends: a bucket of tokens that fills by hintRate.
type hints struct {
	tokens float64
	at     time.Time // of the last look
}

// take reports whether one more hint may be sent now.
func (h *hints) take(now time.Time) bool {
	if h.at.IsZero() {
		h.tokens = hintBurst
	} else {
		h.tokens = min(hintBurst, h.tokens+hintRate*now.Sub(h.at).Seconds())
	}
	h.at = now
	if h.tokens < 1 {
		return false
	}
	h.tokens--
	return true
}
