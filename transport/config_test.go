package transport_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func mustAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestInsecure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := transport.Config{Network: newNetwork(t, simnet.Config{})}
		const addr = "192.0.2.1:7000"
		_, err := transport.Listen(addr, cfg)
		if !errors.Is(err, transport.ErrInsecure) || !strings.Contains(err.Error(), "Config.Insecure") {
			t.Errorf("Listen: %v", err)
		}
		if _, err := transport.Dial(t.Context(), addr, cfg, &recorder{t: t}); !errors.Is(err, transport.ErrInsecure) {
			t.Errorf("Dial: %v", err)
		}
		cfg.Insecure = true
		l := listen(t, addr, cfg, &recorder{t: t})
		dial(t, l.Addr(), cfg, &recorder{t: t})
	})
}

func TestConfigIsChecked(t *testing.T) {
	for field, cfg := range map[string]transport.Config{
		"Timeout":  {Timeout: time.Millisecond},
		"Tick":     {Tick: time.Microsecond},
		"MaxConns": {MaxConns: -1},
	} {
		if _, err := transport.Listen("127.0.0.1:0", cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := transport.Dial(t.Context(), serverAddr, cfg, &recorder{t: t}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
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
