package httpstore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/internal/storetest"
	"github.com/uplink-rpc/uplink/token"
)

// TestStore makes each call over HTTP, to a store in memory.
func TestStore(t *testing.T) {
	web := httptest.NewServer(http.StripPrefix("/fleet", Handler(fleet.NewMemory(), "secret")))
	defer web.Close()
	s, ctx := New(web.URL+"/fleet/", "secret", web.Client()), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	use := fleet.Use{Token: token.ID{1}, Expires: time.Now().Add(time.Minute), Attempt: [32]byte{1}}
	must(s.Use(ctx, use))
	use.Attempt[1]++
	if err := s.Use(ctx, use); !errors.Is(err, token.ErrUsed) {
		t.Errorf("used twice: %v", err)
	}
	now := time.Now()
	first := fleet.Session{Client: 1<<64 - 1, Server: "a", ID: 1<<64 - 2, Issued: now}
	second := fleet.Session{Client: first.Client, Server: "b", ID: 2, Issued: now.Add(time.Second)}
	must(s.Begin(ctx, first))
	replaced := make(chan fleet.Session, 10)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := s.Replaced(watching, "a", func(n fleet.Session) { replaced <- n }); err != nil {
			t.Error(err)
		}
	})
	for len(replaced) == 0 { // until the watch has begun
		must(s.Begin(ctx, second))
		must(s.End(ctx, second))
		must(s.Begin(ctx, first))
		time.Sleep(time.Millisecond)
	}
	must(s.Begin(ctx, second))
	if got := <-replaced; !got.Same(second) || !got.NewerThan(first) {
		t.Errorf("%+v", got)
	}
	stop()
	watch.Wait()
	if err := s.Begin(ctx, first); !errors.Is(err, fleet.ErrNewer) {
		t.Errorf("an older session: %v", err)
	}
	entry := fleet.Server{Name: "a", Addrs: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}, Route: []byte{0, 255}, Updated: now}
	must(s.Announce(ctx, entry))
	if all, err := s.Servers(ctx); err != nil || len(all) != 1 || all[0].Addrs[0] != entry.Addrs[0] || string(all[0].Route) != "\x00\xff" {
		t.Errorf("%+v, %v", all, err)
	}
	must(s.Withdraw(ctx, "a"))
	if all, err := s.Servers(ctx); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := New(web.URL+"/fleet", "wrong", nil).Servers(ctx); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong secret: %v", err)
	}
	web.Close()
	if err := s.Use(ctx, use); err == nil || errors.Is(err, token.ErrUsed) {
		t.Errorf("without a server: %v", err)
	}
}

// TestDirectory checks the directory of a store over HTTP.
func TestDirectory(t *testing.T) {
	web := httptest.NewServer(Handler(fleet.NewMemory(), "secret"))
	defer web.Close()
	s := New(web.URL, "secret", web.Client())
	storetest.Attempts(t, s)
	storetest.Limits(t, s)
	storetest.Owners(t, s)
	if err := s.Announce(t.Context(), fleet.Server{Name: "slow", Updated: time.Now().Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Servers(t.Context()); err != nil || len(all) != 1 || time.Since(all[0].Updated) > time.Minute {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestBodyLimit makes a request that would be valid but for its size: white space in front of it.
func TestBodyLimit(t *testing.T) {
	h := Handler(fleet.NewMemory(), "secret")
	for size, want := range map[int]int{maxBody: http.StatusNoContent, maxBody + 1: http.StatusRequestEntityTooLarge} {
		const body = `{"name":"a"}`
		r := httptest.NewRequest(http.MethodPost, "/announce", strings.NewReader(strings.Repeat(" ", size-len(body))+body))
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%d bytes: %d, %s", size, w.Code, w.Body)
		}
	}
}

// TestWebPagesOfStore makes requests that a page of another site can cause, or that come through a
// proxy, to a store without a secret. They are refused, and change nothing.
func TestWebPagesOfStore(t *testing.T) {
	store := fleet.NewMemory()
	web := httptest.NewServer(Handler(store, ""))
	defer web.Close()
	for _, c := range []struct {
		path, body, host string
		header           http.Header
		status           int
	}{
		{"/announce", `{"name":"a"}`, "", http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"text/plain"}}, http.StatusForbidden},
		{"/announce", `{"name":"a"}`, "", http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"/announce", `{"name":"a"}`, "evil.example:8081", nil, http.StatusForbidden},
		{"/announce", `{"name":"a"}`, "", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, http.StatusForbidden},
		{"/begin", `{"server":"a.*"}`, "", nil, http.StatusUnprocessableEntity},
		{"/end", `{"server":">"}`, "", nil, http.StatusUnprocessableEntity},
		{"/announce", `{"name":"b"}`, "", nil, http.StatusNoContent},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = c.host; c.header != nil {
			r.Header = c.header
		}
		res, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != c.status {
			t.Errorf("%s %v of host %q: %s, want %d", c.path, c.header, c.host, res.Status, c.status)
		}
	}
	if all, err := store.Servers(t.Context()); err != nil || len(all) != 1 || all[0].Name != "b" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestRedactedErrors: no error has the password of the URL.
func TestRedactedErrors(t *testing.T) {
	web := httptest.NewServer(Handler(fleet.NewMemory(), "another secret"))
	defer web.Close()
	for url, want := range map[string]string{
		strings.Replace(web.URL, "http://", "http://fleet:s3cr3t@", 1): "http://fleet:xxxxx@127.0.0.1",
		"http://fleet:s3cr3t@127.0.0.1:1":                              "connection refused",
		"http://fleet:s3cr3t@127.0.0.1:port":                           "(invalid URL)",
	} {
		if _, err := New(url, "", nil).Servers(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%v, want an error that contains %q", err, want)
		}
	}
}

// network answers requests by the name of the host.
type network map[string]func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n[r.URL.Host](r) }

// TestInTurn calls a store at four places, of which one is silent, one is not there and one has
// lost its database. The first call finds the one that works, and the next one asks it first. When
// that fails too, the error names all.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(code int, text string) (*http.Response, error) {
			return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(text))}, nil
		}
		n := network{
			"silent": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			"gone":   func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
			"lost":   func(*http.Request) (*http.Response, error) { return answer(http.StatusServiceUnavailable, "no NATS") },
			"works":  func(*http.Request) (*http.Response, error) { return answer(http.StatusNoContent, "") },
		}
		s := New("http://silent/, http://gone/,http://lost/,http://works/", "", &http.Client{Transport: n})
		for i, want := range []time.Duration{time.Second, 0} {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			begun := time.Now()
			if err := s.Withdraw(ctx, "a"); err != nil || time.Since(begun) != want {
				t.Errorf("call %d: %v after %v", i, err, time.Since(begun))
			}
			cancel()
		}
		n["works"] = func(*http.Request) (*http.Response, error) { return answer(http.StatusConflict, used) }
		if err := s.Use(t.Context(), fleet.Use{}); !errors.Is(err, token.ErrUsed) {
			t.Error(err)
		}
		n["works"] = n["gone"]
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		err := s.Withdraw(ctx, "a")
		for _, want := range []string{"http://silent: it does not answer in time", "http://gone", "http://lost: Service Unavailable: no NATS", "http://works"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	})
}
