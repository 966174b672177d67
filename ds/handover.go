package ds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
)

const (
	// handoverLife is the time for which the token of a handover is valid.
	handoverLife = 30 * time.Second
	// handoverWait is the time in which the data of a handover must arrive after the client has
	// connected.
	handoverWait = 10 * time.Second
	// handoverLinger is the time for which the old server keeps a session after the client has
	// switched, for what is still on its way.
	handoverLinger = 10 * time.Second
)

// handoverRate limits the handovers of a player. A client ends the session above 4 a minute that
// fail, so that there is one to spare for those that the network delays.
var handoverRate = ratelimit.Rate{PerSecond: 4. / 60, Burst: 3}

// MaxHandover is the maximum size of HandoverConfig.Payload in bytes.
const MaxHandover = control.MaxHandover

// Target is a server to which a player is handed over.
type Target struct {
	// Addrs are 1 to 8 addresses at which the client reaches the server, in the order in which it
	// tries them. One of them must be one of the server's Config.Addrs.
	Addrs []netip.AddrPort
	// Route is the server's Config.Route, if it is behind a proxy.
	Route []byte
	// Key is the server's key; default that of this server, for servers that share one.
	Key token.IssuerKey
}

// HandoverConfig configures [Player.Handover]. The zero value of each field means its default.
type HandoverConfig struct {
	// Tick is the tick of a world of this server from which the handover counts: the client plays
	// here until it has received that tick or a later one. At 0, the default, it switches as soon
	// as it is ready. World is the name of that world; default the only one that the player has
	// subscribed to.
	Tick  uint64
	World string
	// Payload is the game's data for the other server, at most [MaxHandover] bytes: see
	// [Player.HandoverPayload]. The client can read it, but cannot change it.
	Payload []byte
	// UserData is Player.UserData at the other server; default that of this one.
	UserData []byte
}

// handover is the state of a player with respect to handovers to another server.
type handover struct {
	mu      sync.Mutex
	pending bool // neither completed nor failed

	switching bool             // pending, or completed
	taken     ratelimit.Bucket // of handoverRate

	// Of the shard's goroutine:
	switched time.Time // when the client had switched; zero: it has not
}

// begun reports whether a handover is pending or completed.
func (h *handover) begun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.switching
}

// Handover hands the player over to another server, without a gap: the client connects there while
// it plays on here, and switches when it has bound its RPCs there and receives the worlds, from
// HandoverConfig.Tick on. Handover does not wait. Config.HandedOver is called with the outcome. If
// the client cannot reach the other server, or is refused there, the player stays.
//
// At the other server, Config.Joined is called before the client switches, when the payload has
// arrived. There the player has the same [Player.ClientID], and [Player.UserData] unless the
// configuration has another.
//
// No reliable message is lost or doubled, in either direction. What the client sends before it
// switches arrives at this server, what it sends later at the other one. Requests and streams
// continue at the server where they began, for at most 10 s. What this server sends is delivered,
// until the client has everything: then SendReliable returns an error that wraps
// session.ErrHandedOver, and Config.Left is called with that reason.
//
// One handover of a player can be pending, and 3 can fail at once and 4 a minute; beyond that, or
// if too many streams are open, the error is session.ErrBacklog. After a handover it wraps
// session.ErrHandedOver.
func (p *Player) Handover(to Target, cfg HandoverConfig) error {
	n, err := p.notice(&to, &cfg)
	if err == nil {
		err = p.sendHandover(&n, slices.Clone(cfg.Payload))
	}
	if err != nil {
		return fmt.Errorf("ds: hand over player %d: %w", p.ID(), err)
	}
	p.server.cfg.Logger.Info("handover", "player", p.ID(), "server", to.Addrs[0], "tick", cfg.Tick, "payload", len(cfg.Payload))
	return nil
}

