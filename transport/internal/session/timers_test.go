package session

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// TestRTT checks that the first measurements count equally, that the later ones are smoothed, and
// that the minimum is that of recent measurements.
func TestRTT(t *testing.T) {
	const ms = time.Millisecond
	var r rtt
	if r.minimum() != 0 {
		t.Errorf("%v before the first measurement", r.minimum())
	}
	for i, c := range []struct{ measured, smoothed, minimum time.Duration }{
		{180, 180, 180},
		{120, 150, 120},
		{150, 150, 120},
		{110, 140, 110},
		{140, 140, 110},
		{140, 140, 110},
		{140, 140, 110},
		{140, 140, 110},
		{220, 150, 110},
		{230, 160, 110}, // two of a period of eight
	} {
		if r.add(c.measured * ms); r.smoothed != c.smoothed*ms || r.minimum() != c.minimum*ms || r.last != c.measured*ms {
			t.Errorf("measurement %d: %v and %v, want %v and %v", i, r.smoothed, r.minimum(), c.smoothed*ms, c.minimum*ms)
		}
	}
	for range 15 {
		r.add(300 * ms)
	}
	if r.minimum() != 300*ms {
		t.Errorf("minimum %v after 15 measurements of 300 ms, want that: the path changed", r.minimum())
	}
}

// TestProbing searches paths that carry datagrams of these sizes.
func TestProbing(t *testing.T) {
	for limit, want := range map[int]int{
		100: 0, 1191: 0, 1200: 1200, 1231: 1200, 1300: 1232, 1372: 1372, 1471: 1452, 1472: 1472, 60000: 1472,
	} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			p.server.limit = limit
			p.run(9 * time.Second)
			c := p.client.s
			if got, most := c.MaxDatagram(), c.MaxPayload(); got != want || most != max(want, 1200)-27 {
				t.Errorf("at most %d bytes pass: found %d and payloads of %d, want %d", limit, got, most, want)
			}
			p.server.payloads = nil
			large := bytes.Repeat([]byte("x"), c.MaxPayload())
			p.send(p.client, string(large))
			if err := c.Send(append(large, 'x')); !errors.Is(err, ErrTooLarge) {
				t.Errorf("a payload that does not fit: %v", err)
			}
			sent := c.Stats().DatagramsSent
			p.run(10 * time.Second)
			if arrived := len(p.server.payloads) == 1; arrived != (want != 0) {
				t.Errorf("at most %d bytes pass: the largest payload arrived: %v", limit, arrived)
			}
			if n := c.Stats().DatagramsSent - sent; n > 14 {
				t.Errorf("%d datagrams in 10 s after the search", n)
			}
			if s := p.server.s; s.MaxDatagram() != 0 || s.MaxPayload() != wire.MaxBody {
				t.Errorf("the server's end: %d, %d", s.MaxDatagram(), s.MaxPayload())
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

// TestProbeBodies: probes of any size are answered if they are zeros, a server never asks, an
// answer has a size of 2 bytes, and none counts that answers no probe of the client.
func TestProbeBodies(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		for _, c := range []struct {
			from, to *end
			kind     wire.Kind
			body     []byte
			want     Verdict
			answers  int
		}{
			{p.client, p.server, wire.ProbeKind, make([]byte, 1000), Accepted, 1},
			{p.client, p.server, wire.ProbeKind, []byte("x"), Malformed, 0},
			{p.client, p.server, wire.ProbeAnswerKind, []byte{0, 5}, Unexpected, 0},
			{p.client, p.server, wire.ProbeAnswerKind, []byte{0}, Malformed, 0},
			{p.server, p.client, wire.ProbeAnswerKind, []byte{0, 5, 0}, Malformed, 0},
			{p.server, p.client, wire.ProbeAnswerKind, []byte{0xff, 0xff}, Accepted, 0},
		} {
			c.from.s.sendKind(c.to.addr, c.kind, c.body)
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

// TestRoundTripsAreFine: what a heartbeat measures is exact to a few microseconds, also when clocks
// have wrapped.
func TestRoundTripsAreFine(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		for range 3 {
			p.run(30 * time.Minute)
			for _, e := range []*end{p.client, p.server} {
				smoothed, last, _ := e.s.RTT()
				for _, d := range []time.Duration{smoothed - 2*oneWay, last - 2*oneWay} {
					if d.Abs() > 5*time.Microsecond {
						t.Errorf("%s: round trip %v and %v, want %v", e.name, smoothed, last, 2*oneWay)
					}
				}
			}
		}
		if _, _, n := p.client.s.RTT(); n < 890 || n > 930 {
			t.Errorf("%d round trips in 90 minutes", n)
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
