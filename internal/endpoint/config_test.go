package endpoint_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const publicAddr = "192.0.2.1:7000"

func TestKeysAreNeededElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := endpoint.Config{Network: newNetwork(t, simnet.Config{})}
		for _, key := range []token.Key{{}, token.Development()} {
			cfg.Key = key
			_, err := endpoint.Listen(publicAddr, cfg)
			if !errors.Is(err, token.ErrNoKey) || !strings.Contains(err.Error(), "Config.Key") {
				t.Errorf("Listen: %v", err)
			}
		}
		_, err := endpoint.Dial(t.Context(), publicAddr, cfg, &recorder{t: t})
		if !errors.Is(err, token.ErrNoToken) || !strings.Contains(err.Error(), "Config.Token") {
			t.Errorf("Dial: %v", err)
		}
		cfg.Insecure = true
		l := listen(t, publicAddr, cfg, &recorder{t: t})
		dial(t, l.Addr(), cfg, &recorder{t: t})
	})
}

func newKey(t *testing.T) token.Key {
	t.Helper()
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestOwnKey connects with the game's own key and a token that its backend issued.
func TestOwnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, key, server := newNetwork(t, good), newKey(t), &recorder{t: t}
		name := netip.MustParseAddrPort("203.0.113.7:7777")
		l := listen(t, publicAddr, endpoint.Config{Network: n, Key: key, Addrs: []netip.AddrPort{name}}, server)
		cfg := endpoint.Config{Network: n, Token: issue(t, key, func(c *token.Claims) {
			c.ClientID, c.Servers, c.UserData = 42, []netip.AddrPort{name}, []byte("blue")
		})}
		conn := dial(t, l.Addr(), cfg, &recorder{t: t})
		time.Sleep(time.Second)
		opened, _, _, _ := server.snapshot()
		if len(opened) != 1 || opened[0].ClientID() != 42 || string(opened[0].UserData()) != "blue" {
			t.Fatalf("opened %v", opened)
		}
		if conn.Suite() != transport.AES128GCM || opened[0].Suite() != transport.AES128GCM || conn.ClientID() != 0 || conn.UserData() != nil {
			t.Errorf("suites %v and %v", conn.Suite(), opened[0].Suite())
		}
		// A token names one of Addrs, not the address that is dialed.
		cfg.Token = issue(t, key, func(c *token.Claims) { c.Servers = []netip.AddrPort{l.Addr()} })
		if _, err := endpoint.Dial(t.Context(), publicAddr, cfg, &recorder{t: t}); !errors.Is(err, token.ErrWrongServer) {
			t.Errorf("another server's token: %v", err)
		}
	})
}

