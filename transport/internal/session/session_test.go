package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

func TestHandshake(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.run(oneWay)
		if p.server.s.State() != Connecting {
			t.Error("a hello alone opened the server's session")
		}
		p.run(2 * oneWay)
		if p.server.s.State() != Open {
			t.Error("the client's first datagram did not open the server's session")
		}
		p.connect()
		if p.client.s.ID() != testID || p.client.s.Tag() != p.server.s.Tag() {
			t.Errorf("client has id %x and tag %d", p.client.s.ID(), p.client.s.Tag())
		}
		for _, e := range []*end{p.client, p.server} {
			smoothed, last := e.s.RTT()
			if smoothed != 2*oneWay || last != 2*oneWay {
				t.Errorf("%s: round trip %v, last %v, want %v", e.name, smoothed, last, 2*oneWay)
			}
		}
	})
}

func TestHandshakeSurvivesLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.server.cut = true
		p.run(time.Second)
		p.server.cut, p.client.cut = false, true
		p.run(time.Second)
		p.client.cut = false
		p.run(helloInterval)
		p.connect()
		if p.client.s.Stats().DatagramsSent < 8 {
			t.Error("the client did not repeat its hello")
		}
		if smoothed, _ := p.client.s.RTT(); smoothed != 2*oneWay {
			t.Errorf("round trip %v, want %v: a repeated hello must not be measured", smoothed, 2*oneWay)
		}
	})
}

func TestHandshakeGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.client.cut = true
		p.run(testTimeout - time.Millisecond)
		if p.client.s.State() != Connecting {
			t.Errorf("the client gave up early: %v", p.client.s.Err())
		}
		p.run(time.Millisecond)
		if !errors.Is(p.client.s.Err(), ErrTimeout) {
			t.Errorf("client: %v", p.client.s.Err())
		}
		p.client.s = nil // a server waits for less, once the hellos end
		p.run(maxPending)
		if !errors.Is(p.server.s.Err(), ErrTimeout) {
			t.Errorf("server: %v", p.server.s.Err())
		}
	})
}

func TestRefused(t *testing.T) {
	for reason, want := range map[wire.RefuseReason]error{
		wire.RefuseFull: ErrServerFull, wire.RefuseVersion: ErrVersion, 99: ErrVersion,
	} {
		inBubble(t, func(t *testing.T, p *pair) {
			p.server.cut = true
			b := wire.AppendHeader(nil, wire.Header{Kind: wire.RefuseKind})
			forged := wire.AppendRefuse(b, wire.Refuse{Nonce: testNonce + 1, Reason: reason})
			if v := p.client.input(time.Now(), forged); v != Unexpected || p.client.s.State() != Connecting {
				t.Errorf("another client's refuse: verdict %d", v)
			}
			p.client.input(time.Now(), wire.AppendRefuse(b, wire.Refuse{Nonce: testNonce, Reason: reason}))
			if !errors.Is(p.client.s.Err(), want) {
				t.Errorf("reason %d: %v, want %v", reason, p.client.s.Err(), want)
			}
		})
	}
}

func TestWelcomeOfAnotherHello(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		b := wire.AppendHeader(nil, wire.Header{Kind: wire.WelcomeKind})
		other := wire.Welcome{Version: wire.Version, Nonce: testNonce + 1, Session: testID}
		if v := p.client.input(time.Now(), wire.AppendWelcome(b, other)); v != Unexpected || p.client.s.State() != Connecting {
			t.Errorf("verdict %d, state %d", v, p.client.s.State())
		}
	})
}

// A welcome that comes after the second hello may answer either.
func TestAmbiguousWelcomeIsNotMeasured(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.server.cut = true
		p.run(helloInterval + 5*time.Millisecond)
		b := wire.AppendHeader(nil, wire.Header{Kind: wire.WelcomeKind})
		late := wire.Welcome{Version: wire.Version, Nonce: testNonce, Session: testID}
		p.client.input(time.Now(), wire.AppendWelcome(b, late))
		if _, last := p.client.s.RTT(); p.client.s.State() != Open || last != 0 {
			t.Errorf("state %d, round trip %v", p.client.s.State(), last)
		}
	})
}

