package session

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

var (
	movedAddr = Path{Addr: netip.MustParseAddrPort("192.0.2.77:5000")}
	otherAddr = Path{Addr: netip.MustParseAddrPort("198.51.100.9:6000")}
)

// play sends payloads from both ends at 60 Hz for a while.
func (p *pair) play(d time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		p.send(p.client, "move")
		p.send(p.server, "ack")
		p.run(time.Second / 60)
	}
}

// TestClientMoves changes the address of a client that plays, and of one that is silent.
func TestClientMoves(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.client.addr = otherAddr
		p.run(5 * time.Second)
		if p.server.s.Remote() != otherAddr || p.server.s.State() != Open || p.client.s.State() != Open {
			t.Errorf("the server has %v", p.server.s.Remote())
		}
	})
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.play(100 * time.Millisecond)
		p.client.addr = movedAddr
		p.play(2 * time.Second)
		if p.server.s.Remote() != movedAddr || p.server.s.Stats().PathMigrations != 1 {
			t.Fatalf("the server has %v after %d moves", p.server.s.Remote(), p.server.s.Stats().PathMigrations)
		}
		p.play(challengeLongPeriod)
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

// TestCopiesToAnotherLocalAddress sends a copy of each of the client's datagrams to another address
// of the listener, before the original arrives. The client receives nothing from there, so the
// listener continues to send from the address that the client has dialed.
func TestCopiesToAnotherLocalAddress(t *testing.T) {
	copied := clientAddr
	copied.Local = netip.MustParseAddr("203.0.113.2")
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.client.s.useLongHeaders(time.Now().Add(time.Hour))
		p.server.drop = func(b []byte) bool {
			p.server.inputFrom(time.Now(), copied, b)
			return false
		}
		p.client.payloads = nil
		p.play(5 * time.Second)
		if r := p.server.s.Remote(); r != clientAddr || p.server.s.Stats().PathMigrations != 0 || len(p.client.payloads) < 290 {
			t.Errorf("the server sends to %v, and the client got %d of 300 payloads", r, len(p.client.payloads))
		}
	})
}

// TestLongHeaders verifies that headers are long from 500 ms without a datagram of the peer until
// the next one.
func TestLongHeaders(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
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
		p.client.cut = false
		p.play(time.Second)
		if long() {
			t.Error("long although the server was heard again")
		}
	})
}

func TestShortHeaderFromElsewhere(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		b := p.lastSent()
		if v := p.server.inputFrom(time.Now(), otherAddr, b); v != WrongSession {
			t.Errorf("verdict %d", v)
		}
		if v := p.client.inputFrom(time.Now(), otherAddr, b); v != WrongSession {
			t.Errorf("to the client: verdict %d", v)
		}
	})
}

// TestOldDatagramFromElsewhere: a datagram far behind the newest one does not begin an address
// validation, whether it is a copy or was held back, and a copy is not decrypted.
func TestOldDatagramFromElsewhere(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.client.s.useLongHeaders(time.Now().Add(time.Hour))
		old := p.lastSent()
		held := p.lastSent()
		p.flying = p.flying[:len(p.flying)-1]
		p.play(2 * time.Second)
		altered := bytes.Clone(old)
		altered[len(altered)-1] ^= 1
		for name, c := range map[string]struct {
			datagram []byte
			want     Verdict
		}{"a copy": {old, Duplicate}, "an altered copy": {altered, Duplicate}, "one that was held back": {held, Late}} {
			if v := p.server.inputFrom(time.Now(), otherAddr, c.datagram); v != c.want || p.server.s.validation != nil {
				t.Errorf("%s: verdict %d, want %d; a validation began: %v", name, v, c.want, p.server.s.validation != nil)
			}
		}
	})
}

