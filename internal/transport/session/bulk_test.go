package session

import (
	"testing"
	"time"
)

// TestBulkBeforeSource opens a session at the server by a datagram with a segment of the bulk
// channel, whose source the server sets afterwards. It sends what that has.
func TestBulkBeforeSource(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		once := func(msg string) func([]byte, int) []byte {
			return func(b []byte, _ int) []byte {
				b = append(b, msg...)
				msg = ""
				return b
			}
		}
		p.server.drop = func([]byte) bool { return p.client.s.state == Open } // what would open the session
		p.run(4 * oneWay)
		p.client.s.SetBulk(1e6, once("up"))
		p.client.s.WakeBulk(time.Now())
		p.server.drop = nil
		p.run(4 * oneWay)
		got, ok := p.server.s.ReceiveBulk(time.Now(), nil)
		if !ok || string(got) != "up" {
			t.Fatalf("the server received %q", got)
		}
		p.server.s.SetBulk(1e6, once("down"))
		p.server.s.WakeBulk(time.Now())
		p.run(4 * oneWay)
		if got, _ := p.client.s.ReceiveBulk(time.Now(), nil); string(got) != "down" {
			t.Errorf("the client received %q", got)
		}
	})
}
