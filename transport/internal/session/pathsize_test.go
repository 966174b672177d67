package session

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

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

// TestProbe answers probes that are zeros, of any size.
func TestProbe(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		for body, want := range map[string]Verdict{string(make([]byte, 1000)): Accepted, "x": Malformed} {
			p.client.s.sendKind(serverAddr, wire.ProbeKind, []byte(body))
			probe := p.flying[len(p.flying)-1].data
			p.flying = nil
			if v := p.server.input(time.Now(), probe); v != want {
				t.Errorf("verdict %d, want %d", v, want)
			}
			if want == Accepted && (len(p.flying) != 1 || p.client.input(time.Now(), p.flying[0].data) != Accepted) {
				t.Error("no answer, or one that the client does not take")
			}
		}
		if got := p.client.s.MaxDatagram(); got != 0 {
			t.Errorf("an answer to none of its own probes counts: %d", got)
		}
	})
}

// TestStrayProbeAnswers: a server never asks, and an answer has a size of 2 bytes.
func TestStrayProbeAnswers(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		for _, c := range []struct {
			from, to *end
			body     []byte
			want     Verdict
		}{
			{p.client, p.server, []byte{0, 5}, Unexpected},
			{p.client, p.server, []byte{0}, Malformed},
			{p.server, p.client, []byte{0, 5, 0}, Malformed},
			{p.server, p.client, []byte{0xff, 0xff}, Accepted},
		} {
			c.from.s.sendKind(c.to.addr, wire.ProbeAnswerKind, c.body)
			if v := c.to.input(time.Now(), p.flying[len(p.flying)-1].data); v != c.want {
				t.Errorf("%s, % x: verdict %d, want %d", c.to.name, c.body, v, c.want)
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