// TestClientAcceptsNoLongHeader: a client that takes a datagram with a long header would take it
// from any address.
func TestClientAcceptsNoLongHeader(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.server.s.long = true
		for _, from := range []Path{serverAddr, otherAddr} {
			p.send(p.server, "x")
			if v := p.client.inputFrom(time.Now(), from, p.last()); v != WrongSession || len(p.client.payloads) > 0 {
				t.Errorf("from %v: verdict %d", from, v)
			}
		}
	})
}

// TestForgedRetry: a retry with another nonce than that of the client's hellos, which an off-path
// attacker does not know, changes nothing.
func TestForgedRetry(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		h := p.client.s.handshake
		before, sent := *h, p.client.s.Stats().DatagramsSent
		forged := wire.AppendRetry(nil, wire.Retry{Nonce: testNonce + 1, Cookie: [wire.CookieSize]byte{7}})
		if v := p.client.input(time.Now(), forged); v != Unexpected || h.hello.Cookie != before.hello.Cookie || len(h.hello.Message) != 0 || p.client.s.Stats().DatagramsSent != sent {
			t.Errorf("verdict %d, cookie %x", v, h.hello.Cookie)
		}
		p.connect()
	})
}

// TestFloodOfChallenges verifies that responses are limited to responseRate.
func TestFloodOfChallenges(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.server.s.validation = p.server.s.newValidation(time.Now())
		before := p.client.s.Stats().DatagramsSent
		for range 1000 {
			p.server.s.challenge(time.Now(), clientAddr)
		}
		for _, f := range p.flying {
			p.client.input(time.Now(), f.data)
		}
		if n := p.client.s.Stats().DatagramsSent - before; n != uint64(responseRate.Burst) {
			t.Errorf("%d datagrams answer 1000 challenges, want %v", n, responseRate.Burst)
		}
	})
}

// TestUnanswered: a client is deaf after 2 s without an answer, then after 4 s more, and not while
// it is answered or only answers heartbeats itself.
func TestUnanswered(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.run(time.Second / 4)
		for _, asks := range []bool{false, true} {
			if p.client.s.sendHeartbeat(time.Now(), asks); p.client.s.unanswered.waiting() != asks {
				t.Errorf("the client waits: %v, want %v", !asks, asks)
			}
		}
		for range 200 {
			p.run(100 * time.Millisecond)
			if p.client.s.TakeUnanswered() {
				t.Fatal("deaf although the server answers")
			}
		}
		p.play(time.Second)
		p.client.cut = true
		var deaf []time.Time
		for end := time.Now().Add(testTimeout - time.Second); time.Now().Before(end); {
			p.run(10 * time.Millisecond)
			if p.client.s.TakeUnanswered() {
				deaf = append(deaf, time.Now())
			}
		}
		if len(deaf) < 2 || deaf[1].Sub(deaf[0]).Round(100*time.Millisecond) != 2*unansweredAfter {
			t.Errorf("deaf at %v, want two times, %v apart", deaf, 2*unansweredAfter)
		}
	})
}

// validating returns the server's session with a validation.
func validating(t *testing.T, p *pair) *Session {
	t.Helper()
	p.connect()
	s := p.server.s
	s.validation = s.newValidation(time.Now())
	return s
}

// respond passes the server the correct response of an address to the challenge of ago rounds
// before.
func respond(s *Session, from Path, ago uint32) Verdict {
	return respondMoved(s, from, ago, 0)
}

// respondMoved is respond of a client that knows of some changes of its address.
func respondMoved(s *Session, from Path, ago uint32, generation uint8) Verdict {
	v := s.validation
	token, round := v.token(from), v.round-ago
	r := wire.Response{Data: [wire.ChallengeSize]byte(append(token[:], byte(round), byte(round>>8), byte(round>>16))), Generation: generation}
	verdict, _ := s.receiveResponse(time.Now(), from, wire.AppendResponse(nil, r))
	return verdict
}

