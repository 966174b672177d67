package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

func TestHandshake(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.run(3 * oneWay)
		if p.server.s.State() != Connecting {
			t.Error("a hello alone opened the server's session")
		}
		p.run(2 * oneWay)
		if p.server.s.State() != Open {
			t.Error("the client's first datagram did not open the server's session")
		}
		p.connect()
		if p.client.s.ID() != testID || p.client.s.Suite() != p.suite {
			t.Errorf("client has id %x and suite %v", p.client.s.ID(), p.client.s.Suite())
		}
		for _, e := range []*end{p.client, p.server} {
			smoothed := e.s.path.RTT()
			last, _ := e.s.path.Last()
			if smoothed != 2*oneWay || last != 2*oneWay {
				t.Errorf("%s: round trip %v, last %v, want %v", e.name, smoothed, last, 2*oneWay)
			}
		}
	})
}

func TestHandshakeSurvivesLoss(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.server.cut = true
		p.run(time.Second)
		p.server.cut, p.client.cut = false, true
		p.run(time.Second)
		p.client.cut = false
		p.run(2 * maxHelloWait)
		p.connect()
		if p.client.s.Stats().DatagramsSent < 8 {
			t.Error("the client did not repeat its hello")
		}
		if smoothed := p.client.s.path.RTT(); smoothed != 2*oneWay {
			t.Errorf("round trip %v, want %v: a repeated hello must not be measured", smoothed, 2*oneWay)
		}
	})
}

// TestHelloWaits verifies when hellos are repeated: soon at first, and once the path's round-trip
// time is known, after 1.5 times that.
func TestHelloWaits(t *testing.T) {
	for name, c := range map[string]struct {
		retry time.Duration // when it is received; 0: never
		want  []time.Duration
	}{
		"silent server":     {0, []time.Duration{0, 100, 250, 475, 725, 975}},
		"short round trip":  {20, []time.Duration{0, 20, 120, 270, 495, 745, 995}},
		"100 ms":            {100, []time.Duration{0, 100, 100, 250, 475, 725, 975}},
		"a lost first one":  {220, []time.Duration{0, 100, 220, 470, 720, 970}},
		"beyond the limits": {900, []time.Duration{0, 100, 250, 475, 725, 900}},
	} {
		t.Run(name, func(t *testing.T) {
			inPair(t, func(t *testing.T, p *pair) {
				p.server.cut = true
				begin, sent := time.Now(), []time.Duration{0}
				for at := time.Duration(1); at < 1000; at++ {
					time.Sleep(time.Millisecond)
					before := p.client.s.Stats().DatagramsSent
					p.client.s.Advance(time.Now())
					if at == c.retry {
						p.client.input(time.Now(), wire.AppendRetry(nil, wire.Retry{Nonce: testNonce, Cookie: [wire.CookieSize]byte{7}}))
					}
					for range p.client.s.Stats().DatagramsSent - before {
						sent = append(sent, time.Since(begin)/time.Millisecond)
					}
				}
				if !slices.Equal(sent, c.want) {
					t.Errorf("hellos at %d ms, want %d", sent, c.want)
				}
			})
		})
	}
}

func TestHandshakeGivesUp(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.run(2 * oneWay)
		p.client.cut = true
		p.run(testTimeout - 2*oneWay - time.Millisecond)
		if p.client.s.State() != Connecting {
			t.Errorf("the client gave up early: %v", p.client.s.Err())
		}
		p.run(time.Millisecond)
		if !errors.Is(p.client.s.Err(), ErrTimeout) {
			t.Errorf("client: %v", p.client.s.Err())
		}
		if !errors.Is(p.server.s.Err(), ErrTimeout) { // it waits for less
			t.Errorf("server: %v", p.server.s.Err())
		}
	})
}

