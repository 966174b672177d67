package ds

import (
	"cmp"
	"errors"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// A player may call each RPC Config.RateSlack times as often as it declared, and
// after a rest twice as many at once as in a second: what the network held back
// and then delivers all together must not count against anybody. Two things are
// bounded by that. Payloads are counted before they are decoded, since that is what
// costs time; frames after, since only then it is known which of them are new: older
// ones that ride along are free.
const (
	// limitDepth is for how long a burst may go on, in seconds.
	limitDepth = 2
	// controlRate is how many requests to bind and replies to offers a player may send, a
	// second and on both channels together, and how many datagrams beyond its frames and acks.
	// A client repeats a request to bind four times a second until it is answered.
	controlRate = 50
	// spareFrames may come at once though the declared rate is next to nothing.
	spareFrames = rpcdelta.MaxHeld
	// spareReliable may come at once over the reliable channel: as many as can wait in
	// it for a network that was away.
	spareReliable = 512
)

var errLimited = errors.New("ds: more frames than the RPC's declared rate allows")

// rate is what a stream with so many calls a second may take.
func (c *Config) rate(hz float64) ratelimit.Rate {
	perSecond := c.RateSlack * hz
	return ratelimit.Rate{PerSecond: perSecond, Burst: limitDepth * perSecond}
}

// frameRate is what one binding may take.
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
		return p.requests.Take(a.since, p.server.requestRate(), 1)
	case a.reliable:
		return true
	}
	rate := p.rate
	if d := p.down.Load(); d != nil { // it acks what is sent down, too
		rate = p.server.cfg.rate(controlRate + p.hz + d.hz())
	}
	return p.messages.Take(a.since, rate, float64(payloads(t, body)))
}

// requestRate is the rate limit of a player's requests to bind and replies to offers. A client
// that reconnects binds all of its RPCs at once.
func (s *Server) requestRate() ratelimit.Rate {
	return ratelimit.Rate{PerSecond: controlRate, Burst: limitDepth*controlRate + float64(s.maxBindings())}
}

// grant lets the player call so many times a second more.
func (p *Player) grant(hz float64) {
	p.hz += hz
	p.rate = p.server.cfg.rate(controlRate + p.hz)
}

// payloads is how many a message may have that is to be decoded or answered.
func payloads(t control.Type, body []byte) int {
	if t == control.Bundle {
		f := control.ParseBundle(body)
		return f.Left()
	}
	return 1
}

// behindReason is what a client is told that joins while too many calls wait for Poll.
const behindReason = "the game does not poll"

// mostCalls is how many calls of Joined and Left may wait for Poll before nobody is let in: clients
// could otherwise add to them without bound by joining and leaving. Those of players who are connected
// come on top.
func (s *Server) mostCalls() int64 {
	return 2 * int64(cmp.Or(s.cfg.MaxPlayers, transport.DefaultMaxConns))
}

// leastBindings is how many bindings a player may always have.
const leastBindings = 8

// maxBindings is how many a player may have of all RPCs together: each costs a ring
// of frames.
func (s *Server) maxBindings() int {
	if s.cfg.MaxBindings != 0 {
		return s.cfg.MaxBindings
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(leastBindings, 2*len(s.rpcs))
}