func TestSuites(t *testing.T) {
	none, gcm := []transport.Suite{transport.None}, []transport.Suite{transport.AES128GCM}
	small, sip := []transport.Suite{transport.AES128CTRHMAC8}, []transport.Suite{transport.ChaCha20SipHash8}
	chacha := []transport.Suite{transport.ChaCha20Poly1305}
	both := append(small[:1:1], gcm...)
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
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
			{gcm, chacha, 0, transport.ErrNoSuite},
			{nil, chacha, transport.ChaCha20Poly1305, nil},
			{chacha, nil, transport.ChaCha20Poly1305, nil},
			{append(both, sip...), sip, transport.ChaCha20SipHash8, nil},
			{none, none, transport.None, nil},
		} {
			cfg := endpoint.Config{Network: n, Suites: c.server, Insecure: true}
			server := &recorder{t: t}
			l := listen(t, "127.0.0.1:0", cfg, server)
			cfg.Suites = c.client
			conn, err := endpoint.Dial(t.Context(), l.Addr().String(), cfg, &recorder{t: t})
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
	const local = "127.0.0.1:0"
	key := newKey(t)
	noPort := netip.MustParseAddrPort("203.0.113.7:0")
	for _, c := range []struct {
		field, addr string
		dial        bool // also checked by Dial
		cfg         endpoint.Config
	}{
		{"Timeout", local, true, endpoint.Config{Timeout: time.Millisecond}},
		{"Tick", local, true, endpoint.Config{Tick: time.Microsecond}},
		{"Tick", local, false, endpoint.Config{Tick: endpoint.OnWake}},
		{"MaxConns", local, true, endpoint.Config{MaxConns: -1}},
		{"MaxPending", local, true, endpoint.Config{MaxPending: -1}},
		{"HandshakesPerNetwork", local, true, endpoint.Config{HandshakesPerNetwork: -1}},
		{"Shards", local, true, endpoint.Config{Shards: -1}},
		{"Shards", local, true, endpoint.Config{Shards: endpoint.MaxShards() + 1}},
		{"Insecure", local, true, endpoint.Config{Suites: []transport.Suite{transport.None}}},
		{"Suites", local, true, endpoint.Config{Suites: []transport.Suite{9}}},
		{"Addrs", "0.0.0.0:0", false, endpoint.Config{Key: key}},
		{"Addrs", "0.0.0.0:0", false, endpoint.Config{Key: key, Addrs: []netip.AddrPort{{}}}},
		{"Addrs", "0.0.0.0:0", false, endpoint.Config{Key: key, Addrs: []netip.AddrPort{noPort}}},
	} {
		if _, err := endpoint.Listen(c.addr, c.cfg); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
		if !c.dial {
			continue
		}
		_, err := endpoint.Dial(t.Context(), serverAddr, c.cfg, &recorder{t: t})
		if err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:x", "[::1:5"} {
		if _, err := endpoint.Dial(t.Context(), addr, endpoint.Config{}, &recorder{t: t}); err == nil {
			t.Errorf("dialed %q", addr)
		}
	}
}

// TestKeyLog verifies that both ends log the same secrets, which decrypt their datagrams.
func TestKeyLog(t *testing.T) {
	for _, suite := range []transport.Suite{
		transport.AES128GCM, transport.AES128CTRHMAC8, transport.ChaCha20Poly1305, transport.ChaCha20SipHash8, transport.None,
	} {
		synctest.Test(t, func(t *testing.T) {
			network := uplinktest.NewNetwork(t, good, good)
			var ends [2]bytes.Buffer
			cfg := endpoint.Config{Network: network, Suites: []transport.Suite{suite}, Insecure: true}
			server, client := cfg, cfg
			server.KeyLog, client.KeyLog = &ends[0], &ends[1]
			type datagram struct {
				from, to netip.AddrPort
				b        []byte
			}
			var sent []datagram
			network.Watch(func(from, to netip.AddrPort, b []byte) {
				sent = append(sent, datagram{from, to, bytes.Clone(b)})
			})
			l := listen(t, serverAddr, server, &recorder{t: t})
			conn := dial(t, l.Addr(), client, &recorder{t: t})
			if err := conn.Send([]byte("a payload")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			network.Watch(nil)
			if !bytes.Equal(ends[0].Bytes(), ends[1].Bytes()) {
				t.Errorf("the ends say\n%s%s", &ends[0], &ends[1])
			}
			sessions, err := keylog.Parse(&ends[0])
			if err != nil || len(sessions) != 1 || sessions[0].ID != conn.ID() || sessions[0].Suite != suite {
				t.Fatalf("%+v, %v", sessions, err)
			}
			opener := keylog.NewOpener(sessions)
			var all []byte
			for _, d := range sent {
				out, v := opener.Open(nil, d.from, d.to, d.b)
				if v != keylog.Opened && v != keylog.Plain {
					t.Errorf("%x is not opened: verdict %d", d.b, v)
				}
				all = append(all, out...)
			}
			if !bytes.Contains(all, []byte("a payload")) {
				t.Errorf("no payload in %d datagrams", len(sent))
			}
		})
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestKeyLogIsOff verifies that no secret is written unless the configuration asks for it, whatever
// the environment contains, and that a session continues if its key log fails.
func TestKeyLogIsOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.txt")
	t.Setenv("UPLINK_KEYLOG", path)
	for wanted, keyLog := range map[string]io.Writer{
		"": nil, `level=WARN msg="key log not written" error="no room"`: full{},
	} {
		var logs bytes.Buffer
		inWorld(t, simnet.Config{}, func(t *testing.T, w *world) {
			w.serverConn(t)
			if err := errors.Join(w.conn.Close(), w.listener.Close()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			text := logs.String()
			if strings.Contains(text, "UPLINK_SESSION") || !strings.Contains(text, "connection") || !strings.Contains(text, wanted) {
				t.Errorf("logged:\n%s", text)
			}
		}, func(w *world) {
			w.cfg.KeyLog = keyLog
			w.cfg.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", path, err)
	}
}
