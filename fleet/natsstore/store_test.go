package natsstore_test

import (
	"context"
	"errors"
	"flag"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/internal/storetest"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

var races = flag.Int("races", 40, "tokens of TestRaces; each is raced against four servers")

// TestStore checks what package fleet says of a store, against one NATS server.
func TestStore(t *testing.T) {
	c := newCluster(t, 1)
	s, other := c.store(), c.store()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	use := fleet.Use{Token: token.ID{1}, Expires: time.Now().Add(time.Minute), Attempt: [32]byte{1}}
	must(s.Use(ctx, use))
	must(other.Use(ctx, use)) // repeated
	use.Attempt[0]++
	if err := other.Use(ctx, use); !errors.Is(err, token.ErrUsed) {
		t.Errorf("used twice: %v", err)
	}

	now := time.Now()
	first := fleet.Session{Client: 7, Server: "a", ID: 1, Issued: now}
	second := fleet.Session{Client: 7, Server: "b", ID: 2, Issued: now.Add(time.Second)}
	must(s.Begin(ctx, first))
	replaced := make(chan fleet.Session, 10)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := s.Replaced(watching, "a", func(n fleet.Session) { replaced <- n }); err != nil {
			t.Error(err)
		}
	})
	must(other.Begin(ctx, second))
	if got := <-replaced; !got.Same(second) || !got.NewerThan(first) {
		t.Errorf("%+v", got)
	}
	stop()
	watch.Wait()
	if err := s.Begin(ctx, first); !errors.Is(err, fleet.ErrNewer) {
		t.Errorf("an older session: %v", err)
	}
	must(s.End(ctx, first)) // not the newest: no effect
	if err := s.Begin(ctx, first); !errors.Is(err, fleet.ErrNewer) {
		t.Errorf("after the end of the older session: %v", err)
	}
	must(other.End(ctx, second))
	must(other.End(ctx, second))
	must(s.Begin(ctx, first))

	entry := fleet.Server{Name: "a", Addrs: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}, MaxPlayers: 10, Route: []byte("r")}
	must(s.Announce(ctx, entry))
	eventually(t, "the server is in the directory", func() bool {
		all, err := other.Servers(ctx)
		return err == nil && len(all) == 1 && all[0].Name == "a" && all[0].Addrs[0] == entry.Addrs[0] && string(all[0].Route) == "r"
	})
	must(s.Withdraw(ctx, "a"))
	must(s.Withdraw(ctx, "a"))
	eventually(t, "it is not", func() bool { all, _ := other.Servers(ctx); return len(all) == 0 })
	storetest.Limits(t, s)
	storetest.Attempts(t, s)
	storetest.Owners(t, s)
}

// TestReceipt lists servers whose clocks are wrong for the time of the bucket.
func TestReceipt(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the bucket to expire")
	}
	t.Parallel()
	storetest.Receipt(t, newCluster(t, 1).store(), func(what string, done func() bool) { eventually(t, what, done) })
}

// TestRoom fills the directory.
func TestRoom(t *testing.T) {
	t.Parallel()
	storetest.Room(t, newCluster(t, 1).store())
}

// fleetServers starts four servers with a store each.
func fleetServers(t *testing.T, c *cluster, cfg fleet.Config) (servers []*ds.Server, addrs []netip.AddrPort, network transport.Network, key token.Key) {
	t.Helper()
	sim, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if key, err = token.NewKey(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		cfg := cfg
		cfg.Name, cfg.Store = string('a'+rune(i)), c.store()
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(7000+i))
		srv, err := ds.Listen(addr.String(), ds.Config{Network: sim, Key: key, Fleet: &cfg})
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() { _ = srv.Serve(context.Background()) })
		t.Cleanup(func() { _ = srv.Close(); serving.Wait() })
		servers, addrs = append(servers, srv), append(addrs, addr)
	}
	return servers, addrs, sim, key
}

// nobody is the handler of a client that only connects. Closed counts the ends of its connections.
type nobody struct{ closed *atomic.Int64 }

func (nobody) Opened(*endpoint.Conn)                      {}
func (n nobody) Closed(*endpoint.Conn, error)             { n.closed.Add(1) }
func (nobody) Datagram(*endpoint.Conn, []byte, time.Time) {}
func (nobody) Message(*endpoint.Conn, []byte, time.Time)  {}
func (nobody) Tick(time.Time)                             {}

