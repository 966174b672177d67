package dashboard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/uplink-rpc/uplink/internal/web"
)

// MinToken is the minimum length of a token in bytes.
const MinToken = 16

// controlHeader is a header with the value 1 that every modifying request must have. Pages of other
// sites cannot send it.
const controlHeader = "X-Uplink"

// Guard authorizes requests. On a loopback address without a token it accepts only requests of
// programs on the same machine: with a loopback name in the Host header, so that DNS rebinding
// fails, and without the traces of a proxy, which would publish the dashboard. On another address,
// or if there is a token, requests need the token: in the URL (?token=, which a cookie then
// replaces), or as a bearer token. Modifying requests are accepted only from programs on the same
// machine, from pages of the same origin, with the header X-Uplink: 1. Its methods are safe for
// concurrent use.
type Guard struct {
	loopback bool
	cookie   string   // name of the cookie; it contains the port, because browsers send cookies to all ports
	token    [32]byte // hash of the token
	tokened  bool
}

// passed is the key of a value in the context of requests that a Guard passed.
type passed struct{}

// NewGuard returns the guard of a listener's address. Addresses other than loopback need a token of
// at least MinToken bytes.
func NewGuard(addr net.Addr, token string) (*Guard, error) {
	at, err := netip.ParseAddrPort(addr.String())
	switch {
	case err != nil:
		return nil, fmt.Errorf("dashboard: address %q: want an IP address and a port", addr)
	case token == "" && !at.Addr().Unmap().IsLoopback():
		return nil, fmt.Errorf("dashboard: on %v, which is no loopback address, a token is needed", at)
	case token != "" && len(token) < MinToken:
		return nil, fmt.Errorf("dashboard: the token has %d characters, want at least %d", len(token), MinToken)
	}
	return &Guard{
		loopback: at.Addr().Unmap().IsLoopback(),
		cookie:   fmt.Sprintf("uplink_%d", at.Port()),
		token:    sha256.Sum256([]byte(token)),
		tokened:  token != "",
	}, nil
}

// ReadOnly reports whether the guard refuses all modifying requests.
func (g *Guard) ReadOnly() bool { return !g.loopback }

// Handler returns a handler that passes authorized requests to h.
func (g *Guard) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if !g.tokened {
			if err := web.Local(r); err != nil {
				web.Refuse(w, http.StatusForbidden, err)
				return
			}
		}
		if g.tokened && isRead(r) && g.is(sha256.Sum256([]byte(r.URL.Query().Get("token")))) {
			g.admit(w, r)
			return
		}
		if g.tokened && !g.authorized(r) {
			web.Refuse(w, http.StatusUnauthorized, errors.New("a token is needed: open the URL that the server printed, with ?token= at its end"))
			return
		}
		if err := g.control(r); err != nil {
			web.Refuse(w, http.StatusForbidden, err)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passed{}, true)))
	})
}

func (g *Guard) is(hash [32]byte) bool { return subtle.ConstantTimeCompare(hash[:], g.token[:]) == 1 }

func (g *Guard) authorized(r *http.Request) bool {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.is(sha256.Sum256([]byte(bearer)))
	}
	c, err := r.Cookie(g.cookie)
	if err != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.ticket())) == 1
}

// ticket returns the value of the cookie, from which the token cannot be computed.
func (g *Guard) ticket() string {
	sum := sha256.Sum256(append([]byte("uplink cookie "), g.token[:]...))
	return hex.EncodeToString(sum[:])
}

// admit sets the cookie and makes the browser reload without the token. It sends a page rather than
// a redirection, because browsers omit the cookie when a link of another site is redirected.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	q.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: q.Encode()} // not //elsewhere
	h := w.Header()
	h.Set("Refresh", "0; url="+to.String())
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.ticket(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	fmt.Fprintln(w, "The token is right.")
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// control returns the reason to refuse a modifying request.
func (g *Guard) control(r *http.Request) error {
	if isRead(r) {
		return nil
	}
	switch {
	case !g.loopback:
		return errors.New("nothing can be set from here: the server listens on another address than loopback")
	case r.Header.Get(controlHeader) != "1":
		return fmt.Errorf("the header %s: 1 is missing", controlHeader)
	}
	return cmp.Or(web.Local(r), web.SameOrigin(r))
}
