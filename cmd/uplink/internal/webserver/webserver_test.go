package webserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/debugserver"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

// begin starts a server that is closed when the test ends.
func begin(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(cfg)
	uplinktest.Must(t, err)
	t.Cleanup(func() { uplinktest.Must(t, s.Close()) })
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	return do(t, http.MethodGet, url)
}

// post asks for a change, with headers as name and value.
func post(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	return do(t, http.MethodPost, url, headers...)
}

func do(t *testing.T, method, url string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	uplinktest.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	uplinktest.Must(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	uplinktest.Must(t, err)
	return response.StatusCode, string(body)
}

func TestMetrics(t *testing.T) {
	apples := prometheus.NewCounter(prometheus.CounterOpts{Name: "apples_total", Help: "Apples."})
	apples.Add(3)
	s, err := Start(Config{Addr: "127.0.0.1:0", Collectors: []prometheus.Collector{apples}})
	uplinktest.Must(t, err)
	code, body := get(t, s.MetricsURL())
	for _, want := range []string{"\napples_total 3\n", "\ngo_goroutines "} {
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, body)
		}
	}
	if code, _ := get(t, s.URL()); code != http.StatusNotFound {
		t.Errorf("code %d for another page", code)
	}
	uplinktest.Must(t, s.Close())
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("it answers after Close")
	}
}

func TestErrors(t *testing.T) {
	s := begin(t, Config{Addr: "127.0.0.1:0"})
	busy := s.listener.Addr().String()
	if _, err := Start(Config{Addr: busy}); err == nil || !strings.Contains(err.Error(), busy) || !strings.HasSuffix(err.Error(), "; choose another address with --metrics") {
		t.Errorf("an address in use: %v", err)
	}
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "apples_total", Help: "Apples."})
	if _, err := Start(Config{Addr: "127.0.0.1:0", Collectors: []prometheus.Collector{c, c}}); err == nil {
		t.Error("a collector that is there twice is taken")
	}
}

// TestToken: on a public address all but /metrics needs a token, given or random.
func TestToken(t *testing.T) {
	panel := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.Method, r.URL.Path) })
	for _, given := range []string{"", "a token of mine, and no other"} {
		s := begin(t, Config{Addr: "0.0.0.0:0", Token: given, Source: server(t), Handlers: map[string]http.Handler{"/demo/": panel}})
		u, err := url.Parse(s.URL())
		if err != nil || u.Hostname() != "localhost" {
			t.Fatalf("%v, %v", u, err)
		}
		local := "http://" + u.Host
		token := u.Query().Get("token")
		if len(token) < dashboard.MinToken || given != "" && token != given {
			t.Errorf("token %q", token)
		}
		for _, c := range []struct {
			path string
			code int
		}{{"/metrics", 200}, {"/", 401}, {"/events", 401}, {"/demo/panel.js", 401}, {"/?token=0123456789012345", 401}, {"/?" + u.RawQuery, 200}} {
			if code, body := get(t, local+c.path); code != c.code {
				t.Errorf("%s: code %d, want %d: %s", c.path, code, c.code, body)
			}
		}
		if code, body := post(t, local+"/demo/state", "X-Uplink", "1", "Authorization", "Bearer "+token); code != http.StatusForbidden || !strings.Contains(body, "nothing can be set from here") {
			t.Errorf("a change: code %d: %s", code, body)
		}
	}
	if _, err := Start(Config{Addr: "127.0.0.1:0", Token: "short", Source: server(t)}); err == nil || !strings.HasSuffix(err.Error(), "choose another with --http-token, or leave it out for a random one") {
		t.Errorf("a short token: %v", err)
	}
}

func server(t *testing.T) *ds.Server {
	t.Helper()
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	t.Cleanup(func() { _ = srv.Close() }) // it has not served
	return srv
}

