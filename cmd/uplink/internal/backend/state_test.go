package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
)

// failing is a store that fails while err is not nil.
type failing struct {
	fleet.Store
	mu  sync.Mutex
	err error
}

func (f *failing) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failing) Servers(ctx context.Context) ([]fleet.Server, error) {
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Store.Servers(ctx)
}

// control is a backend in virtual time, with its log.
type control struct {
	*Backend
	t     *testing.T
	store *failing
	log   strings.Builder
	stops map[string]context.CancelFunc
}

// newControl starts a backend until the end of a bubble. The caller cancels the context.
func newControl(ctx context.Context, t *testing.T, keys ...token.IssuerKey) *control {
	t.Helper()
	c := &control{t: t, store: &failing{Store: fleet.NewMemory()}, stops: map[string]context.CancelFunc{}}
	var err error
	c.Backend, err = New(Config{
		Store: c.store, GameSecret: gameSecret, Lifetime: time.Minute, Log: slog.New(slog.NewTextHandler(&c.log, nil)),
	}, keys)
	uplinktest.Must(t, err)
	go c.Run(ctx)
	return c
}

// announce announces a server every two seconds, until ctx is done or its stop is called.
func (c *control) announce(ctx context.Context, e fleet.Server) {
	c.t.Helper()
	e.Addrs = []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}
	ctx, c.stops[e.Name] = context.WithCancel(ctx)
	go func() {
		for ctx.Err() == nil {
			if err := c.store.Announce(ctx, e); err != nil {
				c.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
}

// ask returns status and text of an answer.
func (c *control) ask(method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+gameSecret)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// wants asks for an answer with a status and a text.
func (c *control) wants(method, path, body string, status int, text string) {
	c.t.Helper()
	if code, got := c.ask(method, path, body); code != status || !strings.Contains(got, text) {
		c.t.Errorf("%s %s: %d, %s; want %d, %q", path, body, code, got, status, text)
	}
}

// metric checks the value of a metric.
func (c *control) metric(line string) {
	c.t.Helper()
	if _, text := c.ask(http.MethodGet, "/metrics", ""); !strings.Contains(text, "\n"+line+"\n") {
		c.t.Errorf("the metrics lack %s", line)
	}
}

// logged checks how often the log contains a text.
func (c *control) logged(times int, text string) {
	c.t.Helper()
	if n := strings.Count(c.log.String(), text); n != times {
		c.t.Errorf("%d times in the log, want %d: %s", n, times, text)
	}
}

// TestReasons asks for tokens that cannot be issued: each reason is in the answer, in a metric, and
// once in the log.
func TestReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		key, other := newKey(t).Issuer(), newKey(t).Issuer()
		c := newControl(ctx, t, key)
		c.announce(ctx, fleet.Server{Name: "full", Players: 9, MaxPlayers: 9, Key: key.ID().String(), Labels: map[string]string{"map": "dust"}})
		c.announce(ctx, fleet.Server{Name: "drains", MaxPlayers: 9, Draining: true, Key: key.ID().String(), Labels: map[string]string{"map": "dust"}})
		c.announce(ctx, fleet.Server{Name: "rotated", MaxPlayers: 9, Key: other.ID().String(), Labels: map[string]string{"map": "ice"}})
		c.announce(ctx, fleet.Server{Name: "open", MaxPlayers: 9, Key: key.ID().String()})
		time.Sleep(3 * time.Second)
		missing := fmt.Sprintf("rotated has the key %v, but this backend has %v", other.ID(), key.ID())
		for range 3 {
			c.wants("POST", "/token", `{"client":"1"}`, 200, `"name":"open"`)
			c.wants("POST", "/token", `{"client":"1","labels":{"map":"moon"}}`, 503, "none of the 4 servers of the directory suits")
			c.wants("POST", "/token", `{"client":"1","labels":{"map":"dust"}}`, 503, "all 2 that suit are full or drain")
			c.wants("POST", "/token", `{"client":"1","labels":{"map":"ice"}}`, 503, missing)
		}
		for _, want := range []string{`{result="issued"}`, `{result="no_server"}`, `{result="full"}`, `{result="no_key"}`} {
			c.metric("uplink_backend_tokens_total" + want + " 3")
		}
		for _, want := range []string{`{state="open"}`, `{state="full"}`, `{state="draining"}`, `{state="no_key"}`} {
			c.metric("uplink_backend_servers" + want + " 1")
		}
		c.logged(1, "no issuer key for a server\" server=rotated key="+other.ID().String()+" keys="+key.ID().String())
		for _, cause := range []string{noServer, full, noKey} {
			c.logged(1, `msg="no server for a player" client=1 cause=`+cause)
		}
		c.wants("GET", "/readyz", "", 200, "ok, but 1 of 4 servers have another key: rotated has "+other.ID().String())
		c.SetKeys([]token.IssuerKey{key, other})
		time.Sleep(time.Second)
		c.wants("GET", "/readyz", "", 200, "ok\n")
		c.wants("POST", "/token", `{"client":"1","labels":{"map":"ice"}}`, 200, `"name":"rotated"`)
		cancel()
		synctest.Wait()
	})
}

// TestOutage lets the store fail: within seconds, log, metric and /readyz tell, and tokens are
// issued only for servers that admit players without the store, as long as they do.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newControl(ctx, t, token.Development().Issuer())
		c.announce(ctx, fleet.Server{Name: "strict", MaxPlayers: 1 << 20})
		c.announce(ctx, fleet.Server{Name: "lenient", MaxPlayers: 1, OutageSeconds: 60})
		time.Sleep(3 * time.Second)
		c.wants("GET", "/readyz", "", 200, "ok\n")
		c.store.set(errors.New("no NATS"))
		time.Sleep(3 * time.Second)
		c.wants("GET", "/readyz", "", 503, "the store of the fleet fails: no NATS")
		c.metric("uplink_store_up 0")
		c.logged(1, `msg="fleet store fails" error="no NATS"`)
		for range 20 {
			c.wants("POST", "/token", `{"client":"1"}`, 200, `"name":"lenient"`)
		}
		c.wants("POST", "/token", `{"client":"1","server":"strict"}`, 503, "the store of the fleet fails: no NATS")
		time.Sleep(time.Minute)
		c.wants("POST", "/token", `{"client":"1"}`, 503, "the store of the fleet fails: no NATS")
		c.store.set(nil)
		time.Sleep(3 * time.Second)
		c.wants("GET", "/readyz", "", 200, "ok\n")
		c.wants("POST", "/token", `{"client":"1","server":"strict"}`, 200, `"name":"strict"`)
		c.metric("uplink_store_up 1")
		c.metric(`uplink_backend_tokens_total{result="store"} 2`)
		c.metric("uplink_backend_servers_lost_total 0")
		cancel()
		synctest.Wait()
	})
}

// TestLost ends a server with a word and another one without: the second one is counted.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newControl(ctx, t, token.Development().Issuer())
		for _, name := range []string{"stays", "withdraws", "dies"} {
			c.announce(ctx, fleet.Server{Name: name, MaxPlayers: 9, Players: 4})
		}
		time.Sleep(5 * time.Second)
		c.stops["withdraws"]()
		uplinktest.Must(t, c.store.Withdraw(ctx, "withdraws"))
		c.stops["dies"]()
		time.Sleep(20 * time.Second)
		c.metric("uplink_backend_servers_lost_total 1")
		c.metric(`uplink_backend_servers{state="open"} 1`)
		c.logged(1, `level=ERROR msg="server lost" server=dies`)
		c.logged(1, "server lost")
		cancel()
		synctest.Wait()
	})
}
