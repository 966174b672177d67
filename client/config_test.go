package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// TestInvalidConfig checks that errors name the invalid field.
func TestInvalidConfig(t *testing.T) {
	for want, cfg := range map[string]client.Config{
		"Config.Ring":                       {Ring: 1},
		"Config.Ring is 257":                {Ring: rpcdelta.MaxRing + 1},
		"Config.Ring is -1":                 {Ring: -1},
		"Config.Codec":                      {Codec: 77},
		"Config.BindTimeout":                {BindTimeout: -1},
		"Config.Timeout":                    {Timeout: time.Millisecond},
		"Config.Tick":                       {Tick: time.Microsecond},
		"Config.Tick is -2":                 {Tick: -2},
		"Config.Bandwidth":                  {Bandwidth: -1},
		"0 with FlushOnly":                  {Tick: time.Second, FlushOnly: true},
		"Config: rpcdelta: Redundancy of 8": {Redundancy: 8},
		"Config: rpcdelta: Delivery of 1.5": {Delivery: 1.5},
		"Config: rpcdelta: RedundancyBytes": {RedundancyBytes: -1},
	} {
		if _, err := client.Dial(t.Context(), uplinktest.Addr, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestNoToken checks that Dial requires a token for other machines.
func TestNoToken(t *testing.T) {
	_, err := client.Dial(t.Context(), "192.0.2.1:7777", client.Config{})
	if !errors.Is(err, token.ErrNoToken) || !strings.Contains(err.Error(), "192.0.2.1:7777") || !strings.Contains(err.Error(), "Config.Token") {
		t.Errorf("got %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// There is no server, but that is another error.
		_, err := client.Dial(ctx, "192.0.2.1:7777", client.Config{Insecure: true, Network: network})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "192.0.2.1:7777") {
			t.Errorf("got %v", err)
		}
	})
}

// TestDial fails in several ways, then succeeds with a context that is canceled afterwards.
func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 2)
		cfg := client.Config{Network: network, Timeout: 2 * time.Second}
		if _, err := client.Dial(t.Context(), "nowhere", cfg); err == nil {
			t.Error("an address without a port was dialed")
		}
		start := time.Now()
		if _, err := client.Dial(t.Context(), uplinktest.Addr, cfg); !errors.Is(err, transport.ErrTimeout) || time.Since(start) > 3*time.Second {
			t.Errorf("no server: %v after %v", err, time.Since(start))
		}
		uplinktest.Serve(t, network, ds.Config{MaxPlayers: 1}, func(*ds.Server) error { return nil })
		first := uplinktest.Dial(t, network, client.Config{})
		settle(time.Second)
		if _, err := client.Dial(t.Context(), uplinktest.Addr, cfg); !errors.Is(err, transport.ErrServerFull) {
			t.Errorf("the server is full: %v", err)
		}
		uplinktest.Must(t, first.Close())
		settle(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		second, err := client.Dial(ctx, uplinktest.Addr, cfg)
		uplinktest.Must(t, err)
		cancel()
		settle(10 * time.Second)
		if st := second.Stats(); second.RTT() == 0 || st.Transport.DatagramsReceived < 10 {
			t.Errorf("the connection ended: %+v", st)
		}
		uplinktest.Must(t, second.Close())
	})
}
