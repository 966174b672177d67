package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Authorize reports whether a request may be served, and answers it otherwise. A request needs the
// header "Authorization: Bearer SECRET"; if the secret is empty, it must be [Local]. A modifying
// request must be [SameOrigin] too.
func Authorize(w http.ResponseWriter, r *http.Request, secret string) bool {
	err, code := SameOrigin(r), http.StatusForbidden
	switch {
	case err != nil:
	case secret == "":
		err = Local(r)
	case !bears(r, secret):
		err, code = errors.New("wrong secret"), http.StatusUnauthorized
	}
	if err != nil {
		Refuse(w, code, err)
	}
	return err == nil
}

// bears reports whether a request has the secret as a bearer token.
func bears(r *http.Request, secret string) bool {
	got, want := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// Refuse answers a request with an error.
func Refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, err.Error(), code)
}

// Local returns an error unless a program of this machine made a request: it came over a loopback
// connection, directly, and names a loopback host. A page of another site cannot name one by DNS
// rebinding. A proxy is recognized by its headers, or by HTTP/1.0, which only proxies use that send
// none.
func Local(r *http.Request) error {
	if err := LocalConnection(r); err != nil {
		return err
	}
	if by := proxied(r); by != "" {
		return fmt.Errorf("the request came through a proxy (%s): without a token or secret, only programs of this machine are served; set one", by)
	}
	if !isLoopback(r.Host) {
		return fmt.Errorf("%q is no name of this machine's loopback address: use http://localhost or http://127.0.0.1, "+
			"or set a token or secret", r.Host)
	}
	return nil
}

// LocalConnection returns an error unless a request came over a connection from a loopback address
// to one.
func LocalConnection(r *http.Request) error {
	to, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopback(to.String()) || !isLoopback(r.RemoteAddr) {
		return errors.New("only connections within this machine are served here, at a loopback address")
	}
	return nil
}

// proxied returns the reason to believe that a request came through a proxy, or "".
func proxied(r *http.Request) string {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return "header " + name
		}
	}
	if !r.ProtoAtLeast(1, 1) {
		return r.Proto
	}
	return ""
}

var crossOrigin = http.NewCrossOriginProtection()

// SameOrigin returns an error if a page of another site made a modifying request.
func SameOrigin(r *http.Request) error {
	if err := crossOrigin.Check(r); err != nil {
		return fmt.Errorf("the request comes from another site: Sec-Fetch-Site is %q, Origin is %q, Host is %q",
			r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin"), r.Host)
	}
	return nil
}

// isLoopback reports whether an address or a host, with or without a port, is a loopback address or
// its name.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
