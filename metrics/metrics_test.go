package metrics_test

import (
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/scrape"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type move struct {
	X       float64 `uplink:"resolution=0.01"`
	Buttons uint8
}

// registry plays ten seconds of two RPCs over a link, in virtual time, and passes a pedantic
// registry with the collectors of both endpoints. The server supports the suites of cfg.
func registry(t *testing.T, cfg client.Config, test func(*testing.T, *prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 30 * time.Millisecond, Loss: 0.05, Seed: 1}
		network := uplinktest.NewNetwork(t, link, link)
		srv := serve(t, network, ds.Config{Transport: ds.Transport{Suites: cfg.Transport.Suites, Insecure: cfg.Transport.Insecure}}, "ServerMove", "ServerFire")
		conn := uplinktest.Dial(t, network, cfg)
		moves, err := client.Bind[move](t.Context(), conn, "ServerMove", client.BindConfig{})
		must(t, err)
		shots, err := client.Bind[move](t.Context(), conn, "ServerFire", client.BindConfig{Reliable: true})
		must(t, err)
		for i := range 600 {
			must(t, uplinktest.Sent(moves.Send(&move{X: float64(i) / 10})))
			if i%60 == 0 {
				must(t, uplinktest.Sent(shots.Send(&move{Buttons: uint8(i)})))
			}
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewServer(srv), metrics.NewClient(conn))
		test(t, r)
	})
}

// serve starts a server of RPCs with the type move.
func serve(t *testing.T, network transport.Network, cfg ds.Config, rpcs ...string) *ds.Server {
	t.Helper()
	return uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
		for _, rpc := range rpcs {
			must(t, ds.Handle(s, rpc, func(*ds.Player, ds.Frame[move]) {}))
		}
		return nil
	}).Server
}

var must = uplinktest.Must

// TestEndpoints checks the metrics of both endpoints on a link that loses 5 % in both directions,
// and compares the client's counts with the server's.
func TestEndpoints(t *testing.T) {
	registry(t, client.Config{}, func(t *testing.T, r *prometheus.Registry) {
		problems, err := testutil.GatherAndLint(r)
		must(t, err)
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		v := scrape.Gather(t, r)
		for _, c := range []struct {
			series      string
			least, most float64
		}{
			{"uplink_client_frames_total rpc=ServerMove", 600, 600},
			{"uplink_client_payloads_total rpc=ServerMove", 600, 600},
			{"uplink_client_coalesced_payloads_total", 0, 0},
			{"uplink_ds_frames_total rpc=ServerMove", 590, 600},
			{"uplink_ds_missed_frames_total rpc=ServerMove", 0, 600 - v.Sum("uplink_ds_frames_total", "rpc=ServerMove")},
			{"uplink_ds_frames_total rpc=ServerFire channel=reliable", 10, 10},
			{"uplink_client_frame_bytes_total stage=full rpc=ServerMove", 600, 1e5},
			{"uplink_client_frame_bytes_total stage=payload rpc=ServerMove", 400, 1e5},
			{"uplink_ds_players", 1, 1},
			{"uplink_ds_max_players", endpoint.DefaultMaxConns, endpoint.DefaultMaxConns},
			{"uplink_ds_build_info", 1, 1},
			{"uplink_client_build_info", 1, 1},
			{"uplink_client_ack_bytes_total", 1, v.Sum("uplink_ds_ack_bytes_total") - 1},
			{"uplink_client_rtt_seconds", 5, 20},
			{"uplink_ds_baseline_age_frames rpc=ServerMove", 300, 600},
			{"uplink_client_loss_ratio", 0.005, 0.2},
			{"uplink_client_loss_burst_payloads", 1, 3},
			{"uplink_client_redundancy_payloads", 1, 7},
			{"uplink_client_link_bytes_per_second direction=received", 10, 1000},
			{"uplink_client_link_bytes_per_second direction=sent", 0, 1e5},
			{"uplink_client_bandwidth_limit_bytes_per_second", 0, 0},
			{"uplink_client_bandwidth_bytes_per_second", 0, 0},
			{"uplink_client_over_bandwidth_bytes_total", 0, 0},
			{"uplink_client_congested_connections", 0, 0},
			{"uplink_client_max_redundancy_payloads", rpcdelta.MaxRedundancy, rpcdelta.MaxRedundancy},
			{"uplink_client_min_frames_per_payload", 1, 1},
		} {
			v.Between(t, c.series, c.least, c.most)
		}
		if v.Has("uplink_client_loss_ratio", "rpc=ServerFire") {
			t.Error("a reliable RPC has a loss")
		}
		checkLabels(t, v)
		checkReasons(t, v)
	})
}

