package session

import (
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// hintFor returns an unknown-session hint that echoes a datagram.
func hintFor(datagram []byte) []byte {
	h, _ := wire.ParseHeader(datagram)
	return wire.AppendUnknown(nil, wire.Unknown{Echo: h})
}

// lastSent sends a payload from the client and returns its datagram.
func (p *pair) lastSent() []byte {
	p.t.Helper()
	p.send(p.client, "x")
	return p.flying[len(p.flying)-1].data
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
		if !errors.Is(p.client.s.Err(), ErrSessionLost) {
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
