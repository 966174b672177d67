package debugserver

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// request is one that came to an address, from another, for a host.
type request struct{ to, from, host string }

var local = request{"127.0.0.1:9464", "127.0.0.1:50000", "localhost:9464"}

func (q request) get(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://"+q.host+path, nil)
	r.RemoteAddr = q.from
	to := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(q.to))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, to)))
	return w
}

func TestPages(t *testing.T) {
	h := Handler(func() any { return map[string]int{"Open": 3} })
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "debugserver.TestPages",
		"/debug/pprof/symbol": "num_symbols: 1",
		"/debug/vars":         `"uplink": {"Open":3}`, "/debug/vars?": `"HeapAlloc":`,
	} {
		w := local.get(h, path)
		text := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "cmdline\":") {
			t.Errorf("%s: code %d, no %q in\n%s", path, w.Code, want, text)
		}
	}
	if w := local.get(h, "/debug/pprof/cmdline"); w.Code != http.StatusNotFound {
		t.Errorf("the command line is shown: %s", w.Body)
	}
}

// TestStrangers: only loopback clients are served.
func TestStrangers(t *testing.T) {
	for _, c := range []struct {
		name    string
		request request
		code    int
	}{
		{"loopback", local, http.StatusOK},
		{"IPv6", request{"[::1]:9464", "[::1]:50000", "[::1]:9464"}, http.StatusOK},
		{"IPv4 in IPv6", request{"[::ffff:127.0.0.1]:9464", "[::ffff:127.0.0.1]:50000", "127.0.0.1"}, http.StatusOK},
		{"from outside", request{"203.0.113.7:9464", "198.51.100.1:50000", "203.0.113.7:9464"}, http.StatusForbidden},
		{"from outside, as if to loopback", request{"203.0.113.7:9464", "198.51.100.1:50000", "localhost:9464"}, http.StatusForbidden},
	} {
		for _, path := range []string{"/debug/vars", "/debug/pprof/heap"} {
			if w := c.request.get(Handler(func() any { return nil }), path); w.Code != c.code {
				t.Errorf("%s: code %d, want %d", c.name, w.Code, c.code)
			}
		}
	}
	// Without the HTTP server's connection context no client is served.
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://localhost/debug/vars", nil)
	r.RemoteAddr = local.from
	if Handler(func() any { return nil }).ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("code %d", w.Code)
	}
}

func TestStats(t *testing.T) {
	move := ds.RPCStats{Payloads: endpoint.Payloads{RPC: "Move"}, Stats: rpcdelta.Stats{Delta: 7}, Missed: 2}
	move.Drops[ds.Late] = 3
	st := ds.Stats{RPCs: []ds.RPCStats{move}, Acks: endpoint.Acks{Messages: 4}}
	st.Drops[ds.Malformed] = 5
	text, err := json.Marshal(Stats(st))
	uplinktest.Must(t, err)
	for _, want := range []string{`"RPC":"Move"`, `"Delta":7`, `"late":3`, `"Missed":2`, `"Messages":4`, `"malformed":5`, `"DatagramsReceived":0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