// checkLabels checks that the number of series does not depend on the players.
func checkLabels(t *testing.T, v scrape.Families) {
	allowed := []string{"rpc", "channel", "kind", "stage", "reason", "cause", "event", "direction", "version", "go_version"}
	for name, family := range v {
		if !strings.HasPrefix(name, "uplink_") {
			t.Errorf("metric %s", name)
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if !slices.Contains(allowed, l.GetName()) {
					t.Errorf("%s has label %s", name, l.GetName())
				}
			}
		}
	}
}

// checkReasons checks that each drop reason has a series before the first drop, so that rates are
// right from the start.
func checkReasons(t *testing.T, v scrape.Families) {
	for name, reasons := range map[string][]string{
		"uplink_ds_dropped_total": {
			"baseline_missing", "desync", "late", "duplicate", "malformed", "unknown_rpc", "queue_full", "rate_limited", "rejected", "kicked",
			"wrong_session", "unauthenticated", "unexpected", "unknown_session", "version", "cookie", "token", "suite", "full", "overrun",
		},
		"uplink_client_dropped_total": {
			"too_large", "out_of_range", "unencodable", "reconnecting", "malformed", "unauthenticated", "duplicate", "late",
		},
	} {
		for _, reason := range reasons {
			if !v.Has(name, "reason="+reason) {
				t.Errorf("%s has no series for %s", name, reason)
			}
		}
	}
	if has := v.Has("uplink_ds_dropped_total", "reason=kernel"); has != (runtime.GOOS == "linux") {
		t.Errorf("series for kernel on the server: %v", has)
	}
}

// TestAEADBytes checks the AEAD overhead of each suite, and that wire bytes include it.
func TestAEADBytes(t *testing.T) {
	for suite, tag := range map[transport.Suite]float64{transport.None: 0, transport.AES128CTRHMAC8: 8, transport.AES128GCM: 16} {
		cfg := client.Config{Transport: client.Transport{Suites: []transport.Suite{suite}, Insecure: true}}
		registry(t, cfg, func(t *testing.T, r *prometheus.Registry) {
			v := scrape.Gather(t, r)
			for _, side := range []string{"uplink_client_", "uplink_ds_"} {
				for channel, header := range map[string]float64{"channel=unreliable": 2, "channel=reliable": 3 + 24} {
					payloads := v.Sum(side+"payloads_total", channel)
					aead := v.Sum(side+"frame_bytes_total", "stage=aead", channel)
					wire := v.Sum(side+"wire_bytes_total", channel)
					least := v.Sum(side+"frame_bytes_total", "stage=payload", channel) + payloads*(28+header+tag)
					if payloads < 10 || aead != payloads*tag || wire < least || wire > least+5*payloads {
						t.Errorf("%v: %s %s: %v bytes of AEAD overhead of %v payloads, %v wire bytes, want %v and payload headers", suite, side, channel, aead, payloads, wire, least)
					}
				}
			}
			acks := v.Sum("uplink_ds_acks_total")
			aead, wire := v.Sum("uplink_ds_ack_aead_bytes_total"), v.Sum("uplink_ds_ack_wire_bytes_total")
			if want := v.Sum("uplink_ds_ack_bytes_total") + acks*(30+tag); acks == 0 || aead != acks*tag || wire != want {
				t.Errorf("%v: %v bytes of AEAD overhead of %v acks, %v wire bytes, want %v", suite, aead, acks, wire, want)
			}
		})
	}
}

