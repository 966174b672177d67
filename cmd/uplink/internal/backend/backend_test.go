package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
	"github.com/uplink-rpc/uplink/token"
)

const gameSecret, fleetSecret = "the game's secret", "the fleet's secret"

// service is a backend with its HTTP server.
type service struct {
	*Backend
	*httptest.Server
	store fleet.Store
}

func newService(t *testing.T, keys ...token.IssuerKey) *service {
	t.Helper()
	s := &service{store: fleet.NewMemory()}
	var err error
	s.Backend, err = New(Config{
		Store: s.store, GameSecret: gameSecret, FleetSecret: fleetSecret, Lifetime: time.Minute, Log: slog.New(slog.DiscardHandler),
	}, keys)
	uplinktest.Must(t, err)
	s.Server = httptest.NewServer(s.Backend)
	t.Cleanup(s.Close)
	return s
}

// serve starts a dedicated server of the fleet, until the test ends.
func (s *service) serve(t *testing.T, name string, key token.Key) *ds.Server {
	t.Helper()
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Key: key, Fleet: &fleet.Config{
		Store: httpstore.New(s.URL+"/fleet", fleetSecret, s.Client()), Name: name, Labels: map[string]string{"map": name},
		Interval: 10 * time.Millisecond,
	}})
	uplinktest.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(ctx) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	uplinktest.Await(t, name+" in the directory", func() bool {
		all, err := s.store.Servers(t.Context())
		uplinktest.Must(t, err)
		return slices.ContainsFunc(all, func(e fleet.Server) bool { return e.Name == name })
	}, nil)
	return srv
}

// request requests a token, and returns the status with the answer.
func (s *service) request(t *testing.T, secret, body string) (status int, a Answer) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/token", strings.NewReader(body))
	uplinktest.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := s.Client().Do(req)
	uplinktest.Must(t, err)
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		uplinktest.Must(t, json.NewDecoder(res.Body).Decode(&a))
	}
	return res.StatusCode, a
}

func newKey(t *testing.T) token.Key {
	t.Helper()
	k, err := token.NewKey()
	uplinktest.Must(t, err)
	return k
}

// TestToken logs players in at servers with different keys, as during a rotation.
func TestToken(t *testing.T) {
	old, current := newKey(t), newKey(t)
	s := newService(t, old.Issuer())
	s.serve(t, "dust", old)
	s.serve(t, "ice", current)
	if status, a := s.request(t, gameSecret, `{"client":"1","labels":{"map":"ice"}}`); status != http.StatusServiceUnavailable {
		t.Errorf("for a server with an unknown key: %d, %+v", status, a)
	}
	s.SetKeys([]token.IssuerKey{current.Issuer(), old.Issuer()})
	for name, body := range map[string]string{
		"dust": `{"client":"18446744073709551615","labels":{"map":"dust"}}`,
		"ice":  `{"client":"2","server":"ice","user_data":"dGVhbQ=="}`,
	} {
		status, a := s.request(t, gameSecret, body)
		if status != http.StatusOK || a.Name != name || time.Until(a.Expires) > time.Minute {
			t.Errorf("%s: %d, %+v", name, status, a)
			continue
		}
		c, err := client.Dial(t.Context(), a.Server.String(), client.Config{Token: a.Token})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = c.Close()
	}
	_, dust := s.request(t, gameSecret, `{"client":"3","server":"dust"}`)
	avoid := fmt.Sprintf(`{"client":"3","avoid":["203.0.113.7:7777","%s"]}`, dust.Server)
	if status, a := s.request(t, gameSecret, avoid); status != http.StatusOK || a.Name != "ice" {
		t.Errorf("for another server than dust: %d, %+v", status, a)
	}
	for body, want := range map[string]int{
		`{"client":"1","labels":{"map":"moon"}}`:                            http.StatusServiceUnavailable,
		`{"client":"1","other":1}`:                                          http.StatusBadRequest,
		`{"client":"1","user_data":"` + strings.Repeat("AAAA", 100) + `"}`:  http.StatusInternalServerError,
		`{"client":"1","user_data":"` + strings.Repeat("AAAA", 2000) + `"}`: http.StatusBadRequest,
	} {
		if status, _ := s.request(t, gameSecret, body); status != want {
			t.Errorf("%.60s: %d, want %d", body, status, want)
		}
	}
	for _, secret := range []string{"", "wrong", fleetSecret} {
		if status, _ := s.request(t, secret, `{"client":"1"}`); status != http.StatusUnauthorized {
			t.Errorf("the secret %q: %d", secret, status)
		}
	}
}

