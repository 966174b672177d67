package transport_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func mustAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

const publicAddr = "192.0.2.1:7000"

func TestKeysAreNeededElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := transport.Config{Network: newNetwork(t, simnet.Config{})}
		for _, key := range []token.Key{{}, token.Development()} {
			cfg.Key = key
			_, err := transport.Listen(publicAddr, cfg)
			if !errors.Is(err, token.ErrNoKey) || !strings.Contains(err.Error(), "Config.Key") {
				t.Errorf("Listen: %v", err)
			}
		}
		_, err := transport.Dial(t.Context(), publicAddr, cfg, &recorder{t: t})
		if !errors.Is(err, token.ErrNoToken) || !strings.Contains(err.Error(), "Config.Token") {
			t.Errorf("Dial: %v", err)
		}
		cfg.Insecure = true
		l := listen(t, publicAddr, cfg, &recorder{t: t})
		dial(t, l.Addr(), cfg, &recorder{t: t})
	})
}

// TestOwnKey connects with the game's own key and a token that its backend issued.
func TestOwnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		key, err := token.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		server := &recorder{t: t}
		l := listen(t, publicAddr, transport.Config{Network: n, Key: key, Addrs: []netip.AddrPort{mustAddr("203.0.113.7:7777")}}, server)
		claims := token.Claims{ClientID: 42, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{mustAddr("203.0.113.7:7777")}, UserData: []byte("blue")}
		tok, err := token.Issue(key.Issuer(), claims)
		if err != nil {
			t.Fatal(err)
		}
		cfg := transport.Config{Network: n, Token: tok}
		conn := dial(t, l.Addr(), cfg, &recorder{t: t})
		time.Sleep(time.Second)
		opened, _, _, _ := server.snapshot()
		if len(opened) != 1 || opened[0].ClientID() != 42 || string(opened[0].UserData()) != "blue" {
			t.Fatalf("opened %v", opened)
		}
		if conn.Suite() != transport.AES128GCM || opened[0].Suite() != transport.AES128GCM || conn.ClientID() != 0 || conn.UserData() != nil {
			t.Errorf("suites %v and %v", conn.Suite(), opened[0].Suite())
		}
		if _, err := transport.Dial(t.Context(), publicAddr, cfg, &recorder{t: t}); !errors.Is(err, token.ErrUsed) {
			t.Errorf("the same token: %v", err)
		}
		claims.Servers[0] = mustAddr(publicAddr) // which is not among Addrs
		if cfg.Token, err = token.Issue(key.Issuer(), claims); err != nil {
			t.Fatal(err)
		}
		if _, err := transport.Dial(t.Context(), publicAddr, cfg, &recorder{t: t}); !errors.Is(err, token.ErrWrongServer) {
			t.Errorf("another server's token: %v", err)
		}
	})
}

func TestSuites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		gcm, both, small := []transport.Suite{transport.AES128GCM}, []transport.Suite{transport.AES128CTRHMAC8, transport.AES128GCM}, []transport.Suite{transport.AES128CTRHMAC8}
		for i, c := range []struct {
			server, client []transport.Suite
			want           transport.Suite
			err            error
		}{
			{nil, nil, transport.AES128GCM, nil},
			{both, nil, transport.AES128GCM, nil},
			{both, both, transport.AES128CTRHMAC8, nil},
			{gcm, both, transport.AES128GCM, nil},
			{gcm, small, 0, transport.ErrNoSuite},
			{[]transport.Suite{transport.None}, []transport.Suite{transport.None}, transport.None, nil},
		} {
			cfg := transport.Config{Network: n, Suites: c.server, Insecure: true}
			server := &recorder{t: t}
			l := listen(t, "127.0.0.1:0", cfg, server)
			cfg.Suites = c.client
			conn, err := transport.Dial(t.Context(), l.Addr().String(), cfg, &recorder{t: t})
			if !errors.Is(err, c.err) || err == nil && conn.Suite() != c.want {
				t.Errorf("%d: %v", i, err)
			}
			if err != nil {
				continue
			}
			_ = conn.Send([]byte("hello"))
			time.Sleep(time.Second)
			if _, _, datagrams, _ := server.snapshot(); len(datagrams) != 1 {
				t.Errorf("%d: %q", i, datagrams)
			}
			_ = conn.Close()
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for field, cfg := range map[string]transport.Config{
		"Timeout":              {Timeout: time.Millisecond},
		"Tick":                 {Tick: time.Microsecond},
		"MaxConns":             {MaxConns: -1},
		"MaxPending":           {MaxPending: -1},
		"HandshakesPerNetwork": {HandshakesPerNetwork: -1},
		"Insecure":             {Suites: []transport.Suite{transport.None}},
		"Suites":               {Suites: []transport.Suite{9}},
	} {
		if _, err := transport.Listen("127.0.0.1:0", cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := transport.Dial(t.Context(), serverAddr, cfg, &recorder{t: t}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestListenerAddrs(t *testing.T) {
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []transport.Config{
		{Key: key},
		{Key: key, Addrs: []netip.AddrPort{{}}},
		{Key: key, Addrs: []netip.AddrPort{mustAddr("203.0.113.7:0")}},
	} {
		if _, err := transport.Listen("0.0.0.0:0", cfg); err == nil || !strings.Contains(err.Error(), "Config.Addrs") {
			t.Errorf("%v: %v", cfg.Addrs, err)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:x", "[::1:5"} {
		if _, err := transport.Dial(t.Context(), addr, transport.Config{}, &recorder{t: t}); err == nil {
			t.Errorf("dialed %q", addr)
		}
	}
}
