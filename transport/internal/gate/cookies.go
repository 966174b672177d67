package gate

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Cookies show that the sender of a hello owns its address. They are not safe for concurrent use.
type Cookies struct{ cookies *seal.Cookies }

// NewCookies returns cookies with a secret of their own.
func NewCookies(now time.Time) *Cookies { return &Cookies{seal.NewCookies(nil, now)} }

// Knows reports whether the hello's cookie is one that its sender was sent to its address.
func (c *Cookies) Knows(now time.Time, from netip.AddrPort, h wire.Hello) bool {
	return h.Cookie != [wire.CookieSize]byte{} && c.cookies.Check(h.Cookie, from, h.Nonce, now)
}

// Retry returns the answer to a hello without such a cookie.
func (c *Cookies) Retry(now time.Time, from netip.AddrPort, h wire.Hello) wire.Retry {
	return wire.Retry{Nonce: h.Nonce, Cookie: c.cookies.Make(from, h.Nonce, now)}
}