func TestRefused(t *testing.T) {
	for reason, want := range map[wire.RefuseReason]error{
		wire.RefuseKey: token.ErrWrongKey, wire.RefuseVersion: ErrVersion, 99: ErrVersion, wire.RefuseBusy: ErrServerBusy, wire.RefuseStore: transport.ErrStore,
	} {
		inPair(t, func(t *testing.T, p *pair) {
			p.server.cut = true
			forged := wire.AppendRefuse(nil, wire.Refuse{Nonce: testNonce + 1, Reason: reason})
			if v := p.client.input(time.Now(), forged); v != Unexpected || p.client.s.handshake.refusal != nil {
				t.Errorf("another client's refuse: verdict %d", v)
			}
			p.client.input(time.Now(), wire.AppendRefuse(nil, wire.Refuse{Nonce: testNonce, Reason: reason}))
			if p.client.s.State() != Connecting {
				t.Errorf("reason %d: a hint ended the handshake at once", reason)
			}
			wait := refusalWait
			if reason == wire.RefuseBusy || reason == wire.RefuseStore {
				wait = testTimeout
			}
			p.run(wait)
			if !errors.Is(p.client.s.Err(), want) {
				t.Errorf("reason %d: %v, want %v", reason, p.client.s.Err(), want)
			}
		})
	}
}

// TestForgedRefuseDoesNotEndAHandshake verifies that a welcome overrides an unauthenticated refuse.
func TestForgedRefuseDoesNotEndAHandshake(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.client.input(time.Now(), wire.AppendRefuse(nil, wire.Refuse{Nonce: testNonce, Reason: wire.RefuseVersion}))
		p.connect()
		p.run(time.Second)
		if p.client.s.State() != Open {
			t.Errorf("got %v", p.client.s.Err())
		}
	})
}

// TestGrantCodes also grants a suite that the client did not offer.
func TestGrantCodes(t *testing.T) {
	for code, want := range map[wire.Code]error{
		wire.TokenExpired: token.ErrExpired, wire.TokenUsed: token.ErrUsed, wire.TokenRefused: token.ErrWrongKey,
		wire.TokenServer: token.ErrWrongServer, wire.TokenStale: token.ErrStale,
		wire.ServerFull: transport.ErrDraining, // with a maximum of 0 players
		wire.NoSuite:    ErrNoSuite, wire.Granted: ErrNoSuite,
	} {
		inPair(t, func(t *testing.T, p *pair) {
			p.code, p.suite = code, seal.None
			p.client.s.handshake.request.Suites = 1 << seal.AES128GCM
			p.run(4 * oneWay)
			if !errors.Is(p.client.s.Err(), want) {
				t.Errorf("code %d: %v, want %v", code, p.client.s.Err(), want)
			}
		})
	}
}

// TestHelloStaysTheSame verifies that after a second retry, for an expired cookie, the hello
// differs only in its cookie.
func TestHelloStaysTheSame(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.run(2 * oneWay)
		first := p.last()
		p.client.input(time.Now(), wire.AppendRetry(nil, wire.Retry{Nonce: testNonce, Cookie: [wire.CookieSize]byte{7}}))
		time.Sleep(maxHelloWait)
		p.client.s.Advance(time.Now())
		second := p.last()
		a, errA := wire.ParseHello(first)
		b, errB := wire.ParseHello(second)
		if errA != nil || errB != nil || len(a.Message) == 0 || !bytes.Equal(a.Message, b.Message) || a.Cookie == b.Cookie {
			t.Errorf("%v, %v: first %x, second %x", errA, errB, first, second)
		}
	})
}

// welcomeFor returns a welcome to the client's last hello, with a nonce.
func (p *pair) welcomeFor(nonce uint64) []byte {
	p.t.Helper()
	for i := len(p.flying) - 1; i >= 0; i-- {
		h, err := wire.ParseHello(p.flying[i].data)
		if err != nil || len(h.Message) == 0 {
			continue
		}
		h.Nonce = nonce
		g, err := testGrant(h, clientAddr, wire.Grant{ID: testID, Suite: uint8(p.suite)})
		if err != nil {
			p.t.Fatal(err)
		}
		return g.Welcome
	}
	p.t.Fatal("the client has sent no message")
	return nil
}

func TestWelcomeOfAnotherHello(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.run(2 * oneWay)
		other := p.welcomeFor(testNonce + 1)
		altered := p.welcomeFor(testNonce)
		altered[len(altered)-1] ^= 1
		spoiled := p.welcomeFor(testNonce)
		clear(spoiled[9 : 9+32]) // an invalid public key
		for i, b := range [][]byte{other, altered, spoiled} {
			want := []Verdict{Unexpected, Unauthenticated, Unauthenticated}[i]
			if v := p.client.input(time.Now(), b); v != want || p.client.s.State() != Connecting {
				t.Errorf("verdict %d, want %d, state %d", v, want, p.client.s.State())
			}
		}
		p.connect()
	})
}

