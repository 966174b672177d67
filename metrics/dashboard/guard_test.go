package dashboard

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

const secret = "0123456789abcdef"

func guarded(t *testing.T, addr, token string) http.Handler {
	t.Helper()
	g := check.Value(NewGuard(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)), token))(t)
	if want := !netip.MustParseAddrPort(addr).Addr().IsLoopback(); g.ReadOnly() != want {
		t.Errorf("%s: read-only is %v", addr, g.ReadOnly())
	}
	return g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
}

// ask makes a request with lines "Header: value" and returns the response.
func ask(h http.Handler, method, target, host string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	r.RemoteAddr = "127.0.0.1:50000"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9464}))
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestGuard(t *testing.T) {
	const (
		local, public = "127.0.0.1:9464", "192.0.2.1:9464"
		ok            = http.StatusTeapot
	)
	for _, c := range []struct {
		name, addr, token    string
		method, target, host string
		headers              []string
		code                 int
		text                 string
	}{
		{"a loopback address", local, "", "GET", "/", "127.0.0.1:9464", nil, ok, ""},
		{"a loopback name", local, "", "GET", "/", "LocalHost:9464", nil, ok, ""},
		{"another loopback address", local, "", "GET", "/", "[::1]:9464", nil, ok, ""},
		{"without a port", local, "", "GET", "/", "127.0.0.5", nil, ok, ""},
		{"IPv6", "[::1]:80", "", "GET", "/", "[::1]", nil, ok, ""},
		{"DNS rebinding", local, "", "GET", "/events", "evil.example:9464", nil, 403, `"evil.example:9464" is no name`},
		{"almost loopback", local, "", "GET", "/", "localhost.evil.example", nil, 403, "is no name"},
		{"no Host", local, "", "GET", "/", "", nil, 403, "is no name"},
		{"a proxy", local, "", "GET", "/", "127.0.0.1:9464", []string{"X-Forwarded-For: 198.51.100.1"}, 403, "through a proxy (header X-Forwarded-For)"},
		{"a proxy and the token", local, secret, "GET", "/", "game.example", []string{"X-Forwarded-For: 198.51.100.1", "Authorization: Bearer " + secret}, ok, ""},
		{"a control through a proxy", local, secret, "POST", "/", "127.0.0.1:9464", []string{"X-Uplink: 1", "Via: 1.1 proxy", "Authorization: Bearer " + secret}, 403, "through a proxy"},
		{"a token on loopback", local, secret, "GET", "/", "127.0.0.1:9464", nil, 401, "?token="},

		{"a control", local, "", "POST", "/demo/state", "127.0.0.1:9464", []string{"X-Uplink: 1", "Origin: http://127.0.0.1:9464", "Sec-Fetch-Site: same-origin"}, ok, ""},
		{"a script's control", local, "", "POST", "/", "localhost:9464", []string{"X-Uplink: 1"}, ok, ""},
		{"a form of another site", local, "", "POST", "/", "127.0.0.1:9464", []string{"Origin: https://evil.example"}, 403, "X-Uplink: 1"},
		{"another value", local, "", "POST", "/", "127.0.0.1:9464", []string{"X-Uplink: 2"}, 403, "X-Uplink: 1"},
		{"another origin", local, "", "POST", "/", "127.0.0.1:9464", []string{"X-Uplink: 1", "Origin: http://evil.example"}, 403, `Origin is "http://evil.example"`},
		{"another port", local, "", "POST", "/", "127.0.0.1:9464", []string{"X-Uplink: 1", "Origin: http://127.0.0.1:8000"}, 403, "Origin"},
		{"no origin to tell", local, "", "PUT", "/", "127.0.0.1:9464", []string{"X-Uplink: 1", "Origin: null"}, 403, "Origin"},
		{"another site", local, "", "DELETE", "/", "127.0.0.1:9464", []string{"X-Uplink: 1", "Sec-Fetch-Site: cross-site"}, 403, "cross-site"},
		{"a site beside it", local, "", "POST", "/", "127.0.0.1:9464", []string{"X-Uplink: 1", "Sec-Fetch-Site: same-site"}, 403, "same-site"},
		{"DNS rebinding of a control", local, "", "POST", "/", "evil.example:9464", []string{"X-Uplink: 1", "Origin: http://evil.example:9464"}, 403, "is no name"},
		{"the same with a token", local, secret, "POST", "/", "evil.example:9464", []string{"X-Uplink: 1", "Authorization: Bearer " + secret}, 403, "is no name"},

		{"no token", public, secret, "GET", "/", "192.0.2.1:9464", nil, 401, "?token="},
		{"a wrong token", public, secret, "GET", "/?token=0123456789abcdeX", "192.0.2.1:9464", nil, 401, "?token="},
		{"an empty token", public, secret, "GET", "/?token=", "192.0.2.1:9464", nil, 401, "?token="},
		{"the start of it", public, secret, "GET", "/?token=0123456789", "192.0.2.1:9464", nil, 401, "?token="},
		{"the token", public, secret, "GET", "/?token=" + secret, "192.0.2.1:9464", nil, 200, "The token is right"},
		{"a bearer", public, secret, "GET", "/events", "ds.example", []string{"Authorization: Bearer " + secret}, ok, ""},
		{"a wrong bearer", public, secret, "GET", "/events", "ds.example", []string{"Authorization: Bearer x"}, 401, "?token="},
		{"a cookie that is the token", public, secret, "GET", "/", "192.0.2.1:9464", []string{"Cookie: uplink_9464=" + secret}, 401, "?token="},
		{"a control from elsewhere", public, secret, "POST", "/", "192.0.2.1:9464", []string{"X-Uplink: 1", "Authorization: Bearer " + secret}, 403, "nothing can be set"},
		{"a control with the token", public, secret, "POST", "/?token=" + secret, "192.0.2.1:9464", []string{"X-Uplink: 1"}, 401, "?token="},
	} {
		w := ask(guarded(t, c.addr, c.token), c.method, c.target, c.host, c.headers...)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s: code %d, %q; want %d, %q", c.name, w.Code, w.Body, c.code, c.text)
		}
		if strings.Contains(w.Body.String(), secret) {
			t.Errorf("%s: the answer has the token: %s", c.name, w.Body)
		}
		if h := w.Header(); h.Get("X-Content-Type-Options") != "nosniff" || w.Code != ok && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", c.name, h)
		}
	}
}

