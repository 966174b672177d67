// Package admission decides which clients a listener accepts: it checks cookies and limits,
// performs handshakes, and verifies connect tokens. It has no socket and no sessions. For a sender
// without a valid cookie it computes one or two MACs. For a sender with a validated address, within
// rate limits, it performs a key exchange. It keeps state only for clients with a valid token,
// until the token has expired.
//
// It uses two clocks. The times passed to its methods are monotonic: only the time since
// Config.Started is used. Only the expiry and age of tokens are compared with the wall clock,
// Config.Wall, which may step at any time.
package admission

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
)

// Cookies validate the address of a hello's sender. They are not safe for concurrent use.
type Cookies struct{ cookies *seal.Cookies }

// NewCookies returns cookies with a new secret.
func NewCookies(now time.Time) *Cookies { return &Cookies{seal.NewCookies(nil, now)} }

// Valid reports whether the listener sent the hello's cookie to the address from.
func (c *Cookies) Valid(now time.Time, from netip.AddrPort, h wire.Hello) bool {
	return h.Cookie != [wire.CookieSize]byte{} && c.cookies.Check(h.Cookie, from, h.Nonce, now)
}

// Retry returns the answer to a hello without a valid cookie.
func (c *Cookies) Retry(now time.Time, from netip.AddrPort, h wire.Hello) wire.Retry {
	return wire.Retry{Nonce: h.Nonce, Cookie: c.cookies.Make(from, h.Nonce, now)}
}

// Config configures a Controller.
type Config struct {
	// Keys are the keys of the listener, without duplicates.
	Keys []token.Key
	// Server reports whether tokens that name a server address are accepted.
	Server func(server netip.AddrPort) bool
	// Route, if not empty, is the route id that tokens must have.
	Route []byte
	// Suites are the permitted suites in order of preference.
	Suites []seal.Suite
	// PerNetwork limits the handshakes of one network of senders (/24 of IPv4, /64 of IPv6), Total
	// the handshakes of all.
	PerNetwork, Total ratelimit.Rate
	// Wall returns the time of the wall clock. It must not be nil.
	Wall func() time.Time
	// Started is when the listener started, on the monotonic clock of the methods' times.
	Started time.Time
	// AnyAge accepts tokens that were issued before the listener started, or by a clock that is
	// ahead. Otherwise tokens from before the start are stale, since they may have been used.
	AnyAge bool
	// Random is the source of keys and secrets; nil selects crypto/rand. It must not fail.
	Random io.Reader
}

// serverKey is a key of the listener.
type serverKey struct {
	static seal.StaticKey
	token  token.Key
}

// Controller performs and limits the handshakes of a listener. It is not safe for concurrent use.
type Controller struct {
	cfg     Config
	started time.Time // Config.Started, converted to the wall clock at that time
	keys    map[token.KeyID]serverKey
	limiter *limiter
	used    usedTokens
}

const (
	// issueUnit is the precision to which the times in tokens are rounded down.
	issueUnit = time.Millisecond
	// clockSkew is the maximum time by which the clock of an issuer may be ahead of the listener's.
	// If the listener is restarted within this time after a token was used, it may accept the token
	// again.
	clockSkew = session.MaxTokenAhead
)

// Hash is a hash of the message in a hello. Repeated hellos have the same hash.
type Hash [sha256.Size]byte

// HashOf returns the hash of a message.
func HashOf(message []byte) Hash { return sha256.Sum256(message) }

// The errors of [Controller.Read].
var (
	// ErrUnreadable means that a message was encrypted for another key, or was altered.
	ErrUnreadable = seal.ErrHandshake
	// ErrBusy means that too many used tokens are remembered.
	ErrBusy = errors.New("admission: too many used tokens")
)

// New returns a Controller.
func New(cfg Config) *Controller {
	c := &Controller{
		cfg:     cfg,
		started: cfg.Wall(),
		limiter: newLimiter(cfg.PerNetwork, cfg.Total),
		used:    usedTokens{tokens: make(map[token.ID]usedToken)},
	}
	c.SetKeys(cfg.Keys)
	return c
}

// SetKeys replaces the keys. Used tokens remain used.
func (c *Controller) SetKeys(keys []token.Key) {
	c.keys = make(map[token.KeyID]serverKey, len(keys))
	for _, k := range keys {
		c.keys[k.ID()] = serverKey{seal.NewStaticKey(k.Private()), k}
	}
}

// SetServer replaces Config.Server.
func (c *Controller) SetServer(server func(netip.AddrPort) bool) { c.cfg.Server = server }

