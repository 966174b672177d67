package session

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// dropped passes datagrams to an end, and fails if they are not dropped for one of these reasons,
// or change any state except counters.
func (p *pair) dropped(e *end, datagrams [][]byte, reasons ...Verdict) {
	p.t.Helper()
	before, sent := *e.s, len(p.flying)
	for i, b := range datagrams {
		if v := e.input(time.Now(), b); !slices.Contains(reasons, v) {
			p.t.Errorf("%s: datagram %d: verdict %d", e.name, i, v)
		}
	}
	after := *e.s
	after.stats, before.stats = Stats{}, Stats{}
	if after.window != before.window || after.received != before.received || after.remote != before.remote || after.state != before.state ||
		after.long != before.long || after.heartbeat != before.heartbeat || after.lossProbe != before.lossProbe || after.validation != before.validation || after.generation != before.generation || after.number != before.number {
		p.t.Errorf("%s: changed from %+v to %+v", e.name, before, after)
	}
	if len(p.flying) != sent {
		p.t.Errorf("%s sent something", e.name)
	}
}

func TestFlippedBits(t *testing.T) {
	for _, suite := range []seal.Suite{seal.AES128GCM, seal.AES128CTRHMAC8, seal.ChaCha20SipHash8} {
		inPair(t, func(t *testing.T, p *pair) {
			p.suite = suite
			p.connect()
			for _, e := range []*end{p.client, p.server} {
				other := p.client
				if e == p.client {
					other = p.server
				}
				b := p.datagrams(other, 1)[0]
				var altered [][]byte
				for bit := range 8 * len(b) {
					altered = append(altered, bytes.Clone(b))
					altered[bit][bit/8] ^= 1 << (bit % 8)
				}
				p.dropped(e, altered, Malformed, WrongSession, Unauthenticated, Duplicate, Late, Unexpected)
				if v := e.input(time.Now(), b); v != Payload {
					t.Errorf("%s: the real one: verdict %d", e.name, v)
				}
			}
		})
	}
}

func TestReplay(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		sent := p.datagrams(p.client, 3000)
		for _, b := range sent {
			p.server.input(time.Now(), b)
		}
		p.dropped(p.server, sent, Duplicate, Late)
	})
}

// TestReflection sends each end its own datagrams.
func TestReflection(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		for _, e := range []*end{p.client, p.server} {
			p.dropped(e, p.datagrams(e, 1), Unauthenticated, Duplicate)
		}
	})
}

// TestAnotherSession sends datagrams of one session to a later session of the same ends.
func TestAnotherSession(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		strange := p.datagrams(p.client, 100)
		p.server.s = nil
		p.client.s = NewClient(time.Now(), testRequest(), p.config(p.client, p.server))
		p.connect()
		p.dropped(p.server, strange, Unauthenticated, Duplicate)
	})
}

// TestOldEpoch replays a datagram one epoch later, when its truncated number is valid again.
func TestOldEpoch(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		old := p.datagrams(p.client, 1)
		h, err := wire.ParseHeader(old[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, next := range []uint64{1 << seal.EpochBits, 1<<seal.EpochBits + uint64(h.Number) - 1} {
			p.client.s.next = next
			// The window advances by less than half the range of truncated numbers at a time.
			for at := p.server.s.window.Next(); at < next; at += 1 << (wire.DataNumberBits - 2) {
				p.server.s.window.Mark(at)
			}
			for _, b := range p.datagrams(p.client, 1) {
				if v := p.server.input(time.Now(), b); v != Payload {
					t.Fatalf("number %d: verdict %d", next, v)
				}
			}
		}
		p.dropped(p.server, old, Unauthenticated)
	})
}

// TestMalformedButAuthentic verifies that an authentic datagram that cannot be parsed is dropped
// and the session stays open.
func TestMalformedButAuthentic(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		for k := wire.ReliableKind; k <= wire.ProbeKind; k++ {
			p.client.s.sendKind(time.Now(), serverAddr, k, bytes.Repeat([]byte{0xff}, 100))
			if v := p.server.input(time.Now(), p.last()); v != Malformed || p.server.s.State() != Open {
				t.Errorf("kind %d: verdict %d", k, v)
			}
		}
	})
}

func TestHandshakeDatagramsToAServer(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.dropped(p.server, [][]byte{
			wire.AppendRetry(nil, wire.Retry{Nonce: testNonce}),
			wire.AppendRefuse(nil, wire.Refuse{Nonce: testNonce}),
			wire.AppendUnknown(nil, wire.Unknown{Echo: wire.Header{Long: true, ID: testID}}),
		}, Unexpected)
	})
}

// TestFloodOfQuestions verifies that answers to heartbeats and probes are limited to answerRate. No
// answer is longer than its question, except by two bytes for an empty probe.
func TestFloodOfQuestions(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.run(10 * time.Second)
		const seconds, each = 5, 1000
		answers := [2]int{}
		for i := range seconds * each {
			time.Sleep(time.Second / each)
			p.flying = nil
			probe := i % 2
			if probe == 0 {
				p.client.s.sendHeartbeat(time.Now(), true)
			} else {
				p.client.s.sendKind(time.Now(), serverAddr, wire.ProbeKind, nil)
			}
			question := p.flying[0].data
			p.server.input(time.Now(), question)
			got := p.flying[1:]
			if len(got) > 1 || len(got) == 1 && len(got[0].data) > len(question)+2*probe {
				t.Fatalf("%d bytes are answered by %+v", len(question), got)
			}
			answers[probe] += len(got)
		}
		most := int(answerRate.Burst + seconds*answerRate.PerSecond)
		if sum := answers[0] + answers[1]; answers[0] == 0 || answers[1] == 0 || sum < most-1 || sum > most {
			t.Errorf("%d and %d answers in %d s, want %d together", answers[0], answers[1], seconds, most)
		}
	})
}

// TestFloodOfMoves verifies that challenges and migrations are rate-limited if a client sends from
// many addresses.
func TestFloodOfMoves(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.run(10 * time.Second)
		before := p.server.s.Stats()
		const seconds, each = 5, 1000
		for i := range seconds * each {
			time.Sleep(time.Second / each)
			from := withPort(otherAddr, uint16(1000+i/50%40))
			p.client.s.Rebound(time.Now())
			for len(p.flying) > 0 {
				f := p.flying[0]
				p.flying = p.flying[1:]
				if f.to == p.server {
					f.from = from
				}
				f.to.inputFrom(time.Now(), f.from, f.data)
			}
			p.advance(time.Now(), p.server)
		}
		const rounds = seconds*uint64(time.Second/roundInterval) + 1
		now := p.server.s.Stats()
		if n := now.PathMigrations - before.PathMigrations; n < seconds || n > rounds {
			t.Errorf("%d moves in %d s, want some, but %d at most", n, seconds, rounds)
		}
		most := rounds*(2*maxCandidates+2) + uint64(answerRate.Burst+seconds*answerRate.PerSecond)
		if n := now.DatagramsSent - before.DatagramsSent; n > most {
			t.Errorf("%d datagrams in %d s, want %d at most", n, seconds, most)
		}
	})
}
