package reliable

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBulkRate verifies that the bulk channel uses its rate limit on a path that permits it, and
// sends no more with packet loss.
func TestBulkRate(t *testing.T) {
	const rate, runs = 256 << 10, 20 * time.Second
	for _, loss := range []float64{0, 0.1} {
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t, 6, 100*time.Millisecond, loss)
			l.ends[0].SetBulk(rate, func(b []byte, _ int) []byte { return append(b, make([]byte, 1147)...) })
			l.ends[0].Wake(time.Now())
			received := 0
			for start := time.Now(); time.Since(start) < runs; {
				for _, m := range l.step()[1] {
					received += len(m)
				}
			}
			sent, useful := float64(l.meters[0].total)/runs.Seconds(), float64(received)/runs.Seconds()
			t.Logf("%.0f bytes/s sent, %.0f received", sent, useful)
			if sent > 1.02*rate || useful < (0.9-2*loss)*rate {
				t.Errorf("want about %d bytes/s", rate)
			}
		})
	}
}
