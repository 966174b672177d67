package ds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// handoverLife is the time for which the token of a handover is valid, and within which the
	// client must switch.
	handoverLife = 30 * time.Second
	// standbyLife is the time for which the new server keeps a session that the old one has not
	// released. The client may use the token until it expires.
	standbyLife = handoverLife + 10*time.Second
	// handoverLinger is the time for which the old server keeps a session after the client has
	// switched, so that messages in flight still arrive.
	handoverLinger = 10 * time.Second
	// maxHeld limits the messages from a player that wait for the release, in bytes. Beyond it,
	// those of the unreliable channel are dropped, and others end the session.
	maxHeld = 256 << 10
	// heldOverhead is the memory of a held message besides its bytes.
	heldOverhead = 64
)

// handoverRate limits the handovers of a player. A client ends the session at more than 4 failed
// handovers a minute. The limit here is lower by one, because the network may delay handovers.
var handoverRate = ratelimit.Rate{PerSecond: 4. / 60, Burst: 3}

// MaxHandover is the maximum size of HandoverConfig.Payload in bytes.
const MaxHandover = message.MaxHandover

// Target is a server to which a player is handed over.
type Target struct {
	// Addrs are 1 to 8 addresses at which the client reaches the server, in the order in which it
	// tries them. One of them must be one of the server's Config.Addrs.
	Addrs []netip.AddrPort
	// Route is the server's Config.Transport.Route, if it is behind a proxy.
	Route []byte
	// Key is the key of the other server; the default is the key of this server, for servers that
	// share one.
	Key token.IssuerKey
}

// HandoverConfig configures [Player.Handover]. The zero value of each field means its default.
type HandoverConfig struct {
	// Tick is the tick of a world of this server at which the handover takes effect: the client
	// switches only after it has received that tick or a later one. With 0, the default, it
	// switches as soon as it is ready. World is the name of that world; default the only world that
	// the player has subscribed to.
	Tick  uint64
	World string
	// Payload is the game's data for the other server, at most [MaxHandover] bytes: see
	// [Player.HandoverPayload]. The client can read it, but cannot change it.
	Payload []byte
	// UserData is Player.UserData at the other server; default the UserData at this server.
	UserData []byte
}

// handover is the state of a player with respect to handovers to another server.
type handover struct {
	mu       sync.Mutex
	pending  *outbound        // handover that has neither completed nor failed, or nil
	released bool             // a handover has completed, so the player belongs to the other server
	taken    ratelimit.Bucket // bucket of handoverRate

	// Used only by the shard's goroutine:
	switched time.Time // time at which the player was released; zero until then
	release  []byte    // release message that waits for room in the reliable channel
}

// outbound is a handover to another server.
type outbound struct {
	player *Player
	stream *streams.Writer // stream with the payload
	secret message.Secret
	begun  time.Time
}

// standby is the state of a player whom another server hands over, until that server releases the
// player. Only the shard's goroutine uses it, except for over.
type standby struct {
	payload  []byte // payload of the handover; nil until it has arrived
	received bool
	held     []heldMessage
	size     int           // size of held with heldOverhead, in bytes
	over     chan struct{} // closed when Joined is about to be called, or the session has ended
}

// heldMessage is a message that waits for the release.
type heldMessage struct {
	b        []byte
	at       time.Time
	number   uint64
	reliable bool
}

// isReleased reports whether a handover has completed.
func (h *handover) isReleased() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released
}