func issue(t *testing.T, key token.Key, player uint64, addrs []netip.AddrPort) token.Token {
	t.Helper()
	tok, err := token.Issue(key.Issuer(), token.Claims{ClientID: player, Expires: time.Now().Add(5 * time.Minute), Servers: addrs})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// concurrentRaces is how many tokens are raced at a time: one alone waits for the cluster most of
// the time.
const concurrentRaces = 64

// TestRaces races tokens against four servers, each token at all of them at the same time: exactly
// one accepts it. The cluster has three servers.
func TestRaces(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a cluster")
	}
	c := newCluster(t, 3)
	_, addrs, network, key := fleetServers(t, c, fleet.Config{Timeout: 4 * time.Second})
	var accepted, used, busy, wrong atomic.Int64
	var racing sync.WaitGroup
	slots := make(chan struct{}, concurrentRaces)
	for n := range *races {
		slots <- struct{}{}
		tok := issue(t, key, uint64(n+1), addrs)
		racing.Go(func() {
			defer func() { <-slots }()
			var wins atomic.Int64
			var dialing sync.WaitGroup
			for _, addr := range addrs {
				dialing.Go(func() {
					conn, err := endpoint.Dial(context.Background(), addr.String(), endpoint.Config{Network: network, Token: tok, Tick: endpoint.OnWake, Timeout: time.Minute}, nobody{new(atomic.Int64)})
					switch {
					case err == nil:
						wins.Add(1)
						_ = conn.Close()
					case errors.Is(err, token.ErrUsed):
						used.Add(1)
					default:
						busy.Add(1)
						t.Error(err)
					}
				})
			}
			if dialing.Wait(); wins.Load() != 1 {
				wrong.Add(1)
			}
			accepted.Add(wins.Load())
		})
	}
	racing.Wait()
	t.Logf("%d tokens, each raced against %d servers: %d accepted, %d refused as used, %d other answers", *races, len(addrs), accepted.Load(), used.Load(), busy.Load())
	if wrong.Load() != 0 {
		t.Errorf("%d tokens were not accepted exactly once", wrong.Load())
	}
}

// TestOutage kills servers of a cluster: with two of three left, everything works; with one,
// players stay, and joins are allowed as configured; when they are back, everything works again.
func TestOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a cluster")
	}
	t.Parallel()
	c := newCluster(t, 3)
	g := newGame(t, c, fleet.Config{Outage: time.Hour, Interval: 200 * time.Millisecond, Timeout: 4 * time.Second})
	g.join(0)
	c.kill(0)
	g.join(1)
	c.kill(1)
	during := g.token()
	if _, err := g.dial(2, during); err != nil {
		t.Fatal(err)
	}
	if _, err := g.dial(2, during); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the same token at the same server: %v", err)
	}
	if s := g.servers[2].Stats().Fleet; s.Unchecked != 1 {
		t.Errorf("%+v", s)
	}
	c.start(0)
	c.start(1)
	eventually(t, "all is recorded", func() bool { return g.all(recorded) })
	if _, err := g.dial(3, during); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the token of the outage at another server: %v", err)
	}
	g.join(3)
	if n := g.ended.Load(); n != 0 {
		t.Errorf("%d sessions ended", n)
	}
}

// game is four servers and their players.
type game struct {
	t       *testing.T
	servers []*ds.Server
	addrs   []netip.AddrPort
	network transport.Network
	key     token.Key
	players uint64
	ended   atomic.Int64 // sessions
}

func newGame(t *testing.T, c *cluster, cfg fleet.Config) *game {
	t.Helper()
	g := &game{t: t}
	g.servers, g.addrs, g.network, g.key = fleetServers(t, c, cfg)
	return g
}

// token returns the token of another player, for all servers.
func (g *game) token() token.Token {
	g.t.Helper()
	g.players++
	return issue(g.t, g.key, g.players, g.addrs)
}

// dial connects a player, who stays until the end of the test.
func (g *game) dial(server int, tok token.Token) (*endpoint.Conn, error) {
	conn, err := endpoint.Dial(g.t.Context(), g.addrs[server].String(), endpoint.Config{Network: g.network, Token: tok, Timeout: time.Minute}, nobody{&g.ended})
	if err == nil {
		g.t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// visit connects a player, who leaves at once.
func (g *game) visit(server int, tok token.Token) error {
	conn, err := endpoint.Dial(g.t.Context(), g.addrs[server].String(), endpoint.Config{Network: g.network, Token: tok, Timeout: time.Minute}, nobody{new(atomic.Int64)})
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// all reports whether f reports true for each server.
func (g *game) all(f func(*fleet.Stats) bool) bool {
	return !slices.ContainsFunc(g.servers, func(s *ds.Server) bool { return !f(s.Stats().Fleet) })
}

func recorded(s *fleet.Stats) bool { return s.Up && s.Unrecorded == 0 }

// join connects another player.
func (g *game) join(server int) {
	g.t.Helper()
	if _, err := g.dial(server, g.token()); err != nil {
		g.t.Fatal(err)
	}
}

var _ fleet.Store = (*natsstore.Store)(nil)