// TestHostileAnnouncements announces servers with numbers that overflow: they are refused with the
// field and its limit, and tokens are still issued.
func TestHostileAnnouncements(t *testing.T) {
	key := newKey(t)
	s := newService(t, key.Issuer())
	s.serve(t, "dust", key)
	for _, name := range []string{"a", "b"} {
		body := `{"name":"` + name + `","addrs":["203.0.113.66:7777"],"max_players":9223372036854775807}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/fleet/announce", strings.NewReader(body))
		uplinktest.Must(t, err)
		req.Header.Set("Authorization", "Bearer "+fleetSecret)
		res, err := s.Client().Do(req)
		uplinktest.Must(t, err)
		text, err := io.ReadAll(res.Body)
		uplinktest.Must(t, errors.Join(err, res.Body.Close()))
		if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(text), "max_players: 9223372036854775807, want 0 to 1048576") {
			t.Errorf("%d: %s", res.StatusCode, text)
		}
	}
	if status, a := s.request(t, gameSecret, `{"client":"1"}`); status != http.StatusOK || a.Name != "dust" {
		t.Errorf("%d, %+v", status, a)
	}
}

// TestWebPages makes requests that a page of another site can cause to a backend without secrets,
// and requests through a proxy. They are refused; a program of this machine gets its token.
func TestWebPages(t *testing.T) {
	s := newService(t, token.Development().Issuer())
	s.serve(t, "dust", token.Development())
	s.cfg.GameSecret = ""
	for _, c := range []struct {
		method, path, host string
		header             http.Header
		status             int
	}{
		{"POST", "/token", "evil.example:8090", nil, http.StatusForbidden},
		{"POST", "/token", "", http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"text/plain"}}, http.StatusForbidden},
		{"POST", "/token", "", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, http.StatusForbidden},
		{"GET", "/", "evil.example", nil, http.StatusForbidden},
		{"GET", "/servers", "evil.example", nil, http.StatusForbidden},
		{"GET", "/servers", "", http.Header{"Via": {"1.1 proxy"}}, http.StatusForbidden},
		{"GET", "/healthz", "10.0.0.5:8080", http.Header{"Via": {"1.1 proxy"}}, http.StatusOK},
		{"GET", "/", "", nil, http.StatusOK},
		{"POST", "/token", "", nil, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader(`{"client":"1"}`))
		uplinktest.Must(t, err)
		if r.Host = c.host; c.header != nil {
			r.Header = c.header
		}
		res, err := s.Client().Do(r)
		uplinktest.Must(t, err)
		if uplinktest.Must(t, res.Body.Close()); res.StatusCode != c.status {
			t.Errorf("%s %s %v of host %q: %s, want %d", c.method, c.path, c.header, c.host, res.Status, c.status)
		}
	}
}

// get returns status and body of a path, with a password if it is not empty.
func (s *service) get(t *testing.T, path, password string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	uplinktest.Must(t, err)
	if password != "" {
		req.SetBasicAuth("", password)
	}
	res, err := s.Client().Do(req)
	uplinktest.Must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	uplinktest.Must(t, err)
	return res.StatusCode, string(text)
}

// TestPages reads the page and the directory, which need a password.
func TestPages(t *testing.T) {
	s := newService(t, newKey(t).Issuer())
	s.fill(t)
	for _, path := range []string{"/", "/servers"} {
		if status, _ := s.get(t, path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s without a password: %d", path, status)
		}
		status, text := s.get(t, path, gameSecret)
		if status != http.StatusOK || !strings.Contains(text, "eu-1") || strings.Contains(text, "<script>") {
			t.Errorf("%s: %d, %s", path, status, text)
		}
	}
	if status, _ := s.get(t, "/healthz", ""); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	if status, _ := s.get(t, "/fleet/servers", gameSecret); status != http.StatusUnauthorized {
		t.Errorf("the fleet with the game's secret: %d", status)
	}
}

// fill announces servers in all states, one of them with hostile labels.
func (s *service) fill(t *testing.T) {
	t.Helper()
	for _, e := range []fleet.Server{
		{Name: "eu-1", Players: 120, MaxPlayers: 400, Labels: map[string]string{"map": "dust", "region": "eu"}, Key: "a1b2c3d4"},
		{Name: "eu-2", Players: 400, MaxPlayers: 400, Labels: map[string]string{"map": "<script>document.title='broken'</script>"}},
		{Name: "us-1", Players: 31, MaxPlayers: 400, Draining: true, Labels: map[string]string{"map": "ice", "region": "us"}},
	} {
		e.Addrs = []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777"), netip.MustParseAddrPort("[2001:db8::7]:7777")}
		uplinktest.Must(t, s.store.Announce(t.Context(), e))
	}
}

// TestPageInBrowser opens the page at two widths: nothing is cut off, and labels are text.
func TestPageInBrowser(t *testing.T) {
	b := browser.Start(t)
	s := newService(t, newKey(t).Issuer())
	s.fill(t)
	s.cfg.GameSecret = "" // for programs of this machine
	b.Open(s.URL)
	b.Await(`document.querySelectorAll("tbody tr").length === 3 && document.title === "Fleet: 3 servers, 551 players"`)
	b.Await(`[...document.querySelectorAll(".state")].map((e) => e.textContent).join() === "open,full,draining"`)
	for _, width := range []int64{400, 1280} {
		b.Resize(width, 900)
		b.Await(`document.documentElement.scrollWidth <= innerWidth && document.querySelectorAll("tbody tr").length === 3`)
	}
}