// A peer whose fragments make no message ends the session: nothing behind them could be delivered.
func TestBrokenReliableChannel(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		const header, fragments = 24, 14 // of KCP; of the longest message
		for sn := range uint32(fragments) {
			segment := make([]byte, wire.MaxBody) // all of them full make more than the longest message
			binary.LittleEndian.PutUint32(segment, uint32(testID>>24&0xffff_ffff))
			segment[4], segment[5] = 81, fragments-1 // a push, and each says that it is the first
			binary.LittleEndian.PutUint32(segment[12:], sn)
			binary.LittleEndian.PutUint32(segment[20:], wire.MaxBody-header)
			p.client.s.sendSegments(segment)
		}
		p.run(oneWay)
		if !errors.Is(p.server.s.Err(), ErrProtocol) {
			t.Errorf("got %v", p.server.s.Err())
		}
	})
}

func TestWelcomeOfAnotherVersion(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		b := wire.AppendHeader(nil, wire.Header{Kind: wire.WelcomeKind})
		p.client.input(time.Now(), wire.AppendWelcome(b, wire.Welcome{Version: 9, Nonce: testNonce, Session: testID}))
		if !errors.Is(p.client.s.Err(), ErrVersion) {
			t.Errorf("got %v", p.client.s.Err())
		}
	})
}

func TestBothChannelsBothWays(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		for i := range 20 {
			for _, e := range []*end{p.client, p.server} {
				p.send(e, fmt.Sprint("payload ", i))
				if err := e.s.SendReliable(time.Now(), []byte(fmt.Sprint("message ", i))); err != nil {
					t.Fatal(err)
				}
			}
			p.run(5 * time.Millisecond)
		}
		p.run(time.Second)
		for _, e := range []*end{p.client, p.server} {
			if len(e.payloads) != 20 || e.payloads[19] != "payload 19" {
				t.Errorf("%s got payloads %q", e.name, e.payloads)
			}
			if len(e.messages) != 20 || e.messages[19] != "message 19" {
				t.Errorf("%s got messages %q", e.name, e.messages)
			}
		}
	})
}

func TestSendOnlyWhileOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		check := func() {
			t.Helper()
			if err := p.client.s.Send(nil); !errors.Is(err, ErrNotOpen) {
				t.Errorf("Send: %v", err)
			}
			if err := p.client.s.SendReliable(time.Now(), []byte("x")); !errors.Is(err, ErrNotOpen) {
				t.Errorf("SendReliable: %v", err)
			}
		}
		check()
		p.connect()
		if err := p.client.s.Send(make([]byte, wire.MaxBody+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a payload that does not fit: %v", err)
		}
		p.send(p.client, strings.Repeat("x", wire.MaxBody))
		p.client.s.Close(wire.CloseNormal, "")
		check()
	})
}

func TestSilentMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.run(time.Minute)
		for _, e := range []*end{p.client, p.server} {
			if e.s.State() != Open {
				t.Errorf("%s: %v", e.name, e.s.Err())
			}
			if n := e.s.Stats().DatagramsSent; n < 60 || n > 70 {
				t.Errorf("%s sent %d datagrams in a silent minute", e.name, n)
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.server.cut = true
		p.run(testTimeout - 2*time.Second)
		if p.server.s.State() != Open || p.client.s.State() != Open {
			t.Fatal("ended early")
		}
		p.run(2 * time.Second)
		if !errors.Is(p.server.s.Err(), ErrTimeout) {
			t.Errorf("server: %v", p.server.s.Err())
		}
		if p.client.s.State() != Open {
			t.Errorf("the client still heard the server, but: %v", p.client.s.Err())
		}
		p.run(testTimeout)
		if !errors.Is(p.client.s.Err(), ErrTimeout) {
			t.Errorf("client: %v", p.client.s.Err())
		}
	})
}