// Handover hands the player over to another server without an interruption. The client connects to
// the other server while the session here continues. It switches when it has bound its RPCs and
// receives the worlds there, but not before HandoverConfig.Tick. Handover does not wait.
// Config.Hooks.HandedOver is called with the outcome. If the client cannot reach the other server,
// or is refused there, the player stays.
//
// The player belongs to this server until Config.Hooks.HandedOver is called with nil. From then on,
// no frame, message or request of the player is delivered here, and the other server may call
// Config.Joined with the payload: once, or never if the client does not arrive. There the player
// has the same [Player.ClientID], and [Player.UserData] unless the configuration has another.
// Before Joined, Config.Hooks.Connected is called there, for the worlds that the client receives
// before it switches.
//
// If the client has not switched within 30 s, the handover has failed, and the player stays.
//
// No reliable message is lost or doubled, in either direction. Messages that the client sends
// before it switches arrive at this server, later ones at the other server. Requests and streams
// continue at the server where they began, for at most 10 s. Messages of this server are delivered
// until the client has received all of them. Then SendReliable returns an error that wraps
// transport.ErrHandedOver, and Config.Left is called with that reason.
//
// One handover of a player can be pending, and 3 can fail at once and 4 a minute; beyond that, or
// if too many streams are open, the error is transport.ErrBacklog. After a handover it wraps
// transport.ErrHandedOver.
func (p *Player) Handover(to Target, cfg HandoverConfig) error {
	secret := message.NewSecret()
	n, err := p.notice(&to, &cfg, secret)
	if err == nil {
		err = p.sendHandover(&n, slices.Clone(cfg.Payload), secret)
	}
	if err != nil {
		return fmt.Errorf("ds: hand over player %d: %w", p.ID(), err)
	}
	p.server.cfg.Logger.Info("handover", "player", p.ID(), "server", to.Addrs[0], "tick", cfg.Tick, "payload", len(cfg.Payload))
	return nil
}