// TestPathMigrations changes the client's address.
func TestPathMigrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		addr := make(chan netip.AddrPort, 1)
		srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) { addr <- p.Addr() }})
		uplinktest.Dial(t, network, client.Config{})
		if v := scrape.Collect(t, metrics.NewServer(srv)); v.Sum("uplink_ds_path_migrations_total") != 0 || !v.Has("uplink_ds_path_migrations_total") {
			t.Errorf("%v path migrations before the first", v.Sum("uplink_ds_path_migrations_total"))
		}
		_, err := network.Rebind(<-addr)
		must(t, err)
		time.Sleep(5 * time.Second)
		if n := scrape.Collect(t, metrics.NewServer(srv)).Sum("uplink_ds_path_migrations_total"); n != 1 {
			t.Errorf("%v path migrations", n)
		}
	})
}

// TestPanics checks the counts of a panic and of the frames that are dropped because of it.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, Logger: slog.New(slog.DiscardHandler)}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { panic("a bug in the game") })
		})
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		for i := range uint64(5) {
			m := uplinktest.MoveAt(1, i)
			must(t, uplinktest.Sent(move.Send(&m)))
		}
		time.Sleep(time.Second)
		srv.Poll()
		v := scrape.Collect(t, metrics.NewServer(srv.Server))
		if panics, drops := v.Sum("uplink_ds_panics_total"), v.Sum("uplink_ds_dropped_total", "reason=kicked"); panics != 1 || drops != 4 {
			t.Errorf("%v panics, %v frames dropped, want 1 and 4", panics, drops)
		}
	})
}

// TestLateFrames checks that the counter of missed frames does not decrease when a late frame
// arrives, which Prometheus would take for a restart.
func TestLateFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 30 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.1, Seed: 1}
		network := uplinktest.NewNetwork(t, link, simnet.Config{})
		srv := serve(t, network, ds.Config{Tuning: ds.Tuning{DeliverLate: true}}, "Move")
		conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Redundancy: rpcdelta.RedundancyOff}})
		stream, err := client.Bind[move](t.Context(), conn, "Move", client.BindConfig{})
		must(t, err)
		before, late, frames := 0.0, 0.0, 0.0
		for i := range 600 {
			must(t, uplinktest.Sent(stream.Send(&move{X: float64(i)})))
			time.Sleep(time.Second / 60)
			v := scrape.Collect(t, metrics.NewServer(srv))
			missed := v.Sum("uplink_ds_missed_frames_total")
			if missed < before {
				t.Fatalf("frame %d: %v missed, before it were %v", i, missed, before)
			}
			before, late, frames = missed, v.Sum("uplink_ds_late_frames_total"), v.Sum("uplink_ds_frames_total")
		}
		if lost := before - late; late < 20 || lost < 0 || frames+lost > 600 || frames+lost < 590 {
			t.Errorf("%v missed, %v late, %v delivered", before, late, frames)
		}
	})
}

// TestCoalescing checks the counts of coalesced payloads, and of a bandwidth limit that is too low.
func TestCoalescing(t *testing.T) {
	registry(t, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive}, Tick: 100 * time.Millisecond, Bandwidth: 800}, func(t *testing.T, r *prometheus.Registry) {
		v := scrape.Gather(t, r)
		coalesced := v.Sum("uplink_client_coalesced_payloads_total", "rpc=ServerMove")
		payload := v.Sum("uplink_client_frame_bytes_total", "stage=payload", "rpc=ServerMove")
		for _, c := range []struct {
			series      string
			least, most float64
		}{
			{"uplink_client_frames_total rpc=ServerMove", 600, 600},
			{"uplink_client_payloads_total rpc=ServerMove", 50, 400},
			{"uplink_client_coalesced_payloads_total rpc=ServerMove", 50, 400},
			{"uplink_ds_coalesced_payloads_total rpc=ServerMove", coalesced / 2, coalesced},
			{"uplink_client_wire_bytes_total rpc=ServerMove", payload + 100*31, payload + 400*15},
			{"uplink_client_bandwidth_limit_bytes_per_second", 100, 100},
			{"uplink_client_bandwidth_bytes_per_second", 1, 1e5},
			{"uplink_client_over_bandwidth_bytes_total", 1, 1e6},
			{"uplink_client_max_redundancy_payloads", 0, 0},
			{"uplink_client_min_frames_per_payload", 4, 4},
		} {
			v.Between(t, c.series, c.least, c.most)
		}
	})
}