// TestHandlers: on loopback all is there without a token, and other paths are the dashboard's.
func TestHandlers(t *testing.T) {
	panel := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.Method, r.URL.Path) })
	s := begin(t, Config{Addr: "127.0.0.1:0", Source: server(t), Handlers: map[string]http.Handler{"/demo/": panel}})
	for path, want := range map[string]string{"": "<!doctype html>", "demo/panel.js": "GET /demo/panel.js", "metrics": "go_goroutines", "assets/main.js": "// The page", "other": "404"} {
		if _, body := get(t, s.URL()+path); !strings.Contains(body, want) {
			t.Errorf("/%s: no %q in %s", path, want, body)
		}
	}
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{[]string{"X-Uplink", "1"}, "POST /demo/state"},
		{nil, "the header X-Uplink: 1 is missing"},
		{[]string{"X-Uplink", "1", "Origin", "http://evil.example"}, "the request comes from another site"},
	} {
		if _, body := post(t, s.URL()+"demo/state", c.headers...); !strings.Contains(body, c.want) {
			t.Errorf("a change with %v: no %q in %s", c.headers, c.want, body)
		}
	}
}

// TestHealth: /healthz and /readyz answer without a token, and metrics have the labels.
func TestHealth(t *testing.T) {
	apples := prometheus.NewCounter(prometheus.CounterOpts{Name: "apples_total", Help: "Apples."})
	var unready error
	s := begin(t, Config{
		Addr: "127.0.0.1:0", Collectors: []prometheus.Collector{apples}, Labels: map[string]string{"fleet": "eu"},
		Ready: func() error { return unready },
	})
	if code, body := get(t, s.MetricsURL()); !strings.Contains(body, "\napples_total{fleet=\"eu\"} 0\n") || !strings.Contains(body, "\ngo_goroutines{fleet=\"eu\"} ") {
		t.Errorf("%d: %s", code, body)
	}
	for _, path := range []string{"healthz", "readyz"} {
		if code, body := get(t, s.URL()+path); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	unready = errors.New("it drains")
	if code, body := get(t, s.URL()+"readyz"); code != http.StatusServiceUnavailable || body != "it drains\n" {
		t.Errorf("%d %s", code, body)
	}
}

// TestReverseProxy asks a dashboard and the pages of /debug/ through a reverse proxy that rewrites
// Host, as nginx does: only with a token, since the proxy publishes them.
func TestReverseProxy(t *testing.T) {
	const given = "a token of mine, and no other"
	for _, c := range []struct {
		token, bearer string
		forwarded     bool
		code          int
	}{
		{"", "", true, http.StatusForbidden},
		{"", "", false, http.StatusOK}, // nothing tells the request from one of this machine
		{given, "", true, http.StatusUnauthorized},
		{given, given, true, http.StatusOK},
	} {
		s := begin(t, Config{
			Addr: "127.0.0.1:0", Token: c.token, Source: server(t),
			Handlers: map[string]http.Handler{"/debug/": debugserver.Handler(func() any { return nil })},
		})
		upstream, err := url.Parse("http://" + s.listener.Addr().String())
		uplinktest.Must(t, err)
		proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			if r.SetURL(upstream); c.forwarded {
				r.SetXForwarded()
			}
		}})
		for _, path := range []string{"/", "/debug/vars", "/debug/pprof/heap", "/metrics", "/healthz"} {
			want := c.code
			if path == "/metrics" || path == "/healthz" {
				want = http.StatusOK
			}
			if code, body := do(t, http.MethodGet, proxy.URL+path, "Authorization", "Bearer "+c.bearer); code != want {
				t.Errorf("%+v: %s: code %d, want %d: %.100s", c, path, code, want, body)
			}
		}
		proxy.Close()
	}
}

// TestDebugRebinding asks for /debug/ by names that another site gave to loopback.
func TestDebugRebinding(t *testing.T) {
	s := begin(t, Config{Addr: "127.0.0.1:0", Handlers: map[string]http.Handler{"/debug/": debugserver.Handler(func() any { return nil })}})
	for host, want := range map[string]int{"evil.example:9464": http.StatusForbidden, "127.0.0.1.evil.example": http.StatusForbidden, "localhost": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"debug/vars", nil)
		uplinktest.Must(t, err)
		r.Host = host
		response, err := http.DefaultClient.Do(r)
		uplinktest.Must(t, err)
		if uplinktest.Must(t, response.Body.Close()); response.StatusCode != want {
			t.Errorf("%s: code %d, want %d", host, response.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