// notice returns the notice of a handover, with a new token.
func (p *Player) notice(to *Target, cfg *HandoverConfig, secret message.Secret) (n message.HandoverNotice, err error) {
	n = message.HandoverNotice{Stream: message.NoStream, Size: len(cfg.Payload)}
	if len(cfg.Payload) > MaxHandover {
		return n, fmt.Errorf("a payload of %d bytes, at most %d", len(cfg.Payload), MaxHandover)
	}
	if cfg.Tick != 0 {
		if n.Stream, err = p.streams.Load().Find(cfg.World); err != nil {
			return n, err
		}
		if n.Tick = cfg.Tick; n.Tick > message.MaxTick {
			return n, fmt.Errorf("tick %d, at most %d", n.Tick, uint64(message.MaxTick))
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
	issued := time.Now()
	if own := p.conn.Issued(); !issued.After(own) { // the clocks of the two servers may differ
		issued = own.Add(time.Millisecond)
	}
	n.Token, err = token.Issue(key, token.Claims{
		ClientID: p.ClientID(), Issued: issued, Expires: issued.Add(handoverLife), Servers: n.Servers, UserData: data,
		Handover: secret.Hash(cfg.Payload), Route: to.Route,
	})
	return n, err
}

func (p *Player) sendHandover(n *message.HandoverNotice, payload []byte, secret message.Secret) error {
	h := &p.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case h.pending != nil:
		return fmt.Errorf("%w: a handover is pending", transport.ErrBacklog)
	case h.released:
		return fmt.Errorf("%w already", transport.ErrHandedOver)
	case p.awaits.Load():
		return fmt.Errorf("%w: the player has not joined yet", transport.ErrBacklog)
	case !h.taken.Take(now.Sub(p.opened), handoverRate, 1):
		return fmt.Errorf("%w: more than %v handovers at once and %.0f a minute", transport.ErrBacklog, handoverRate.Burst, 60*handoverRate.PerSecond)
	}
	o := &outbound{player: p, secret: secret, begun: now}
	w, err := p.bulk.SendReserved(now, message.HandoverStream, payload, func(err error) {
		switch {
		case errors.Is(err, transport.ErrUnhandled):
			o.fail(fmt.Errorf("ds: %w: the client supports no handovers", transport.ErrUnhandled))
		case errors.Is(err, transport.ErrStreamAborted):
			o.fail(fmt.Errorf("ds: %w: the client stays", transport.ErrHandover))
		case err != nil:
			o.fail(err)
		}
	})
	if err != nil {
		return err
	}
	if err := p.conn.SendReliable(message.AppendHandover(nil, n)); err != nil {
		w.Abort("") // the client ignores the stream without the notice
		return err
	}
	o.stream, h.pending = w, o
	p.shard.mu.Lock()
	p.shard.handing = append(p.shard.handing, o)
	p.shard.mu.Unlock()
	return nil
}

// fail ends a handover that is pending: the player stays. It runs on the shard's goroutine.
func (o *outbound) fail(err error) {
	h := &o.player.handover
	h.mu.Lock()
	pending := h.pending == o
	if pending {
		h.pending = nil
	}
	h.mu.Unlock()
	if pending {
		o.player.noteOutcome(err)
	}
}

// noteOutcome reports the outcome of a handover to the game. It runs on the shard's goroutine.
func (p *Player) noteOutcome(err error) {
	cause := err
	if err == nil {
		cause = transport.ErrHandedOver
	}
	p.note(eventOf("handover", cause), "", nil)
	if f := p.server.outcome.Load(); f != nil {
		(*f)(p, err)
	}
	if f := p.server.cfg.Hooks.HandedOver; f != nil {
		p.shard.callback(p, func() { f(p, err) })
	}
}

// release completes a handover at the request of the client, which has switched to the other
// server. Messages that arrived before are delivered; later ones are not.
func (p *Player) release(a *arrival) {
	h := &p.handover
	h.mu.Lock()
	o := h.pending
	h.pending, h.released = nil, h.released || o != nil
	h.mu.Unlock()
	if o == nil {
		p.reject(a, Malformed, "it switches to another server without a handover")
		return
	}
	h.switched, h.release = a.at, message.AppendRelease(nil, o.secret)
	p.conn.Keep(true) // the other server may hand the player back before this session has ended
	p.shard.switched = append(p.shard.switched, p)
	for _, q := range p.shard.sequencing {
		if q.player == p {
			q.flush()
		}
	}
	if buffers := p.bindings.buffers; len(buffers) > 0 {
		p.shard.callback(p, func() { p.server.buffers.finish(buffers, time.Now()) })
	}
	p.bindings.end()
	p.noteOutcome(nil)
	p.sendRelease()
}

// sendRelease sends the release if the reliable channel has room, and reports whether it was sent.
func (p *Player) sendRelease() bool {
	if h := &p.handover; h.release != nil && p.conn.SendReliable(h.release) == nil {
		h.release = nil
	}
	return p.handover.release == nil
}

// usesFormer reports whether messages of a type are handled after the player was released. These
// are messages about data that this server has sent.
func usesFormer(t message.Type, reliable bool) bool {
	return t == message.Acks || t == message.Reply || t == message.Bound || t == message.Request && reliable
}

// acceptHandover returns the function that receives the payload of a handover from another server,
// or nil if the token promises none.
func (p *Player) acceptHandover(r *streams.Reader) func([]byte, error) {
	if !p.awaits.Load() || p.standby.received {
		return nil
	}
	p.standby.received = true
	return func(data []byte, err error) {
		p.standby.payload = data
		r.Finish(err == nil)
	}
}

// arrive ends the standby if the secret proves that the old server has released the player.
func (p *Player) arrive(secret message.Secret, a *arrival) {
	st := p.standby
	if secret.Hash(st.payload) != p.conn.Handover() {
		p.reject(a, Malformed, "the release or the data of the handover is not that of the token")
		return
	}
	p.payload, p.standby = st.payload, nil
	p.shard.join(p)
	close(st.over)
	for i := range st.held {
		m := &st.held[i]
		a.at, a.since, a.reliable, a.coalesced, a.number = m.at, m.at.Sub(p.shard.start), m.reliable, false, m.number
		p.handle(m.b, a)
	}
}

// usesStandby reports whether messages of a type are handled before the other server has released
// the player. These are messages that prepare the switch.
func usesStandby(t message.Type) bool {
	return t == message.Bind || t == message.Acks || t == message.Reply || t == message.Bound || t == message.Handover
}

// hold stores a message until the release.
func (p *Player) hold(b []byte, a *arrival) {
	st, size := p.standby, len(b)+heldOverhead
	switch {
	case st.size+size <= maxHeld:
		st.size += size
		st.held = append(st.held, heldMessage{slices.Clone(b), a.at, a.number, a.reliable})
	case a.reliable:
		p.exceed("more than %d bytes of messages before the other server has released the player", maxHeld)
	default:
		p.drop(a.at, RateLimited)
	}
}

// receiveHandover handles a message Handover: the client has switched from this server, or to it.
func (p *Player) receiveHandover(b []byte, a *arrival) {
	secret, released, err := message.ParseRelease(b)
	switch {
	case err != nil || released && !p.awaits.Load():
		p.reject(a, Malformed, "malformed handover")
	case released:
		p.arrive(secret, a)
	default:
		p.release(a)
	}
}

// HandoverPayload returns the HandoverConfig.Payload with which another server handed the player
// over; nil if there is none. It must not be modified.
func (p *Player) HandoverPayload() []byte { return p.payload }
