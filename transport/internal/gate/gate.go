// Package gate decides whom a listener lets in: it checks cookies, limits handshakes, does them, and judges
// connect tokens. It has no socket and no sessions. What it does for a stranger is, in this order:
// one or two MACs; then, for whoever has shown to own its address, and not too often, a key exchange; and then,
// for whoever has a good token, an entry in a table until the token cannot be valid any more.
//
// It uses two clocks. The times passed to its methods are monotonic: the gate uses nothing of them but the
// duration since Config.Started. Only the expiry and the age of tokens are judged by the wall clock, Config.Wall,
// which may step at any time.
package gate

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Config is what a gate is made with.
type Config struct {
	Key token.Key
	// Good reports whether a token that names an address is good here.
	Good func(server netip.AddrPort) bool
	// Suites are those that are taken, the best first.
	Suites []seal.Suite
	// Each and All limit the handshakes of a network of senders (/24 of IPv4, /64 of IPv6), and of all.
	Each, All Rate
	// Wall returns the time of the wall clock. It must not be nil.
	Wall func() time.Time
	// Started is when the listener started, on the clock of the times passed to the methods.
	Started time.Time
	// AnyAge accepts tokens that were issued before the listener started. They are stale otherwise, since
	// they may have been used before.
	AnyAge bool
	// Random is the source of keys and secrets: nil means crypto/rand. It must not fail.
	Random io.Reader
}

// Gate is not safe for concurrent use.
type Gate struct {
	cfg     Config
	started time.Time // Config.Started on the wall clock as it was then
	key     seal.StaticKey
	limiter *limiter
	used    used
}

const (
	// issueUnit is the precision of the times in tokens, which are rounded down to it.
	issueUnit = time.Millisecond
	// clockSkew is how far the clock of an issuer may be ahead after the listener's clock was set back.
	clockSkew = time.Minute
)

// Hash names the key exchange's message of a hello: who repeats it sends the same.
type Hash [sha256.Size]byte

// HashOf returns the hash of a message.
func HashOf(message []byte) Hash { return sha256.Sum256(message) }

// The errors of [Gate.Read].
var (
	// ErrUnreadable means that a message is made for another key than the gate's.
	ErrUnreadable = seal.ErrHandshake
	// ErrBusy means that too many tokens would have to be remembered.
	ErrBusy = errors.New("gate: too many used tokens")
)

// New returns a gate.
func New(cfg Config) *Gate {
	return &Gate{
		cfg:     cfg,
		started: cfg.Wall(),
		key:     seal.NewStaticKey(cfg.Key.Private()),
		limiter: newLimiter(cfg.Each, cfg.All),
		used:    used{tokens: make(map[token.ID]usedToken)},
	}
}

// since returns the monotonic time since the start.
func (g *Gate) since(now time.Time) time.Duration { return max(now.Sub(g.cfg.Started), 0) }

// Admit reports whether there may be one more handshake with that address now.
func (g *Gate) Admit(now time.Time, from netip.AddrPort) bool {
	return g.limiter.take(g.since(now), from.Addr())
}

// Guest is the sender of a hello that could be read.
type Guest struct {
	Claims token.Claims // the zero value if the code is not [wire.Granted]
	Suite  seal.Suite
	Code   wire.Code // what it is to be told
	Hash   Hash      // of its hello

	nonce     uint64
	id        token.ID
	used      usedToken // if its token is used
	responder *seal.Responder
}

// Read reads a hello with a good cookie, and judges its token: a hello that comes again is for whoever keeps the
// sessions to answer, and has used its token here. The error is [ErrUnreadable] or [ErrBusy]: there is no guest then.
func (g *Gate) Read(now time.Time, h wire.Hello) (*Guest, error) {
	since, wall := g.since(now), g.cfg.Wall()
	if g.used.full(since, wall) {
		return nil, ErrBusy
	}
	guest := &Guest{
		Hash: HashOf(h.Message), nonce: h.Nonce,
		responder: seal.NewResponder(g.cfg.Random, g.key, session.Prologue),
	}
	payload, err := guest.responder.Hello(h.Message)
	if err != nil {
		return nil, ErrUnreadable
	}
	offer, err := wire.ParseOffer(payload)
	if err != nil {
		return nil, ErrUnreadable
	}
	claims, id, err := g.cfg.Key.Open(offer.Token)
	if err != nil {
		guest.Code = wire.TokenRefused
		return guest, nil
	}
	guest.id, guest.used = id, newUsedToken(since, wall, claims.Expires)
	guest.Code = g.judge(since, wall, claims, id)
	if guest.Code == wire.Granted {
		guest.Code = guest.choose(g.cfg.Suites, offer.Suites)
	}
	if guest.Code == wire.Granted {
		guest.Claims = claims
	}
	return guest, nil
}

// judge returns the code for a token that is shown at the monotonic time now and at the time wall.
func (g *Gate) judge(now time.Duration, wall time.Time, c token.Claims, id token.ID) wire.Code {
	switch {
	case !wall.Before(c.Expires) || g.used.outlived(c.Expires):
		return wire.TokenExpired
	case g.used.has(id):
		return wire.TokenUsed
	case !slices.ContainsFunc(c.Servers, g.cfg.Good):
		return wire.TokenServer
	case !g.cfg.AnyAge && g.stale(now, wall, c.Issued):
		return wire.TokenStale
	}
	return wire.Granted
}

// stale reports whether a token was issued before the listener started. If the wall clock was set back since the
// start, new tokens seem to be older than the start: the clock as it is now decides about those.
func (g *Gate) stale(now time.Duration, wall, issued time.Time) bool {
	end := issued.Add(issueUnit) // it was issued before that
	if end.After(g.started) {
		return false
	}
	return !end.After(wall.Add(-now)) || issued.After(wall.Add(clockSkew))
}

// choose takes the best suite that was offered.
func (guest *Guest) choose(suites []seal.Suite, offered uint8) wire.Code {
	for _, s := range suites {
		if offered>>s&1 == 1 {
			guest.Suite = s
			return wire.Granted
		}
	}
	return wire.NoSuite
}

// Answer returns the welcome that tells the guest its code, and if that is [wire.Granted], the session's id and
// secrets; its token is used then. It is called once for a guest. The error is that of a client whose key
// is none, and which gets no answer.
func (g *Gate) Answer(guest *Guest, id uint64) (welcome []byte, secrets seal.Secrets, err error) {
	grant := wire.Grant{Code: guest.Code}
	if guest.Code == wire.Granted {
		grant.ID, grant.Suite = id, uint8(guest.Suite)
	}
	msg, secrets, err := guest.responder.Welcome(nil, wire.AppendGrant(nil, grant))
	if err != nil {
		return nil, seal.Secrets{}, err
	}
	if guest.Code == wire.Granted {
		g.used.add(guest.id, guest.used)
	}
	return wire.AppendWelcome(nil, wire.Welcome{Nonce: guest.nonce, Message: msg}), secrets, nil
}