// notice returns the notice of a handover, with a new token.
func (p *Player) notice(to *Target, cfg *HandoverConfig) (n control.HandoverNotice, err error) {
	n = control.HandoverNotice{Stream: control.NoStream, Size: len(cfg.Payload)}
	if len(cfg.Payload) > MaxHandover {
		return n, fmt.Errorf("a payload of %d bytes, at most %d", len(cfg.Payload), MaxHandover)
	}
	if cfg.Tick != 0 {
		if n.Stream, err = p.streams.Load().Find(cfg.World); err != nil {
			return n, err
		}
		if n.Tick = cfg.Tick; n.Tick > control.MaxTick {
			return n, fmt.Errorf("tick %d, at most %d", n.Tick, uint64(control.MaxTick))
		}
	}
	for _, a := range to.Addrs {
		n.Servers = append(n.Servers, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
	}
	if len(cfg.Payload) > 0 {
		n.Hash = sha256.Sum256(cfg.Payload)
	}
	key, data := to.Key, cfg.UserData
	if key.IsZero() {
		key = (*p.server.keys.Load())[0].Issuer()
	}
	if data == nil {
		data = p.UserData()
	}
	now := time.Now()
	n.Token, err = token.Issue(key, token.Claims{
		ClientID: p.ClientID(), Issued: now, Expires: now.Add(handoverLife), Servers: n.Servers, UserData: data, Handover: n.Hash, Route: to.Route,
	})
	return n, err
}

func (p *Player) sendHandover(n *control.HandoverNotice, payload []byte) error {
	h := &p.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.pending:
		return fmt.Errorf("%w: a handover is pending", session.ErrBacklog)
	case h.switching:
		return fmt.Errorf("%w already", session.ErrHandedOver)
	case !h.taken.Take(time.Since(p.opened), handoverRate, 1):
		return fmt.Errorf("%w: more than %v handovers at once and %.0f a minute", session.ErrBacklog, handoverRate.Burst, 60*handoverRate.PerSecond)
	}
	w, err := p.bulk.SendReserved(time.Now(), control.HandoverStream, payload, p.handoverOver)
	if err != nil {
		return err
	}
	if err := p.conn.SendReliable(control.AppendHandover(nil, n)); err != nil {
		w.Abort("") // which the client ignores without the notice
		return err
	}
	h.pending, h.switching = true, true
	p.conn.Keep(true) // the other server may hand it back before the session here is over
	return nil
}

// handoverOver handles the outcome of a handover, on the shard's goroutine: the error of its
// stream.
func (p *Player) handoverOver(err error) {
	p.handover.mu.Lock()
	pending := p.handover.pending
	p.handover.pending, p.handover.switching = false, p.handover.pending && err == nil
	p.handover.mu.Unlock()
	if !pending {
		return
	}
	cause := session.ErrHandedOver
	switch {
	case err == nil:
		p.handover.switched = time.Now()
		p.shard.switched = append(p.shard.switched, p)
	case errors.Is(err, session.ErrUnhandled):
		err = fmt.Errorf("ds: %w: the client supports no handovers", session.ErrUnhandled)
	case errors.Is(err, session.ErrStreamAborted):
		err = fmt.Errorf("ds: %w: the client stays", session.ErrHandover)
	}
	if err != nil {
		cause = err
		p.conn.Keep(false)
	}
	p.note(eventOf("handover", cause), "", nil)
	if f := p.server.outcome.Load(); f != nil {
		(*f)(p, err)
	}
	if f := p.server.cfg.HandedOver; f != nil {
		p.shard.callback(p, func() { f(p, err) })
	}
}

// finishHandovers ends the sessions of players who have switched to another server, once nothing is
// on its way any more.
func (h *shard) finishHandovers(now time.Time) {
	h.switched = slices.DeleteFunc(h.switched, func(p *Player) bool {
		if _, joined := h.players[p]; !joined {
			return true
		}
		p.asked.Lock()
		requests := len(p.asked.open)
		p.asked.Unlock()
		if requests == 0 && !p.bulk.Busy() && p.conn.Finish(session.ErrHandedOver) {
			_ = p.conn.Send([]byte{byte(control.Leaving)}) // fails only if the session has ended
		}
		if now.Sub(p.handover.switched) >= handoverLinger {
			p.end(session.ErrHandedOver, "")
		}
		return false
	})
}

// HandoverPayload returns the data with which another server handed the player over
// (HandoverConfig.Payload); nil if there is none. It must not be modified.
func (p *Player) HandoverPayload() []byte { return p.payload }

// acceptHandover returns the function that receives the payload of a handover from another server,
// or nil if the token promises none.
func (p *Player) acceptHandover(r *streams.Reader) func([]byte, error) {
	if !p.awaits.Load() || p.payload != nil {
		return nil
	}
	return func(data []byte, err error) {
		switch {
		case err != nil:
			r.Finish(false)
		case sha256.Sum256(data) != p.conn.Handover():
			p.violate("the data of the handover is not that of the token")
		case p.awaits.Load():
			r.Finish(true)
			p.payload = data
			p.shard.join(p)
		}
	}
}

// expireHandovers ends the sessions whose payload does not arrive.
func (h *shard) expireHandovers(now time.Time) {
	h.awaiting = slices.DeleteFunc(h.awaiting, func(p *Player) bool {
		if _, open := h.players[p]; open && p.awaits.Load() && now.Sub(p.opened) >= handoverWait {
			p.violate("the data of the handover did not arrive")
		}
		return !p.awaits.Load() || now.Sub(p.opened) >= handoverWait
	})
}
