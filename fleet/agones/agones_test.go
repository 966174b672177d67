package agones

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/sidecar"
)

var description = flag.String("swagger", "", "OpenAPI 2 description of the SDK from which the test's server is generated, such as the published sdk.swagger.json")

func newSDK(t *testing.T, s *sidecar.Server, change func(*Config)) *SDK {
	t.Helper()
	cfg := Config{URL: s.URL + "/", Timeout: 10 * time.Second, Backoff: time.Microsecond, HealthInterval: time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	sdk, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sdk
}

// TestCalls makes each call once: the server checks method, path and body against the description.
func TestCalls(t *testing.T) {
	s := sidecar.New(t, *description)
	sdk, ctx := newSDK(t, s, nil), t.Context()
	if err := errors.Join(sdk.Health(ctx), sdk.Allocate(ctx), sdk.Shutdown(ctx), sdk.SetPlayers(ctx, 3, 64)); err != nil {
		t.Fatal(err)
	}
	g, err := sdk.GameServer(ctx)
	if err != nil || g.Name != "ds-1" || g.Labels["a"] != "b" || g.State != "Scheduled" || g.Addr("").IsValid() {
		t.Errorf("%+v, %v", g, err)
	}
	want := []string{
		"POST /health {}", "POST /allocate {}", "POST /shutdown {}",
		`PUT /metadata/label {"key":"players","value":"3"}`, `PUT /metadata/label {"key":"capacity","value":"64"}`, "GET /gameserver",
	}
	if got := s.Called(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestReady waits for the address, over a watch that breaks once.
func TestReady(t *testing.T) {
	s := sidecar.New(t, *description)
	s.Update(sidecar.Starting)
	s.Update("") // the connection ends
	s.Update(sidecar.Ready)
	g, err := newSDK(t, s, nil).Ready(t.Context())
	if err != nil || g.Addr("default").String() != "203.0.113.7:7501" || g.Addr("").Port() != 1 || g.Addr("other").IsValid() {
		t.Errorf("%+v, %v", g, err)
	}
	if n := s.Watches(); n != 2 {
		t.Errorf("%d watches", n)
	}
}

// TestRetries fails twice with 503, and then for good.
func TestRetries(t *testing.T) {
	s := sidecar.New(t, *description)
	s.Fail(2)
	if err := newSDK(t, s, nil).Health(t.Context()); err != nil || len(s.Called()) != 3 {
		t.Errorf("%d calls: %v", len(s.Called()), err)
	}
	s.Fail(100)
	err := newSDK(t, s, func(c *Config) { c.Attempts = 4 }).Health(t.Context())
	if status := (*answerError)(nil); !errors.As(err, &status) || status.status != http.StatusServiceUnavailable || len(s.Called()) != 7 {
		t.Errorf("%d calls: %v", len(s.Called()), err)
	}
	if err := newSDK(t, s, func(c *Config) { c.Attempts = 2 }).Watch(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "503") || len(s.Called()) != 9 {
		t.Errorf("%d calls: %v", len(s.Called()), err)
	}
	s.Close()
	if err := newSDK(t, s, func(c *Config) { c.Attempts = 2 }).Health(t.Context()); err == nil {
		t.Error("no error without a server")
	}
}

// TestRun reports health all the time, and the players only when their number changes.
func TestRun(t *testing.T) {
	s := sidecar.New(t, *description)
	ctx, cancel := context.WithCancel(t.Context())
	players := 0
	newSDK(t, s, nil).Run(ctx, func() (int, int) {
		switch players++; players {
		case 3:
			return 1, 64
		case 6:
			cancel()
		}
		return 0, 64
	}, func(err error) { t.Error(err) })
	count := map[string]int{}
	for _, c := range s.Called() {
		count[c]++
	}
	if count["POST /health {}"] != 6 || count[`PUT /metadata/label {"key":"players","value":"0"}`] != 2 || count[`PUT /metadata/label {"key":"players","value":"1"}`] != 1 {
		t.Errorf("%v", count)
	}
}

// TestTimeout ends an attempt that gets no answer.
func TestTimeout(t *testing.T) {
	hung := make(chan struct{})
	defer close(hung)
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-hung:
			return nil, errors.New("over")
		}
	})
	s := sidecar.New(t, *description)
	sdk := newSDK(t, s, func(c *Config) {
		c.Timeout, c.Attempts, c.HTTP = time.Millisecond, 2, &http.Client{Transport: transport}
	})
	if err := sdk.Health(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := New(Config{Timeout: -1}); err == nil {
		t.Error("a negative timeout")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
