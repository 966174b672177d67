package lab

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuard: pages of other sites change nothing, whatever a browser would send for them.
func TestGuard(t *testing.T) {
	l, g := newLab()
	web := serve(t, l)
	port := web.URL[strings.LastIndexByte(web.URL, ':'):]
	origin := "http://localhost" + port
	for _, c := range []struct {
		header []string
		want   string // "": let through
	}{
		{[]string{"X-Uplink", "1"}, ""},
		{[]string{"X-Uplink", "1", "Host", "localhost" + port, "Origin", origin, "Sec-Fetch-Site", "same-origin"}, ""},
		{[]string{"X-Uplink", "1", "Host", "[::1]:80", "Origin", "http://[::1]:80"}, ""},
		{[]string{"X-Uplink", "1", "Host", "127.9.9.9"}, ""},
		{nil, "the header X-Uplink: 1 is missing"},
		{[]string{"X-Uplink", "0"}, "the header X-Uplink: 1 is missing"},
		{[]string{"X-Uplink", "1", "Host", "evil.example"}, `the host "evil.example" is no name of the loopback address: use localhost or 127.0.0.1`},
		{[]string{"X-Uplink", "1", "Host", "localhost.evil.example" + port}, "is no name of the loopback address"},
		{[]string{"X-Uplink", "1", "Host", "192.0.2.1" + port}, "is no name of the loopback address"},
		{[]string{"X-Uplink", "1", "Origin", "http://evil.example"}, "the request comes from another site"},
		{[]string{"X-Uplink", "1", "Origin", "null"}, "the request comes from another site"},
		{[]string{"X-Uplink", "1", "Origin", "http://localhost:1"}, "the request comes from another site"},
		{[]string{"X-Uplink", "1", "Sec-Fetch-Site", "cross-site"}, "the request comes from another site"},
		{[]string{"X-Uplink", "1", "Sec-Fetch-Site", "same-site"}, "the request comes from another site"},
	} {
		g.settings = begun
		code, body := call(t, "POST", web.URL+"/demo/state", `{"loss":0.5}`, c.header...)
		if passed := g.Settings() != begun; passed != (c.want == "") || passed != (code == http.StatusOK) || !passed && (code != http.StatusForbidden || !strings.Contains(body, c.want)) {
			t.Errorf("%v: %d %s; want %s", c.header, code, body, c.want)
		}
	}
}

// TestReadOnly: on other addresses than loopback nothing can be changed, and the page is told.
func TestReadOnly(t *testing.T) {
	l, g := newLab()
	for addr, readOnly := range map[string]bool{
		"192.0.2.1:80": true, "[2001:db8::1]:80": true, "": true,
		"127.0.0.1:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false,
	} {
		g.settings = begun
		ctx := t.Context()
		if addr != "" {
			a, err := net.ResolveTCPAddr("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			ctx = context.WithValue(ctx, http.LocalAddrContextKey, a)
		}
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/demo/state", strings.NewReader(`{"loss":0.5}`))
		r.Header.Set("X-Uplink", "1")
		w := httptest.NewRecorder()
		l.Handler().ServeHTTP(w, r)
		if (w.Code == http.StatusForbidden) != readOnly || (g.settings == begun) != readOnly {
			t.Errorf("on %s: %d %s", addr, w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		l.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/demo/state", nil))
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"read_only":true`) != readOnly {
			t.Errorf("on %s: %d %s", addr, w.Code, w.Body)
		}
	}
}