// TestAmbiguousWelcomeIsNotMeasured verifies that the RTT is not measured by a welcome after a
// repeated hello, since it may answer either hello.
func TestAmbiguousWelcomeIsNotMeasured(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		p.run(2 * oneWay)
		p.server.cut = true
		p.run(maxHelloWait + 5*time.Millisecond)
		p.client.input(time.Now(), p.welcomeFor(testNonce))
		if last, _ := p.client.s.path.Last(); p.client.s.State() != Open || last != 0 {
			t.Errorf("state %d, round trip %v", p.client.s.State(), last)
		}
	})
}

// TestBrokenReliableChannel verifies that a message with a malformed size ends the session, since
// no later message could be delivered.
func TestBrokenReliableChannel(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		const header = 24 // of KCP
		segment := make([]byte, header, header+2)
		binary.LittleEndian.PutUint32(segment, uint32(testID>>24&0xffff_ffff))
		segment[4] = 81 // a push
		binary.LittleEndian.PutUint32(segment[20:], 2)
		p.client.s.sendSegments(time.Now(), append(segment, 0xff, 0xff))
		p.run(oneWay)
		if !errors.Is(p.server.s.Err(), ErrProtocol) {
			t.Errorf("got %v", p.server.s.Err())
		}
	})
}

func TestBothChannelsBothWays(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
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
			if len(e.payloads) != 20 || e.payloads[19] != "payload 19" ||
				len(e.messages) != 20 || e.messages[19] != "message 19" {
				t.Errorf("%s got payloads %q and messages %q", e.name, e.payloads, e.messages)
			}
		}
	})
}

func TestSendOnlyWhileOpen(t *testing.T) {
	inPair(t, func(t *testing.T, p *pair) {
		check := func() {
			t.Helper()
			if err := p.client.s.Send(time.Now(), nil); !errors.Is(err, ErrNotOpen) {
				t.Errorf("Send: %v", err)
			}
			if err := p.client.s.SendReliable(time.Now(), []byte("x")); !errors.Is(err, ErrNotOpen) {
				t.Errorf("SendReliable: %v", err)
			}
		}
		check()
		p.connect()
		if err := p.client.s.Send(time.Now(), make([]byte, wire.MaxBody+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a payload that does not fit: %v", err)
		}
		p.send(p.client, strings.Repeat("x", wire.MaxBody))
		p.client.s.Close(ErrQuit, "")
		check()
	})
}

// TestIdle counts the heartbeats of an idle session and their answers, also after a payload.
func TestIdle(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.run(20 * time.Second)
		sent := func() [2]uint64 { return [2]uint64{p.client.s.Stats().DatagramsSent, p.server.s.Stats().DatagramsSent} }
		before := sent()
		p.run(10 * time.Minute)
		if now := sent(); now[0]-before[0] != 100 || now[1]-before[1] != 100 {
			t.Errorf("%d and %d datagrams in ten minutes, want 100 each", now[0]-before[0], now[1]-before[1])
		}
		before = sent()
		p.send(p.client, "x")
		p.run(12 * time.Second)
		if now := sent(); now[0]-before[0] < 7 || now[1]-before[1] < 6 {
			t.Errorf("%d and %d datagrams in the twelve seconds after a call", now[0]-before[0], now[1]-before[1])
		}
	})
}

