package ds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rogue"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// failing is a store whose calls fail while down is set.
type failing struct {
	fleet.Store
	down atomic.Bool
}

var errDown = errors.New("down")

func (f *failing) err() error {
	if f.down.Load() {
		return errDown
	}
	return nil
}

func (f *failing) Use(ctx context.Context, u fleet.Use) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Use(ctx, u)
}

func (f *failing) Begin(ctx context.Context, s fleet.Session) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Begin(ctx, s)
}

func (f *failing) Servers(ctx context.Context) ([]fleet.Server, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.Store.Servers(ctx)
}

func (f *failing) Announce(ctx context.Context, s fleet.Server) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Announce(ctx, s)
}

// fleetOf is a fleet of servers in virtual time.
type fleetOf struct {
	t       *testing.T
	store   *failing
	network transport.Network
	key     token.Key
	addrs   []netip.AddrPort
	servers []*ds.Server
	banned  map[uint64]bool // players whom the games kick as soon as they join
	joined  atomic.Int64    // calls of Joined
}

func newFleet(t *testing.T, n int, outage time.Duration) *fleetOf {
	t.Helper()
	return newFleetOver(t, n, outage, simnet.Config{Delay: 10 * ms})
}

// newFleetOver starts a fleet of servers that are reached over a link.
func newFleetOver(t *testing.T, n int, outage time.Duration, link simnet.Config) *fleetOf {
	t.Helper()
	network, err := simnet.NewNetwork(link, link)
	if err != nil {
		t.Fatal(err)
	}
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleetOf{t: t, store: &failing{Store: fleet.NewMemory()}, network: network, key: key}
	for i := range n {
		addr := fmt.Sprintf("127.0.0.1:%d", 7000+i)
		srv, err := ds.Listen(addr, ds.Config{
			Network: network, Key: key,
			Joined: func(p *ds.Player) {
				f.joined.Add(1)
				if f.banned[p.ClientID()] {
					p.Kick("banned")
				}
			},
			Fleet: &fleet.Config{Store: f.store, Name: fmt.Sprintf("s%d", i), Outage: outage, Labels: map[string]string{"map": "dust"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := srv.Serve(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { cancel(); serving.Wait() })
		f.servers, f.addrs = append(f.servers, srv), append(f.addrs, netip.MustParseAddrPort(addr))
	}
	settle(100 * ms)
	return f
}

// issue returns a token for all servers.
func (f *fleetOf) issue(player uint64) token.Token {
	f.t.Helper()
	tok, err := token.Issue(f.key.Issuer(), token.Claims{ClientID: player, Expires: time.Now().Add(5 * time.Minute), Servers: f.addrs})
	if err != nil {
		f.t.Fatal(err)
	}
	return tok
}

func (f *fleetOf) dial(server int, tok token.Token) (*client.Conn, error) {
	return client.Dial(f.t.Context(), f.addrs[server].String(), client.Config{Network: f.network, Token: tok, Transport: client.Transport{Timeout: 3 * time.Second}})
}

// TestFleetToken races each of several tokens against four servers: one of them accepts it.
func TestFleetToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers, tokens = 4, 20
		f := newFleet(t, servers, 0)
		for n := range tokens {
			tok := f.issue(uint64(n + 1))
			var accepted atomic.Int64
			var dialing sync.WaitGroup
			for i := range servers {
				dialing.Go(func() {
					switch c, err := f.dial(i, tok); {
					case err == nil:
						accepted.Add(1)
						_ = c.Close()
					case !errors.Is(err, token.ErrUsed):
						t.Error(err)
					}
				})
			}
			if dialing.Wait(); accepted.Load() != 1 {
				t.Errorf("token %d was accepted %d times", n, accepted.Load())
			}
		}
		var s fleet.Stats
		for _, srv := range f.servers {
			got := srv.Stats().Fleet
			s.Admitted, s.Used = s.Admitted+got.Admitted, s.Used+got.Used
		}
		if s.Admitted != tokens || s.Used != tokens*(servers-1) {
			t.Errorf("%+v", s)
		}
	})
}

// TestFleetCopiedRequest sends the same request to join to all servers at the same time: one of
// them tells its game of a player. If the game of one has banned him, no other server admits him
// with that request either, nor does that one when he repeats it.
func TestFleetCopiedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 0)
		f.banned = map[uint64]bool{2: true}
		request := func(tok token.Token, servers ...netip.AddrPort) {
			var dialing sync.WaitGroup
			for _, addr := range servers {
				dialing.Go(func() {
					keys := bytes.NewReader(make([]byte, 64)) // the same for all
					c, err := rogue.Dial(t.Context(), addr.String(), rogue.Config{Token: tok, Network: f.network, Random: keys})
					switch {
					case err == nil:
						settle(time.Second)
						c.Close()
					case !errors.Is(err, token.ErrUsed):
						t.Error(err)
					}
				})
			}
			dialing.Wait()
		}
		request(f.issue(1), f.addrs...)
		tok := f.issue(2)
		request(tok, f.addrs[0])
		request(tok, f.addrs...)
		joined, admitted, used := f.joined.Load(), uint64(0), uint64(0)
		for _, srv := range f.servers {
			s := srv.Stats().Fleet
			admitted, used = admitted+s.Admitted, used+s.Used
		}
		if joined != 2 || admitted != 2 || used != 3+3 { // the first server refuses him without asking
			t.Errorf("joined %d times, admitted %d, refused %d", joined, admitted, used)
		}
	})
}

