package session

import (
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

var (
	movedAddr = netip.MustParseAddrPort("192.0.2.77:5000")
	otherAddr = netip.MustParseAddrPort("198.51.100.9:6000")
)

// move gives the client another address, of which it knows nothing.
func (p *pair) move(to netip.AddrPort) { p.client.addr = to }

// play has both ends send at 60 Hz for a while.
func (p *pair) play(d time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		p.send(p.client, "move")
		p.send(p.server, "ack")
		p.run(time.Second / 60)
	}
}

func TestClientMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.play(100 * time.Millisecond)
		p.move(movedAddr)
		p.play(2 * time.Second)
		if p.server.s.Remote() != movedAddr || p.server.s.Stats().Moves != 1 {
			t.Fatalf("the server has %v after %d moves", p.server.s.Remote(), p.server.s.Stats().Moves)
		}
		if p.client.s.long {
			t.Error("the client names its session still")
		}
		p.server.payloads = nil
		p.play(500 * time.Millisecond)
		if n := len(p.server.payloads); n < 29 {
			t.Errorf("%d payloads in half a second", n)
		}
	})
}

// TestSilentClientMoves moves one that sends nothing of its own.
func TestSilentClientMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.move(movedAddr)
		p.run(5 * time.Second)
		if p.server.s.Remote() != movedAddr || p.server.s.State() != Open || p.client.s.State() != Open {
			t.Errorf("the server has %v", p.server.s.Remote())
		}
	})
}

// Headers are short while the peer is heard, and long after 300 ms of silence.
func TestLongHeaders(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		long := func() bool {
			t.Helper()
			h, err := wire.ParseHeader(p.lastSent())
			if err != nil || h.Long && h.ID != testID {
				t.Fatalf("%+v, %v", h, err)
			}
			return h.Long
		}
		p.run(4*oneWay - time.Millisecond)
		p.run(time.Millisecond)
		if !long() {
			t.Error("short before the server was heard")
		}
		p.connect()
		if long() {
			t.Error("long although the server was heard")
		}
		p.client.cut = true
		p.run(silence)
		if !long() {
			t.Error("short after silence")
		}
	})
}

// copied returns a datagram with a long header that the client has sent and that has not arrived.
func (p *pair) copied() []byte {
	p.t.Helper()
	p.client.s.long, p.client.s.stay = true, time.Now().Add(time.Hour)
	p.send(p.client, "x")
	b := p.flying[len(p.flying)-1].data
	p.flying = p.flying[:len(p.flying)-1]
	return b
}

// TestRacedCopy has somebody send a copy of a datagram from elsewhere, before the original arrives.
func TestRacedCopy(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		for range 50 {
			b := p.copied()
			if v := p.server.inputFrom(time.Now(), otherAddr, b); v != Payload {
				t.Fatalf("verdict %d", v)
			}
			if v := p.server.inputFrom(time.Now(), otherAddr, b); v != Duplicate {
				t.Fatalf("again: verdict %d", v)
			}
			if v := p.server.input(time.Now(), b); v != Duplicate {
				t.Fatalf("the original: verdict %d", v)
			}
			p.run(20 * time.Millisecond)
		}
		if p.server.s.Remote() != clientAddr || p.server.s.Stats().Moves != 0 {
			t.Errorf("a copy moved the session to %v", p.server.s.Remote())
		}
	})
}

// TestRelayedChallenge has somebody do that who can also send the challenge on to the client, as if the server
// had sent it, and copy the response too.
func TestRelayedChallenge(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.server.inputFrom(time.Now(), otherAddr, p.copied())
		challenge := p.flying[len(p.flying)-1]
		if challenge.dest != otherAddr {
			t.Fatalf("the challenge went to %v", challenge.dest)
		}
		if len(challenge.data) > wire.LongSize+wire.MaxTag {
			t.Errorf("a challenge of %d bytes is longer than a datagram that causes one", len(challenge.data))
		}
		p.flying = nil

		p.client.s.long, p.client.s.stay = false, time.Time{} // it hears the server all the time
		if v := p.client.input(time.Now(), challenge.data); v != Unexpected || len(p.flying) != 0 {
			t.Errorf("a client that has not moved answered: verdict %d", v)
		}
	})
}

