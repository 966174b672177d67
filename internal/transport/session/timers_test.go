package session

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// TestProbing searches paths that carry datagrams of these sizes.
func TestProbing(t *testing.T) {
	for limit, want := range map[int]int{
		548: 548, 871: 548, 872: 872, 1191: 872, 1200: 1200, 1231: 1200, 1300: 1232, 1372: 1372, 1471: 1452, 1472: 1472, 60000: 1472,
	} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			p.server.limit = limit
			p.client.s.resetPathSize()
			p.run(11 * time.Second)
			c := p.client.s
			if got, most := c.MaxDatagram(), c.MaxPayload(); got != want || most != max(want, 1200)-27 {
				t.Errorf("at most %d bytes pass: found %d and payloads of %d, want %d", limit, got, most, want)
			}
			p.server.payloads = nil
			large := bytes.Repeat([]byte("x"), c.MaxPayload())
			p.send(p.client, string(large))
			if err := c.Send(time.Now(), append(large, 'x')); !errors.Is(err, ErrTooLarge) {
				t.Errorf("a payload that does not fit: %v", err)
			}
			sent := c.Stats().DatagramsSent
			p.run(10 * time.Second)
			if len(p.server.payloads) != 1 || p.server.payloads[0] != string(large) {
				t.Errorf("at most %d bytes pass: %d payloads arrived", limit, len(p.server.payloads))
			}
			if n := c.Stats().DatagramsSent - sent; n > 14 {
				t.Errorf("%d datagrams in 10 s after the search", n)
			}
			if s := p.server.s; s.MaxDatagram() != 0 || s.MaxPayload() != wire.MaxBody {
				t.Errorf("the server's end, which sent nothing large: %d, %d", s.MaxDatagram(), s.MaxPayload())
			}
		})
	}
}

// TestProbingSurvivesAnOutage: what is lost while nothing is heard says nothing of sizes.
func TestProbingSurvivesAnOutage(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.run(1500 * time.Millisecond)
		p.client.cut, p.server.cut = true, true
		p.run(8 * time.Second)
		p.client.cut, p.server.cut = false, false
		p.run(8 * time.Second)
		if got := p.client.s.MaxDatagram(); got != wire.MaxDatagram {
			t.Errorf("found %d, want %d", got, wire.MaxDatagram)
		}
	})
}

// TestProbingRestarts when the client has moved, whether it knows that or not.
func TestProbingRestarts(t *testing.T) {
	for _, knows := range []bool{false, true} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			p.run(9 * time.Second)
			p.server.limit = 1300
			p.client.addr = otherAddr
			if knows {
				p.client.s.Rebound(time.Now())
			}
			p.run(3 * time.Second)
			if got := p.client.s.MaxDatagram(); got > 1232 || p.client.s.MaxPayload() > 1232-27 {
				t.Errorf("soon after: found %d", got)
			}
			p.run(9 * time.Second)
			if got := p.client.s.MaxDatagram(); got != 1232 {
				t.Errorf("found %d, want 1232", got)
			}
		})
	}
}

// TestProbeBodies: probes of any size are answered if they are zeros, an answer has a size of 2
// bytes, and none counts that answers no probe.
func TestProbeBodies(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.client.s.resetPathSize()
		for _, c := range []struct {
			from, to *end
			kind     wire.Kind
			body     []byte
			want     Verdict
			answers  int
		}{
			{p.client, p.server, wire.ProbeKind, make([]byte, 1000), Accepted, 1},
			{p.client, p.server, wire.ProbeKind, []byte("x"), Malformed, 0},
			{p.server, p.client, wire.ProbeKind, make([]byte, 3), Accepted, 1},
			{p.client, p.server, wire.ProbeKind, []byte{0, 5}, Accepted, 0},
			{p.server, p.client, wire.ProbeKind, []byte{0, 5, 0}, Malformed, 0},
			{p.server, p.client, wire.ProbeKind, []byte{0xff, 0xff}, Accepted, 0},
		} {
			c.from.s.sendKind(time.Now(), c.to.addr, c.kind, c.body)
			b := p.last()
			p.flying = nil
			if v := c.to.input(time.Now(), b); v != c.want || len(p.flying) != c.answers {
				t.Errorf("%s, % x: verdict %d, want %d; %d answers", c.to.name, c.body, v, c.want, len(p.flying))
			}
			for _, f := range p.flying {
				if v := c.from.input(time.Now(), f.data); v != Accepted {
					t.Errorf("the answer: verdict %d", v)
				}
			}
		}
		if got := p.client.s.MaxDatagram(); got != 0 {
			t.Errorf("found %d", got)
		}
	})
}

// TestRoundTrips: while the session is not idle, each end measures exactly, about once a second,
// and both together send no more than two heartbeats a second.
func TestRoundTrips(t *testing.T) {
	for _, delay := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 700 * time.Millisecond} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			p.delay = delay
			p.play(20 * time.Second)
			count := func(e *end) (heartbeats, measurements uint64) {
				_, measurements = e.s.path.Last()
				return e.heartbeats, measurements
			}
			sent, measured := [2]uint64{}, [2]uint64{}
			for i, e := range []*end{p.client, p.server} {
				sent[i], measured[i] = count(e)
			}
			const seconds = 60
			p.play(seconds * time.Second)
			total := uint64(0)
			for i, e := range []*end{p.client, p.server} {
				heartbeats, measurements := count(e)
				total += heartbeats - sent[i]
				if n := measurements - measured[i]; n < seconds-2 || n > seconds+1 {
					t.Errorf("delay %v: %s measured %d times in %d s", delay, e.name, n, seconds)
				}
				if rtt, lowest := e.s.path.RTT(), e.s.path.MinRTT(); rtt != 2*delay || lowest != 2*delay {
					t.Errorf("delay %v: %s has %v and %v", delay, e.name, rtt, lowest)
				}
			}
			if total > 2*seconds+2 {
				t.Errorf("delay %v: %d heartbeats in %d s", delay, total, seconds)
			}
		})
	}
}

