package session

import (
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// TestUnacknowledged verifies that a session ends if the peer acknowledges no segment although its
// heartbeats arrive.
func TestUnacknowledged(t *testing.T) {
	for _, server := range []bool{false, true} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			sender, deaf := p.client, p.server
			if server {
				sender, deaf = p.server, p.client
			}
			for range 20 { // the channel measures the round trip
				if err := sender.s.SendReliable(time.Now(), []byte("hello")); err != nil {
					t.Fatal(err)
				}
				p.run(4 * oneWay)
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

// TestReliableBytes verifies that a session without acks sends at most a burst of 32 KiB and 32
// KiB/s, including IP headers.
func TestReliableBytes(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		start, before := time.Now(), p.client.s.Stats()
		p.server.cut = true
		for range 15 {
			if err := p.client.s.SendReliable(time.Now(), make([]byte, 16<<10)); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			st := p.client.s.Stats()
			sent := st.BytesSent - before.BytesSent + ipSize*(st.DatagramsSent-before.DatagramsSent)
			heartbeats := 150 * (1 + time.Since(start).Seconds())
			if most := (32<<10)*(1+time.Since(start).Seconds()) + heartbeats; float64(sent) > most {
				t.Fatalf("%d bytes sent within %v, want at most %.0f", sent, time.Since(start), most)
			}
			p.run(10 * time.Millisecond)
		}
	})
}