// TestResponseFromElsewhere has the right response come from another address than the one that is checked.
func TestResponseFromElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.server.inputFrom(time.Now(), movedAddr, p.copied())
		challenge := p.flying[len(p.flying)-1]
		p.flying = nil
		p.client.input(time.Now(), challenge.data)
		response := p.flying[len(p.flying)-1].data
		if v := p.server.inputFrom(time.Now(), otherAddr, response); v != Unexpected || p.server.s.Remote() != clientAddr {
			t.Errorf("verdict %d, remote %v", v, p.server.s.Remote())
		}
		if v := p.server.inputFrom(time.Now(), movedAddr, response); v != Duplicate {
			t.Errorf("the original: verdict %d", v)
		}
	})
}

// TestOldAddressEndsChecks has the client be heard from where it was after somebody sent a copy.
func TestOldAddressEndsChecks(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.server.inputFrom(time.Now(), otherAddr, p.copied())
		challenge := p.flying[len(p.flying)-1]
		p.flying = nil
		p.server.input(time.Now(), p.copied())
		p.client.input(time.Now(), challenge.data)
		response := p.flying[len(p.flying)-1].data
		if v := p.server.inputFrom(time.Now(), otherAddr, response); v != Unexpected || p.server.s.Remote() != clientAddr {
			t.Errorf("verdict %d, remote %v", v, p.server.s.Remote())
		}
	})
}

// TestOldDatagramFromElsewhere: only the newest of all says where the client is.
func TestOldDatagramFromElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		old, newer := p.copied(), p.copied()
		p.server.input(time.Now(), newer)
		sent := p.server.s.Stats().DatagramsSent
		if v := p.server.inputFrom(time.Now(), otherAddr, old); v != Payload || p.server.s.Stats().DatagramsSent != sent {
			t.Errorf("verdict %d; a challenge was sent", v)
		}
	})
}

func TestChallengesAreLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		sent := p.server.s.Stats().DatagramsSent
		for i := range 1000 {
			from := netip.AddrPortFrom(otherAddr.Addr(), uint16(1000+i))
			p.server.inputFrom(time.Now(), from, p.copied())
			time.Sleep(time.Millisecond)
		}
		if n := p.server.s.Stats().DatagramsSent - sent; n > uint64(time.Second/challengeWait)+1 {
			t.Errorf("%d challenges in a second", n)
		}
	})
}

func TestShortHeaderFromElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.send(p.client, "x")
		b := p.flying[len(p.flying)-1].data
		if v := p.server.inputFrom(time.Now(), otherAddr, b); v != Stray {
			t.Errorf("verdict %d", v)
		}
		if v := p.client.inputFrom(time.Now(), otherAddr, b); v != Stray {
			t.Errorf("to the client: verdict %d", v)
		}
	})
}

// TestRelayDuringAMove shows what docs/SPEC.md, 2.4, admits: who is on the way while the client names its session, and
// passes on the challenge and the response, has datagrams go by his address; until the client is heard.
func TestRelayDuringAMove(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.server.inputFrom(time.Now(), otherAddr, p.copied())
		challenge := p.flying[len(p.flying)-1].data
		if v := p.client.input(time.Now(), challenge); v != Accepted {
			t.Fatalf("the client's verdict %d", v)
		}
		response := p.flying[len(p.flying)-1].data
		p.flying = nil
		if v := p.server.inputFrom(time.Now(), otherAddr, response); v != Accepted || p.server.s.Remote() != otherAddr {
			t.Fatalf("verdict %d, remote %v", v, p.server.s.Remote())
		}
		p.flying = nil // he keeps what he gets
		p.play(2 * time.Second)
		if p.server.s.Remote() != clientAddr || p.server.s.State() != Open || p.client.s.State() != Open {
			t.Errorf("remote %v: the client did not come back", p.server.s.Remote())
		}
	})
}