// TestForgedEchoes: echoes of numbers that were not asked, old ones, and a hold time that is longer
// than a listener believes, or than the ask's age, measure nothing.
func TestForgedEchoes(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.play(10 * time.Second)
		for _, e := range []*end{p.client, p.server} {
			peer := p.server
			if e == p.server {
				peer = p.client
			}
			send := func(echo uint32, hold time.Duration) bool {
				_, before := e.s.path.Last()
				peer.s.sendKind(time.Now(), e.addr, wire.HeartbeatKind, wire.AppendHeartbeat(nil, wire.Heartbeat{Ask: 1, Echo: echo, Hold: uint32(hold.Microseconds())}))
				e.input(time.Now(), p.last())
				_, after := e.s.path.Last()
				return after != before
			}
			ask := func() uint32 {
				time.Sleep(time.Second)
				return e.s.path.Ask(time.Since(e.s.start), rand.Reader)
			}
			rtt, lowest := e.s.path.RTT(), e.s.path.MinRTT()
			for echo := range uint32(100) {
				if send(echo, 0) || send(-echo, 100*time.Millisecond) {
					t.Errorf("%s measures an echo of %d", e.name, echo)
				}
			}
			if e.s.path.RTT() != rtt || e.s.path.MinRTT() != lowest {
				t.Errorf("%s: RTT %v, minimum %v", e.name, e.s.path.RTT(), e.s.path.MinRTT())
			}
			first := ask()
			time.Sleep(100 * time.Millisecond)
			if got, want := send(first, maxClientHold+time.Microsecond), e == p.client; got != want {
				t.Errorf("%s measures an echo that was held for long: %v, want %v", e.name, got, want)
			}
			if second := ask(); !send(second, 0) || send(second, 0) {
				t.Errorf("%s does not measure an echo once", e.name)
			}
			if third := ask(); send(third, time.Microsecond) {
				t.Errorf("%s measures a negative round trip", e.name)
			}
		}
	})
}

// hintFor returns an unknown-session hint that echoes a datagram.
func hintFor(datagram []byte) []byte {
	h, _ := wire.ParseHeader(datagram)
	return wire.AppendUnknown(nil, wire.Unknown{Echo: h})
}

// lastSent sends a payload from the client and returns its datagram.
func (p *pair) lastSent() []byte {
	p.t.Helper()
	p.send(p.client, "x")
	return p.last()
}

func TestSessionLost(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		hint := hintFor(p.lastSent())
		p.flying = nil
		p.server.s, p.server.cut = nil, true // it restarts
		p.client.input(time.Now(), hint)
		if len(p.flying) != 1 || !p.client.s.lossProbe.IsZero() {
			t.Error("the client did not name its session at once")
		}
		p.client.input(time.Now(), hintFor(p.flying[0].data)) // the listener does not know that either
		if len(p.flying) != 2 {
			t.Error("the client did not ask at once")
		}
		p.run(lossProbePeriod - time.Millisecond)
		if p.client.s.State() != Open {
			t.Errorf("ended early: %v", p.client.s.Err())
		}
		p.run(time.Millisecond)
		if !errors.Is(p.client.s.Err(), ErrUnknown) {
			t.Errorf("got %v", p.client.s.Err())
		}
	})
}

func TestForgedHintDoesNothing(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		sent := p.client.s.Stats().DatagramsSent
		for range 100 {
			p.client.input(time.Now(), hintFor(p.lastSent()))
		}
		if n := p.client.s.Stats().DatagramsSent - sent; n != 102 {
			t.Errorf("%d datagrams were sent, want 100 and two heartbeats", n)
		}
		p.run(5 * time.Second)
		if p.client.s.State() != Open || !p.client.s.lossProbe.IsZero() {
			t.Errorf("got %v", p.client.s.Err())
		}
	})
}

func TestHintSurvivesOneLostAnswer(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.client.cut = true
		p.client.input(time.Now(), hintFor(p.lastSent()))
		p.run(lossProbePeriod - 2*lossProbeInterval)
		p.client.cut = false
		p.run(time.Second)
		if p.client.s.State() != Open {
			t.Errorf("got %v", p.client.s.Err())
		}
	})
}

func TestHintMustEchoALateDatagram(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		old := hintFor(p.lastSent())
		for range lossProbeNumbers {
			p.lastSent()
		}
		next := wire.Header{Kind: wire.DataKind, Number: uint32(p.client.s.next)}
		otherID := wire.Header{Kind: wire.DataKind, Long: true, ID: testID + 1, Number: next.Number - 1}
		for name, b := range map[string][]byte{
			"too old":       old,
			"not sent":      hintFor(wire.AppendHeader(nil, next)),
			"other session": hintFor(wire.AppendHeader(nil, otherID)),
		} {
			if v := p.client.input(time.Now(), b); v != Unexpected || !p.client.s.lossProbe.IsZero() || p.client.s.long {
				t.Errorf("%s: verdict %d", name, v)
			}
		}
	})
}

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
