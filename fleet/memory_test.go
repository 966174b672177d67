package fleet_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/internal/storetest"
	"github.com/uplink-rpc/uplink/internal/fleetmember"
)

func TestAttempts(t *testing.T) { storetest.Attempts(t, fleet.NewMemory()) }

func TestLimits(t *testing.T) { storetest.Limits(t, fleet.NewMemory()) }

func TestOwners(t *testing.T) { storetest.Owners(t, fleet.NewMemory()) }

func TestRoom(t *testing.T) { storetest.Room(t, fleet.NewMemory()) }

// TestReceipt lists servers whose clocks are wrong for ServerTTL from the receipt of their
// announcement.
func TestReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		storetest.Receipt(t, fleet.NewMemory(), func(what string, done func() bool) {
			for !done() {
				if time.Since(start) > fleet.ServerTTL {
					t.Fatalf("not within %v: %s", fleet.ServerTTL, what)
				}
				time.Sleep(time.Second)
			}
		})
		if d := time.Since(start); d <= fleet.ServerTTL {
			t.Errorf("the servers expired after %v", d)
		}
	})
}

// TestUnlisted runs a server whose entry the directory does not accept at first: the log says so
// once, and the store counts as working.
func TestUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		cfg := fleet.Config{Store: fleet.NewMemory(), Name: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))}
		m, err := fleetmember.New(cfg, func(uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		defer func() { cancel(); <-done }()
		go func() {
			defer close(done)
			if err := m.Run(ctx, func() fleet.Server {
				e := fleet.Server{Addrs: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:7777")}}
				if time.Since(start) > 9*time.Second {
					e.Addrs = nil
				}
				return e
			}); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if s := m.Stats(); !s.Up || s.Listed || s.Errors != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		text := log.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "server not listed") || !strings.Contains(text, "addrs: 0.0.0.0:7777") || !strings.Contains(text, "server listed again") {
			t.Error(text)
		}
	})
}