// TestCookie checks that a cookie replaces the token, and that the redirection stays on the server.
func TestCookie(t *testing.T) {
	h := guarded(t, "192.0.2.1:9464", secret)
	for target, to := range map[string]string{
		"/?token=" + secret:                       "/",
		"/?a=1&token=" + secret:                   "/?a=1",
		"http://192.0.2.1//evil/?token=" + secret: "/evil/",
		"http://192.0.2.1/demo/x?token=" + secret: "/demo/x",
	} {
		w := ask(h, "GET", target, "192.0.2.1:9464")
		cookie := w.Header().Get("Set-Cookie")
		if got := w.Header().Get("Refresh"); got != "0; url="+to {
			t.Errorf("%s leads to %q, want %s", target, got, to)
		}
		for _, want := range []string{"uplink_9464=", "; HttpOnly", "; SameSite=Strict", "; Path=/"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("cookie %q without %q", cookie, want)
			}
		}
		value, _, _ := strings.Cut(cookie, ";")
		if strings.Contains(cookie, secret) {
			t.Errorf("the cookie has the token: %s", cookie)
		}
		if w := ask(h, "GET", "/events", "192.0.2.1:9464", "Cookie: "+value); w.Code != http.StatusTeapot {
			t.Errorf("with the cookie: code %d", w.Code)
		}
		if w := ask(h, "GET", "/events", "192.0.2.1:9464", "Cookie: "+value+"0"); w.Code != http.StatusUnauthorized {
			t.Errorf("with another cookie: code %d", w.Code)
		}
	}
}

func TestGuardErrors(t *testing.T) {
	for _, c := range []struct{ addr, token, want string }{
		{"192.0.2.1:80", "", "a token is needed"},
		{"0.0.0.0:80", "", "a token is needed"},
		{"[::]:80", "", "a token is needed"},
		{"127.0.0.1:80", "short", "5 characters, want at least 16"},
	} {
		_, err := NewGuard(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.addr)), c.token)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.addr, c.token, err)
		}
	}
	if _, err := NewGuard(&net.UnixAddr{Name: "/run/x"}, secret); err == nil {
		t.Error("a Unix socket is an address")
	}
}

// A dashboard in a game's own mux serves nothing until the game says who may see it.
func TestUnguarded(t *testing.T) {
	guard := check.Value(NewGuard(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, ""))(t)
	d := New(nil, Config{})
	for name, c := range map[string]struct {
		handler http.Handler
		want    int
	}{
		"unguarded": {d, http.StatusForbidden},
		"guarded":   {guard.Handler(http.StripPrefix("/debug", d)), http.StatusOK},
		"open":      {New(nil, Config{Open: true}), http.StatusOK},
	} {
		path := "http://localhost/"
		if name == "guarded" {
			path += "debug/"
		}
		if w := ask(c.handler, http.MethodGet, path, "localhost"); w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
	}
}