// TestFleetNewestSession joins a second server with a new token: the session on the first one ends.
// A session with an older token does not end a newer one.
func TestFleetNewestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 0)
		old := f.issue(1)
		time.Sleep(time.Second)
		first, err := f.dial(0, f.issue(1))
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		settle(time.Second)
		if c, err := f.dial(1, old); err == nil {
			settle(time.Second)
			if !errors.Is(c.Err(), transport.ErrReplaced) || first.Err() != nil {
				t.Errorf("the older token's session: %v; the newer one's: %v", c.Err(), first.Err())
			}
			_ = c.Close()
		}
		second, err := f.dial(1, f.issue(1))
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		settle(time.Second)
		if !errors.Is(first.Err(), transport.ErrReplaced) || second.Err() != nil {
			t.Errorf("first: %v, second: %v", first.Err(), second.Err())
		}
	})
}

// TestFleetOutage lets the store fail: players stay, joins are refused or allowed for a minute, and
// what happened meanwhile is recorded later.
func TestFleetOutage(t *testing.T) {
	for _, outage := range []time.Duration{0, time.Minute} {
		bubble(t, outage.String(), func(t *testing.T) {
			f := newFleet(t, 2, outage)
			playing, err := f.dial(0, f.issue(1))
			if err != nil {
				t.Fatal(err)
			}
			defer playing.Close()
			f.store.down.Store(true)
			settle(5 * time.Second)
			tok := f.issue(2)
			c, err := f.dial(0, tok)
			if allowed := err == nil; allowed != (outage > 0) || !allowed && !errors.Is(err, transport.ErrStore) {
				t.Fatalf("a join during the outage: %v", err)
			}
			if outage > 0 {
				_, err := f.dial(0, tok)
				if !errors.Is(err, token.ErrUsed) {
					t.Errorf("the token again at the same server: %v", err)
				}
				settle(time.Minute)
				if _, err := f.dial(0, f.issue(3)); !errors.Is(err, transport.ErrStore) {
					t.Errorf("a join after %v: %v", outage, err)
				}
			}
			if s := f.servers[0].Stats().Fleet; playing.Err() != nil || s.Up || s.Errors == 0 || s.Refused == 0 {
				t.Errorf("playing: %v, %+v", playing.Err(), s)
			}
			f.store.down.Store(false)
			settle(5 * time.Second)
			if s := f.servers[0].Stats().Fleet; !s.Up || s.Unrecorded != 0 {
				t.Errorf("after the outage: %+v", s)
			}
			if outage > 0 {
				defer c.Close()
				if _, err := f.dial(1, tok); !errors.Is(err, token.ErrUsed) || c.Err() != nil {
					t.Errorf("the token of the outage at another server: %v; its session: %v", err, c.Err())
				}
			}
		})
	}
}

// TestFleetName starts a server whose name another one has: it ends with an error that names that
// one, whose entry stays.
func TestFleetName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 0)
		srv, err := ds.Listen("127.0.0.1:7100", ds.Config{Network: f.network, Key: f.key, Fleet: &fleet.Config{Store: f.store, Name: "s0"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Serve(t.Context()); !errors.Is(err, fleet.ErrTaken) {
			t.Error(err)
		}
		all, err := f.store.Servers(t.Context())
		if err != nil || len(all) != 1 || all[0].Addrs[0] != f.addrs[0] {
			t.Errorf("%+v, %v", all, err)
		}
		if !f.servers[0].Stats().Fleet.Listed {
			t.Error("the first server is not listed")
		}
	})
}

// TestFleetDirectory reads the directory while a server is there, drains and is closed.
func TestFleetDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 0)
		c, err := f.dial(1, f.issue(1))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := f.servers[0].SetAddrs(netip.MustParseAddrPort("203.0.113.7:7777")); err != nil {
			t.Fatal(err)
		}
		settle(3 * time.Second)
		all, err := f.store.Servers(t.Context())
		if err != nil || len(all) != 2 || all[1].Players != 1 || all[1].MaxPlayers != endpoint.DefaultMaxConns || all[1].Addrs[0] != f.addrs[1] ||
			all[0].Addrs[0].String() != "203.0.113.7:7777" || all[0].Labels["map"] != "dust" || all[0].Key != f.key.ID().String() {
			t.Errorf("%+v, %v", all, err)
		}
		if s, ok := fleet.Choose(all, func(s *fleet.Server) bool { return s.Players == 0 }); !ok || s.Name != "s0" {
			t.Errorf("%+v", s)
		}
		go func() { _ = f.servers[1].Shutdown(t.Context()) }()
		settle(2500 * ms)
		_ = f.servers[1].Close()
		if all, _ = f.store.Servers(t.Context()); len(all) != 1 {
			t.Errorf("%+v", all)
		}
	})
}
