package ds

import (
	"cmp"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// A player may call each RPC Config.RateSlack times as often as it declared, with bursts of two
// seconds of that: frames that the network held back and delivers all at once must not count
// against the player. Two things are limited. Payloads are counted before they are decoded, since
// decoding costs time. Frames are counted afterwards, since only then it is known which of them are
// new: redundant frames are free.
const (
	// burstSeconds is the size of bursts, in seconds at the permitted rate.
	burstSeconds = 2
	// controlHz is the permitted rate of requests to bind and replies to offers, on both channels
	// together, and of datagrams besides frames and acks. A client repeats a request to bind four
	// times a second until it is answered.
	controlHz = 50
	// spareFrames is added to bursts of frames, for RPCs with a very low declared rate.
	spareFrames = rpcdelta.MaxHeld
	// spareReliable is added to bursts on the reliable channel: the frames that can wait in it
	// while the network is interrupted.
	spareReliable = 512
	// minBindings is the number of bindings that a player may always have.
	minBindings = 8
)

func (c *Config) rate(hz float64) ratelimit.Rate {
	perSecond := c.RateSlack * hz
	return ratelimit.Rate{PerSecond: perSecond, Burst: burstSeconds * perSecond}
}

func (c *Config) frameRate(hz float64, reliable bool) ratelimit.Rate {
	r := c.rate(hz)
	r.Burst += spareFrames
	if reliable {
		r.Burst += spareReliable
	}
	return r
}

// allow reports whether the player may send one more message of type t. Requests to bind and
// replies to offers have a rate limit of their own: each costs the server more than a frame.
// Reliable frames and the game's messages are limited where they are received.
func (p *Player) allow(t control.Type, body []byte, a *arrival) bool {
	switch {
	case t == control.Bind || t == control.Reply:
		rate := ratelimit.Rate{PerSecond: controlHz, Burst: burstSeconds*controlHz + float64(p.server.maxBindings())} // reconnecting binds all RPCs at once
		return p.requests.Take(a.since, rate, 1)
	case a.reliable:
		return true
	}
	rate := p.rate
	if s := p.streams.Load(); s != nil { // it acks worlds too
		rate = p.server.cfg.rate(controlHz + p.hz + s.AckHz())
	}
	payloads := 1 // to be decoded or answered
	if t == control.Bundle {
		f := control.ParseBundle(body)
		payloads = f.Left()
	}
	return p.messages.Take(a.since, rate, float64(payloads))
}

func (p *Player) grant(hz float64) {
	p.hz += hz
	p.rate = p.server.cfg.rate(controlHz + p.hz)
}

// maxCalls is the number of calls of Joined and Left that may wait for Poll before connections are
// refused: clients could otherwise add to them without bound. Calls for players who are connected
// are added in any case.
func (s *Server) maxCalls() int64 {
	return 2 * int64(cmp.Or(s.cfg.MaxPlayers, transport.DefaultMaxConns))
}

// maxBindings is the number of bindings that a player may have: each costs a ring of frames.
func (s *Server) maxBindings() int {
	if s.cfg.MaxBindings != 0 {
		return s.cfg.MaxBindings
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(minBindings, 2*len(s.rpcs))
}