// TestRoundAge: only the responses to the last maxRounds rounds are right.
func TestRoundAge(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		s := validating(t, p)
		s.validation.round = 1000
		for ago, want := range map[uint32]Verdict{0: Accepted, maxRounds - 1: Accepted, maxRounds: Unexpected, 1 << 23: Unexpected, 1<<24 - 1: Unexpected} {
			if got := respond(s, otherAddr, ago); got != want {
				t.Errorf("%d rounds ago: verdict %d, want %d", ago, got, want)
			}
		}
	})
}

// TestGenerationRound: after a client has reported a change of its address, the first response to a
// later round shows where it is. In earlier rounds its new address may not have been challenged,
// and a relay of the old one may have won.
func TestGenerationRound(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		s := validating(t, p)
		s.validation.round = 1000
		for i, c := range []struct {
			from Path
			ago  uint32
			want Path // the current address afterwards
		}{
			{otherAddr, 0, clientAddr}, {otherAddr, 1, clientAddr}, {otherAddr, 2, clientAddr}, {movedAddr, 3, clientAddr}, {movedAddr, 0, movedAddr},
		} {
			if i == 4 {
				s.challengeAll(time.Now())
			}
			if v := respondMoved(s, c.from, c.ago, 1); v != Accepted || s.Remote() != c.want {
				t.Errorf("response %d: verdict %d, the server has %v, want %v", i, v, s.Remote(), c.want)
			}
		}
	})
}

// TestValidationEnds: a validation without a datagram from another address for 3 s ends.
func TestValidationEnds(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		s := validating(t, p)
		s.observeAddress(time.Now(), otherAddr, s.window.Next())
		time.Sleep(3*time.Second - time.Millisecond)
		if s.observeAddress(time.Now(), clientAddr, s.window.Next()); s.validation == nil {
			t.Error("ended early")
		}
		time.Sleep(time.Millisecond)
		if s.observeAddress(time.Now(), clientAddr, s.window.Next()); s.validation != nil {
			t.Error("did not end")
		}
	})
}

// TestHelloFromElsewhere: the address of a repeated hello is contested, as the hello can be a copy.
func TestHelloFromElsewhere(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.run(2 * oneWay)
		s := NewServer(time.Now(), Grant{Remote: clientAddr, ID: testID}, Config{Timeout: testTimeout, Output: func(Path, []byte) {}})
		if s.Hello(time.Now(), clientAddr); !s.contestedUntil.IsZero() {
			t.Error("contested after a hello from the same address")
		}
		if s.Hello(time.Now(), otherAddr); s.Remote() != otherAddr || !s.contestedUntil.Equal(time.Now().Add(contestPeriod)) {
			t.Errorf("contested until %v", s.contestedUntil)
		}
	})
}

// TestSample: each datagram between two rounds has the same chance that its address is challenged.
// The round begins 25 ms after the first one at least. A candidate is part of the sample unless it
// answered lately.
func TestSample(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		s := validating(t, p)
		const addrs, rounds = 40, 1000
		last := withPort(otherAddr, addrs-1)
		challenged := 0
		for range rounds {
			for i := range uint16(addrs) {
				s.observeAddress(time.Now(), withPort(otherAddr, i), s.window.Next())
			}
			if d := time.Until(s.validation.next); d < 25*time.Millisecond {
				t.Fatalf("the next round begins after %v", d)
			}
			for _, a := range s.validation.sample {
				if a == last {
					challenged++
				}
			}
			s.challengeAll(time.Now())
		}
		p.flying = nil
		if want := rounds * maxCandidates / addrs; challenged < want/2 || challenged > want*2 {
			t.Errorf("the last of %d addresses was challenged in %d of %d rounds, want about %d", addrs, challenged, rounds, want)
		}
		respond(s, otherAddr, 0)
		if s.observeAddress(time.Now(), otherAddr, s.window.Next()); len(s.validation.sample) != 0 {
			t.Error("a candidate that has answered is in the sample")
		}
		time.Sleep(responseLife)
		if s.observeAddress(time.Now(), otherAddr, s.window.Next()); len(s.validation.sample) != 1 {
			t.Error("a candidate that has not answered lately is not in the sample")
		}
	})
}