func TestClose(t *testing.T) {
	for name, c := range map[string]struct {
		code wire.CloseCode
		text string
		is   error
		want string
	}{
		"reason":    {wire.CloseNormal, "that's all", ErrClosedByPeer, `"that's all"`},
		"none":      {wire.CloseNormal, "", ErrClosedByPeer, "closed by the peer"},
		"shutdown":  {wire.CloseShutdown, "", ErrPeerShutdown, "shut down"},
		"not UTF-8": {wire.CloseNormal, "\xff\n", ErrClosedByPeer, `"\xff\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *pair) {
				p.connect()
				p.client.s.Close(c.code, c.text)
				p.client.s.Close(c.code, "again")
				if p.client.s.State() != Closed || p.client.s.Err() != nil {
					t.Errorf("client: state %d, %v", p.client.s.State(), p.client.s.Err())
				}
				if len(p.flying) != 3 {
					t.Fatalf("%d copies sent, want 3", len(p.flying))
				}
				p.flying = p.flying[2:] // one is enough
				p.run(time.Second)
				err := p.server.s.Err()
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("server: %v, want %s", err, c.want)
				}
			})
		})
	}
}

func TestDuplicateAndLate(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		var sent [][]byte
		for i := range 70 {
			p.send(p.client, fmt.Sprint(i))
			sent = append(sent, p.flying[len(p.flying)-1].data)
		}
		p.flying = nil
		now := time.Now()
		for _, step := range []struct {
			n    int
			want Verdict
		}{
			{0, Payload},
			{0, Duplicate},
			{2, Payload},
			{1, Payload},
			{1, Duplicate},
			{66, Payload},
			{3, Payload},
			{2, Late},
			{4, Payload},
			{69, Payload},
			{5, Late},
			{6, Payload},
		} {
			if v := p.server.input(now, sent[step.n]); v != step.want {
				t.Errorf("datagram %d: verdict %d, want %d", step.n, v, step.want)
			}
		}
		if want := []string{"0", "2", "1", "66", "3", "4", "69", "6"}; !slices.Equal(p.server.payloads, want) {
			t.Errorf("delivered %q, want %q", p.server.payloads, want)
		}
		// Number 5 is the only one that the window has passed.
		if lost := p.server.s.Stats().Lost; lost != 1 {
			t.Errorf("%d lost, want 1", lost)
		}
	})
}

func TestStrays(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		h := wire.Header{Kind: wire.DataKind, Tag: p.server.s.Tag() ^ 1, Number: uint16(p.client.s.next)}
		if v := p.server.input(time.Now(), wire.AppendHeader(nil, h)); v != Stray {
			t.Errorf("other tag: verdict %d", v)
		}
		h.Tag ^= 1
		h.Number += maxAhead + 1
		if v := p.server.input(time.Now(), wire.AppendHeader(nil, h)); v != Stray {
			t.Errorf("number far ahead: verdict %d", v)
		}
		for _, k := range []wire.Kind{wire.HelloKind, wire.WelcomeKind, wire.RefuseKind, wire.UnknownKind} {
			b := wire.AppendHello(wire.AppendHeader(nil, wire.Header{Kind: k}), wire.Hello{})
			if v := p.server.input(time.Now(), b); v != Unexpected && v != Malformed {
				t.Errorf("kind %d to a server: verdict %d", k, v)
			}
		}
		p.send(p.client, "still here")
		p.run(oneWay)
		if !slices.Equal(p.server.payloads, []string{"still here"}) {
			t.Errorf("delivered %q", p.server.payloads)
		}
	})
}

func TestMalformedDoesNotTakeTheNumber(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		h := wire.Header{Kind: wire.ReliableKind, Tag: p.server.s.Tag(), Number: uint16(p.client.s.next)}
		if v := p.server.input(time.Now(), append(wire.AppendHeader(nil, h), "rubbish"...)); v != Malformed {
			t.Errorf("verdict %d", v)
		}
		p.send(p.client, "real")
		p.run(oneWay)
		if !slices.Equal(p.server.payloads, []string{"real"}) {
			t.Errorf("delivered %q", p.server.payloads)
		}
	})
}

func TestReplace(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pair) {
		p.connect()
		p.server.s.Replace()
		if len(p.flying) != 0 {
			t.Error("something was sent")
		}
		if !errors.Is(p.server.s.Err(), ErrReplaced) {
			t.Errorf("got %v", p.server.s.Err())
		}
	})
}