// TestIdleOverLoss verifies that an idle session survives 30 % packet loss.
func TestIdleOverLoss(t *testing.T) {
	const seed = 5
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	inOpenPair(t, func(t *testing.T, p *pair) {
		for range 8 * 3600 * 4 {
			p.client.cut, p.server.cut = random.Float64() < 0.3, random.Float64() < 0.3
			p.run(250 * time.Millisecond)
		}
		for _, e := range []*end{p.client, p.server} {
			if e.s.State() != Open {
				t.Errorf("%s: %v", e.name, e.s.Err())
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
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
		cause error
		text  string
		is    error
		want  string
	}{
		"reason":    {ErrQuit, "that's all", ErrQuit, `"that's all"`},
		"none":      {ErrQuit, "", ErrQuit, "quit"},
		"violation": {fmt.Errorf("read: %w", ErrProtocol), "", ErrProtocol, "violation"},
		"disguise":  {ErrShutdown, "", ErrQuit, "quit"}, // only a server can shut down
		"not UTF-8": {ErrQuit, "\xff\n", ErrQuit, `"\xff\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			inOpenPair(t, func(t *testing.T, p *pair) {
				p.client.s.Close(c.cause, c.text)
				p.client.s.Close(c.cause, "again")
				if err := p.client.s.Err(); p.client.s.State() != Closed || !errors.Is(err, c.cause) || !strings.HasSuffix(err.Error(), c.text) {
					t.Errorf("client: state %d, %v", p.client.s.State(), err)
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

// datagrams returns the datagrams of count payloads that an end sends and that do not arrive.
func (p *pair) datagrams(e *end, count int) (sent [][]byte) {
	p.t.Helper()
	for i := range count {
		p.send(e, fmt.Sprint(i))
		sent = append(sent, p.last())
	}
	p.flying = nil
	return sent
}

func TestDuplicateAndLate(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		sent := p.datagrams(p.client, 1200)
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
			{2, Duplicate},
			{4, Payload},
			{69, Payload},
			{5, Late},
			{5, Duplicate},
			{6, Payload},
			{1100, Payload},
			{76, Late}, // by the window
			{1036, Late},
			{1037, Payload},
		} {
			if v := p.server.input(now, sent[step.n]); v != step.want {
				t.Errorf("datagram %d: verdict %d, want %d", step.n, v, step.want)
			}
		}
		if want := []string{"0", "2", "1", "66", "3", "4", "69", "6", "1100", "1037"}; !slices.Equal(p.server.payloads, want) {
			t.Errorf("delivered %q, want %q", p.server.payloads, want)
		}
		// Of 0 to 1036 these came in time: 0 to 4, 6, 66, 69.
		if lost := p.server.s.Stats().Lost; lost != 1037-8 {
			t.Errorf("%d lost, want %d", lost, 1037-8)
		}
	})
}

// TestServerCloses checks that both ends have the same reason if the server closes a session.
func TestServerCloses(t *testing.T) {
	for _, cause := range []error{ErrKicked, ErrShutdown, ErrReplaced, ErrProtocol, transport.ErrLimit, ErrServerBusy} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			p.server.s.Close(cause, "text")
			p.run(oneWay)
			for _, e := range []*end{p.client, p.server} {
				if err := e.s.Err(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "text") {
					t.Errorf("%s: %v, want %v", e.name, err, cause)
				}
			}
		})
	}
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.server.s.sendKind(time.Now(), p.server.s.remote, wire.CloseKind, []byte{255})
		p.run(oneWay)
		if err := p.client.s.Err(); !errors.Is(err, ErrKicked) {
			t.Errorf("unknown code: %v", err)
		}
	})
}

// TestReportOfMissingListener reports during a handshake that there is no listener, as an attacker
// can who guesses the client's port: the report counts only if no answer follows, or comes before.
func TestReportOfMissingListener(t *testing.T) {
	report := errors.New("connection refused")
	inPair(t, func(t *testing.T, p *pair) {
		p.client.s.Refused(time.Now(), report)
		p.connect()
		p.client.s.Refused(time.Now(), report)
		p.run(time.Second)
		if p.client.s.State() != Open {
			t.Errorf("a forged report ended the session: %v", p.client.s.Err())
		}
	})
	inPair(t, func(t *testing.T, p *pair) {
		p.server.cut = true
		p.client.s.Refused(time.Now(), report)
		if p.run(refusalWait - time.Millisecond); p.client.s.State() != Connecting {
			t.Errorf("the handshake did not wait for an answer: %v", p.client.s.Err())
		}
		if p.run(time.Millisecond); !errors.Is(p.client.s.Err(), ErrNoServer) || !errors.Is(p.client.s.Err(), report) {
			t.Errorf("after the report: %v", p.client.s.Err())
		}
	})
	inPair(t, func(t *testing.T, p *pair) {
		p.run(3 * oneWay) // it has received a retry
		p.server.cut = true
		if p.client.s.Refused(time.Now(), report); p.client.s.Refusal() != nil {
			t.Error("a report counts after an answer")
		}
	})
}
