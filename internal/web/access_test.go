package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// request returns a request to a server's address, from another one.
func request(method, host, to, from string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "/", nil)
	r.Host, r.RemoteAddr = host, from
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(to))
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
}

// TestAuthorize makes requests to a server without a secret and to one with a secret.
func TestAuthorize(t *testing.T) {
	const (
		local, remote = "127.0.0.1:9464", "127.0.0.1:50000"
		secret        = "the game's secret"
		bearer        = "Authorization: Bearer " + secret
	)
	for _, c := range []struct {
		name, secret string
		r            *http.Request
		code         int
		text         string
	}{
		{"a program of this machine", "", request("POST", "localhost:9464", local, remote), 200, ""},
		{"by its address", "", request("GET", "127.0.0.5", local, remote), 200, ""},
		{"by IPv6", "", request("POST", "[::1]:9464", "[::1]:9464", "[::1]:50000"), 200, ""},
		{"by IPv4 in IPv6", "", request("POST", "[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]:9464", "[::ffff:127.0.0.1]:50000"), 200, ""},
		{"from outside", "", request("GET", "localhost", "203.0.113.7:9464", "198.51.100.1:50000"), 403, "only connections within this machine"},
		{"by the machine's public address", "", request("GET", "localhost", "203.0.113.7:9464", "203.0.113.7:50000"), 403, "only connections"},
		{"DNS rebinding", "", request("GET", "evil.example:9464", local, remote), 403, `"evil.example:9464" is no name`},
		{"a name that begins like one of loopback", "", request("GET", "127.0.0.1.evil.example", local, remote), 403, "is no name"},
		{"no host", "", request("GET", "", local, remote), 403, "is no name"},
		{"a form of another site", "", request("POST", "localhost", local, remote, "Sec-Fetch-Site: cross-site"), 403, "from another site"},
		{"a subdomain", "", request("POST", "localhost", local, remote, "Sec-Fetch-Site: same-site"), 403, "from another site"},
		{"an old browser", "", request("POST", "localhost", local, remote, "Origin: https://evil.example"), 403, `Origin is "https://evil.example"`},
		{"another port", "", request("PUT", "localhost:9464", local, remote, "Origin: http://localhost:8000"), 403, "from another site"},
		{"no origin to tell", "", request("DELETE", "localhost", local, remote, "Origin: null"), 403, "from another site"},
		{"a page of its own", "", request("POST", "localhost:9464", local, remote, "Origin: http://localhost:9464", "Sec-Fetch-Site: same-origin"), 200, ""},
		{"a link of another site", "", request("GET", "localhost", local, remote, "Sec-Fetch-Site: cross-site"), 200, ""},
		{"X-Forwarded-For", "", request("GET", "localhost", local, remote, "X-Forwarded-For: 198.51.100.1"), 403, "through a proxy (header X-Forwarded-For)"},
		{"X-Forwarded-Host", "", request("GET", "localhost", local, remote, "x-forwarded-host: game.example"), 403, "through a proxy"},
		{"Forwarded", "", request("GET", "localhost", local, remote, "Forwarded: for=198.51.100.1"), 403, "through a proxy"},
		{"Via", "", request("GET", "localhost", local, remote, "Via: 1.1 cache"), 403, "through a proxy"},
		{"X-Real-IP", "", request("GET", "localhost", local, remote, "X-Real-IP: 198.51.100.1"), 403, "through a proxy"},
		{"the secret", secret, request("POST", "game.example", "203.0.113.7:80", "198.51.100.1:50000", bearer), 200, ""},
		{"the secret through a proxy", secret, request("POST", "game.example", local, remote, bearer, "Via: 1.1 cache"), 200, ""},
		{"the secret from a page of another site", secret, request("POST", "game.example", local, remote, bearer, "Sec-Fetch-Site: cross-site"), 403, "from another site"},
		{"no secret", secret, request("POST", "localhost", local, remote), 401, "wrong secret"},
		{"another secret", secret, request("POST", "localhost", local, remote, bearer+"s"), 401, "wrong secret"},
	} {
		w := httptest.NewRecorder()
		if ok := Authorize(w, c.r, c.secret); ok != (c.code == 200) || w.Code != c.code || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s: %v, code %d, %q; want %d, %q", c.name, ok, w.Code, w.Body, c.code, c.text)
		}
	}
}

// TestOldProxy makes the request of a proxy that adds no header: it speaks HTTP/1.0, as nginx does
// unless it is configured otherwise.
func TestOldProxy(t *testing.T) {
	r := request("GET", "127.0.0.1:9464", "127.0.0.1:9464", "127.0.0.1:50000")
	r.Proto, r.ProtoMinor = "HTTP/1.0", 0
	if err := Local(r); err == nil || !strings.Contains(err.Error(), "through a proxy (HTTP/1.0)") {
		t.Error(err)
	}
}

// TestNoConnection makes a request without a connection: it is not served.
func TestNoConnection(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r.RemoteAddr = "127.0.0.1:50000"
	if err := Local(r); err == nil {
		t.Error("it is served")
	}
}
