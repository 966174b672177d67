package reliable

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSmallMessages: small messages that are sent at the same time share segments, so that they
// take one round trip and few bytes.
func TestSmallMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, size, roundTrip = 300, 20, 100 * time.Millisecond
		l := newLink(t, 1, roundTrip, 0)
		l.transfer(size, size)
		for range 1000 {
			l.step()
		}
		l.meters[0] = newMeter(t, time.Now())
		before := l.ends[0].numbers.sent
		took := l.transfer(messages*size, size)
		segments, total := l.ends[0].numbers.sent-before, l.meters[0].total
		t.Logf("%d messages of %d bytes took %v, %d bytes in %d segments", messages, size, took, total, segments)
		if took > roundTrip/2+2*interval || segments > 8 || total > messages*size*5/4 {
			t.Error("want at most 8 segments, and a quarter more bytes than the messages have")
		}
	})
}
