package session

import (
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// TestUnacknowledged: a peer whose heartbeats arrive, and which acknowledges no segment, loses its session.
func TestUnacknowledged(t *testing.T) {
	for _, server := range []bool{false, true} {
		inBubble(t, func(t *testing.T, p *pair) {
			p.connect()
			sender, deaf := p.client, p.server
			if server {
				sender, deaf = p.server, p.client
			}
			deaf.drop = func(b []byte) bool {
				h, err := wire.ParseHeader(b)
				return err == nil && h.Kind == wire.ReliableKind
			}
			if err := sender.s.SendReliable(time.Now(), []byte("hello")); err != nil {
				t.Fatal(err)
			}
			before := sender.s.Stats().DatagramsSent
			p.run(testTimeout)
			if sender.s.State() != Open {
				t.Fatalf("%s: ended within its timeout: %v", sender.name, sender.s.Err())
			}
			p.run(3 * testTimeout)
			if !errors.Is(sender.s.Err(), ErrUnacknowledged) {
				t.Errorf("%s: state %d, error %v, want %v", sender.name, sender.s.State(), sender.s.Err(), ErrUnacknowledged)
			}
			t.Logf("%s: %d datagrams", sender.name, sender.s.Stats().DatagramsSent-before)
		})
	}
}

// TestReliableAfterAnOutage: what waited during an outage shorter than the timeout arrives.
func TestReliableAfterAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.client.cut, p.server.cut = true, true
		for _, e := range []*end{p.client, p.server} {
			for range 100 {
				if err := e.s.SendReliable(time.Now(), make([]byte, 1000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.run(testTimeout * 8 / 10)
		p.client.cut, p.server.cut = false, false
		p.run(testTimeout)
		for _, e := range []*end{p.client, p.server} {
			if len(e.messages) != 100 || e.s.State() != Open {
				t.Errorf("%s: %d of 100 messages, state %d, error %v", e.name, len(e.messages), e.s.State(), e.s.Err())
			}
		}
	})
}