// KeyIDs returns the ids of the listener's keys.
func (c *Controller) KeyIDs() string {
	var ids []string
	for id := range c.keys {
		ids = append(ids, id.String())
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// HasKey reports whether the listener has the key of a hello.
func (c *Controller) HasKey(h wire.Hello) bool {
	_, ok := c.keys[h.Key]
	return ok
}

func (c *Controller) since(now time.Time) time.Duration { return max(now.Sub(c.cfg.Started), 0) }

// Allow reports whether the rate limits permit a handshake with the address from, and counts it.
func (c *Controller) Allow(now time.Time, from netip.Addr) bool {
	return c.limiter.allow(c.since(now), from)
}

// Request is a client's request, read from its hello.
type Request struct {
	Claims  token.Claims // the zero value unless Code is [wire.Granted]
	Suite   seal.Suite
	Code    wire.Code // code of the answer
	Detail  uint64    // detail of a refusal: see [wire.Grant]
	Client  uint64    // client id of the token, 0 if the token is not authentic
	Offered uint8     // suites of the client: see [wire.Offer]
	Hash    Hash      // hash of the hello

	// Token is the id of the token; zero if the token is not authentic.
	Token token.ID
	// Times names, if the token was refused because of its times, these and the listener's clock.
	Times string

	nonce     uint64
	used      usedToken // entry for the request's token
	responder *seal.Responder
}

// Read reads a hello with a valid cookie, and verifies its token. The caller must recognize
// repeated hellos itself, because their token is used. The error is [ErrUnreadable] or [ErrBusy].
func (c *Controller) Read(now time.Time, h wire.Hello) (*Request, error) {
	since, wall := c.since(now), c.cfg.Wall()
	if c.used.full(since, wall) {
		return nil, ErrBusy
	}
	key, ok := c.keys[h.Key]
	if !ok {
		return nil, ErrUnreadable
	}
	r := &Request{
		Hash: HashOf(h.Message), nonce: h.Nonce,
		responder: seal.NewResponder(c.cfg.Random, key.static, session.Prologue),
	}
	payload, err := r.responder.Hello(h.Message)
	if err != nil {
		return nil, ErrUnreadable
	}
	offer, err := wire.ParseOffer(payload)
	if err != nil {
		return nil, ErrUnreadable
	}
	claims, id, err := key.token.Open(offer.Token)
	if err != nil {
		r.Code = wire.TokenRefused
		return r, nil
	}
	r.Client, r.Offered = claims.ClientID, offer.Suites
	r.Token, r.used = id, newUsedToken(since, wall, claims.Expires)
	r.Code = c.verify(since, wall, claims, id)
	switch r.Code {
	case wire.TokenExpired, wire.TokenStale, wire.TokenAhead:
		text := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
		r.Times = fmt.Sprintf("issued %s, expires %s, clock of the server %s", text(claims.Issued), text(claims.Expires), text(wall))
	default:
	}
	switch r.Code {
	case wire.TokenExpired:
		r.Detail = seconds(wall.Sub(claims.Expires))
	case wire.TokenStale:
		r.Detail = seconds(c.started.Sub(claims.Issued))
	case wire.TokenAhead:
		r.Detail = wire.AheadDetail(int64(claims.Issued.Sub(wall)/time.Second), wall.Unix())
	case wire.Granted:
		if r.Suite, r.Code = chooseSuite(c.cfg.Suites, offer.Suites); r.Code == wire.NoSuite {
			for _, s := range c.cfg.Suites {
				r.Detail |= 1 << s
			}
		}
	default:
	}
	if r.Code == wire.Granted {
		r.Claims = claims
	}
	return r, nil
}

func seconds(d time.Duration) uint64 { return uint64(max(d, 0) / time.Second) }

// verify returns the code for a token. now is the monotonic time, wall the time of the wall clock.
func (c *Controller) verify(now time.Duration, wall time.Time, claims token.Claims, id token.ID) wire.Code {
	switch {
	case !wall.Before(claims.Expires) || c.used.outlived(claims.Expires):
		return wire.TokenExpired
	case c.used.has(id):
		return wire.TokenUsed
	case !slices.ContainsFunc(claims.Servers, c.cfg.Server), len(c.cfg.Route) > 0 && !bytes.Equal(c.cfg.Route, claims.Route):
		return wire.TokenServer
	case !c.cfg.AnyAge && claims.Issued.After(wall.Add(clockSkew)):
		return wire.TokenAhead
	case !c.cfg.AnyAge && c.stale(now, wall, claims.Issued):
		return wire.TokenStale
	}
	return wire.Granted
}

// stale reports whether a token was issued before the listener started. If the wall clock was set
// back after the start, new tokens seem older than the start. In this case the token is compared
// with the wall clock's current time.
func (c *Controller) stale(now time.Duration, wall, issued time.Time) bool {
	end := issued.Add(issueUnit) // the issue time was before this
	if end.After(c.started) {
		return false
	}
	return !end.After(wall.Add(-now))
}

// chooseSuite returns the first suite that is offered, or the code [wire.NoSuite].
func chooseSuite(suites []seal.Suite, offered uint8) (seal.Suite, wire.Code) {
	for _, s := range suites {
		if offered>>s&1 == 1 {
			return s, wire.Granted
		}
	}
	return seal.None, wire.NoSuite
}

// Welcome returns the welcome with the request's code. If the code is [wire.Granted], the welcome
// contains the session's id, Welcome returns the secrets too, and the token is used from then on.
// Call it once per request. An error means that the client's key is invalid; there is no answer
// then.
func (c *Controller) Welcome(r *Request, id uint64) (welcome []byte, secrets seal.Secrets, err error) {
	grant := wire.Grant{Code: r.Code, Detail: r.Detail}
	if r.Code == wire.Granted {
		grant.ID, grant.Suite, grant.Detail = id, uint8(r.Suite), 0
	}
	msg, secrets, err := r.responder.Welcome(nil, wire.AppendGrant(nil, grant))
	if err != nil {
		return nil, seal.Secrets{}, err
	}
	if r.Code == wire.Granted {
		c.Reserve(r)
	}
	return wire.AppendWelcome(nil, wire.Welcome{Nonce: r.nonce, Message: msg}), secrets, nil
}

// Reserve marks the token of a request as used, before the request is answered.
func (c *Controller) Reserve(r *Request) { c.used.add(r.Token, r.used) }

// Release makes the token of a reserved request unused again.
func (c *Controller) Release(r *Request) { delete(c.used.tokens, r.Token) }
