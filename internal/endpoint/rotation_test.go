package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/token"
)

// TestKeyRotation replaces the key of a listener with many connections: first it adds the new key,
// then it removes the old one. No connection ends and no datagram is lost. Tokens of the old key
// are accepted until it is removed, and then refused with an error that names the key.
func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 20 // connections of each phase
		n, server := newNetwork(t, good), &recorder{t: t}
		old, next := newKey(t), newKey(t)
		l := listen(t, publicAddr, endpoint.Config{Network: n, Key: old}, server)
		client := uint64(0)
		config := func(key token.Key) endpoint.Config {
			client++
			return endpoint.Config{Network: n, Token: issue(t, key, func(c *token.Claims) {
				c.ClientID, c.Servers = client, []netip.AddrPort{l.Addr()}
			})}
		}
		var conns []*endpoint.Conn
		var sent int
		connect := func(key token.Key) {
			for range each {
				conns = append(conns, dial(t, l.Addr(), config(key), &recorder{t: t}))
				for i, c := range conns {
					if err := c.Send(fmt.Append(nil, i)); err != nil {
						t.Fatal(err)
					}
					sent++
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		refused := func(key token.Key) {
			t.Helper()
			cfg := config(key)
			_, err := endpoint.Dial(t.Context(), publicAddr, cfg, &recorder{t: t})
			if !errors.Is(err, token.ErrWrongKey) || !strings.HasSuffix(err.Error(), "the server has no key "+key.ID().String()) {
				t.Errorf("a token of a key that the server does not have: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
			defer cancel()
			_, err = endpoint.Dial(ctx, publicAddr, cfg, &recorder{t: t})
			if !errors.Is(err, token.ErrWrongKey) || !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "refused by an answer that is not authenticated: ") {
				t.Errorf("a token of a key that the server does not have, for 400 ms: %v", err)
			}
		}
		unused, used := config(old), config(old)
		if err := dial(t, l.Addr(), used, &recorder{t: t}).Close(); err != nil {
			t.Fatal(err)
		}
		connect(old)
		refused(next)
		if err := l.SetKeys(next, old); err != nil {
			t.Fatal(err)
		}
		connect(old)
		connect(next)
		if _, err := endpoint.Dial(t.Context(), publicAddr, used, &recorder{t: t}); !errors.Is(err, token.ErrUsed) {
			t.Errorf("a used token after SetKeys: %v", err)
		}
		if err := l.SetKeys(next); err != nil {
			t.Fatal(err)
		}
		connect(next)
		refused(old)
		if _, err := endpoint.Dial(t.Context(), publicAddr, unused, &recorder{t: t}); !errors.Is(err, token.ErrWrongKey) {
			t.Errorf("an unused token of the old key: %v", err)
		}
		time.Sleep(time.Minute)
		opened, closed, datagrams, _ := server.snapshot()
		if len(opened) != 4*each+1 || len(closed) != 1 || len(datagrams) != sent {
			t.Errorf("%d connections, %d ended; %d datagrams of %d", len(opened), len(closed), len(datagrams), sent)
		}
	})
}

func TestKeysAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, key := newNetwork(t, good), newKey(t)
		many := make([]token.Key, endpoint.MaxKeys+1)
		for i := range many {
			many[i] = newKey(t)
		}
		l := listen(t, publicAddr, endpoint.Config{Network: n, Key: key}, &recorder{t: t})
		local := listen(t, "127.0.0.1:0", endpoint.Config{Network: n}, &recorder{t: t})
		synctest.Wait() // both serve
		for name, keys := range map[string][]token.Key{
			"none": nil, "zero": {{}}, "twice": {key, key}, "development": {key, token.Development()}, "too many": many,
		} {
			cfg := endpoint.Config{Network: n, OtherKeys: keys}
			if len(keys) > 0 {
				cfg.Key, cfg.OtherKeys = keys[0], keys[1:]
				if _, err := endpoint.Listen("192.0.2.1:7001", cfg); err == nil {
					t.Errorf("%s: Listen accepts them", name)
				}
			}
			if err := l.SetKeys(keys...); err == nil {
				t.Errorf("%s: SetKeys accepts them", name)
			}
		}
		if err := local.SetKeys(key); err == nil {
			t.Error("a key instead of the development key")
		}
		if err := l.SetKeys(many[1:]...); err != nil {
			t.Error(err)
		}
	})
}

// TestSetAddrs replaces the addresses that tokens must name, of a listener that has none at first.
// Connections continue.
func TestSetAddrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, key := newNetwork(t, good), newKey(t)
		l := listen(t, publicAddr, endpoint.Config{Network: n, Key: key, Addrs: []netip.AddrPort{}}, &recorder{t: t})
		other := netip.MustParseAddrPort("192.0.2.1:4000")
		client := uint64(0)
		join := func(names netip.AddrPort) (*endpoint.Conn, error) {
			client++
			return endpoint.Dial(t.Context(), publicAddr, endpoint.Config{Network: n, Token: issue(t, key, func(c *token.Claims) {
				c.ClientID, c.Servers = client, []netip.AddrPort{names}
			})}, &recorder{t: t})
		}
		refused := func(names netip.AddrPort) {
			t.Helper()
			if _, err := join(names); !errors.Is(err, token.ErrWrongServer) {
				t.Errorf("a token for %v: %v", names, err)
			}
		}
		accepted := func(names netip.AddrPort) *endpoint.Conn {
			t.Helper()
			c, err := join(names)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		set := func(addrs ...netip.AddrPort) {
			t.Helper()
			if err := l.SetAddrs(addrs...); err != nil {
				t.Fatal(err)
			}
		}
		refused(l.Addr())
		set(l.Addr())
		first := accepted(l.Addr())
		refused(other)
		if err := l.SetAddrs(netip.AddrPort{}); err == nil {
			t.Error("an invalid address")
		}
		set(other)
		refused(l.Addr())
		second := accepted(other)
		set()
		refused(other)
		for _, c := range []*endpoint.Conn{first, second} {
			if err := c.Send([]byte{1}); err != nil {
				t.Error(err)
			}
		}
	})
}
