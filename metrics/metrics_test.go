package metrics_test

import (
	"context"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type move struct {
	X       float64 `uplink:"resolution=0.01"`
	Buttons uint8
}

// registry plays ten seconds of two RPCs over a link, in virtual time, and
// hands over a pedantic registry of both ends' collectors.
func registry(t *testing.T, test func(*testing.T, *prometheus.Registry)) {
	t.Helper()
	registryOf(t, client.Config{}, test)
}

// registryOf is registry with a config of the client, whose suites the server has too.
func registryOf(t *testing.T, cfg client.Config, test func(*testing.T, *prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 30 * time.Millisecond, Loss: 0.05, Seed: 1}
		network, err := simnet.NewNetwork(link, link)
		must(t, err)
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Suites: cfg.Suites, Insecure: cfg.Insecure})
		must(t, err)
		for _, rpc := range []string{"ServerMove", "ServerFire"} {
			must(t, ds.Handle(srv, rpc, func(*ds.Player, ds.Frame[move]) {}))
		}
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		cfg.Network = network
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", cfg)
		must(t, err)
		steady, err := client.Bind[move](t.Context(), conn, "ServerMove", client.BindConfig{})
		must(t, err)
		rare, err := client.Bind[move](t.Context(), conn, "ServerFire", client.BindConfig{Reliable: true})
		must(t, err)
		for i := range 600 {
			must(t, steady.Send(&move{X: float64(i) / 10}))
			if i%60 == 0 {
				must(t, rare.Send(&move{Buttons: uint8(i)}))
			}
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewServer(srv), metrics.NewClient(conn))
		test(t, r)
		must(t, conn.Close())
		must(t, srv.Close())
		must(t, <-served)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLint(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		problems, err := testutil.GatherAndLint(r)
		must(t, err)
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// TestBothEndsAgree holds the client's counts against the server's.
func TestBothEndsAgree(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		sent := v.sum("uplink_client_frames_total", "rpc=ServerMove")
		delivered := v.sum("uplink_ds_frames_total", "rpc=ServerMove")
		missed := v.sum("uplink_ds_missed_frames_total", "rpc=ServerMove")
		if sent != 600 || delivered < 500 || missed == 0 || delivered+missed > sent {
			t.Errorf("%v sent, %v delivered, %v missed", sent, delivered, missed)
		}
		if n := v.sum("uplink_ds_frames_total", "rpc=ServerFire", "channel=reliable"); n != 10 {
			t.Errorf("%v reliable frames, want 10", n)
		}
		full := v.sum("uplink_client_frame_bytes_total", "stage=full", "rpc=ServerMove")
		payload := v.sum("uplink_client_frame_bytes_total", "stage=payload", "rpc=ServerMove")
		wire := v.sum("uplink_client_frame_bytes_total", "stage=wire", "rpc=ServerMove")
		if !(full > 0 && payload > 0 && wire > payload+600*47) {
			t.Errorf("full %v, payload %v, wire %v bytes", full, payload, wire)
		}
		if n, most := v.sum("uplink_ds_players"), v.sum("uplink_ds_max_players"); n != 1 || most != transport.DefaultMaxConns {
			t.Errorf("%v of %v players", n, most)
		}
		for _, side := range []string{"uplink_ds_", "uplink_client_"} {
			if v.sum(side+"build_info") != 1 {
				t.Errorf("%sbuild_info: %v", side, v[side+"build_info"])
			}
		}
		if got, most := v.sum("uplink_client_ack_bytes_total"), v.sum("uplink_ds_ack_bytes_total"); !(got > 0 && got < most) {
			t.Errorf("%v bytes of acks sent, %v arrived at 5 %% loss", most, got)
		}
		if n := v.sum("uplink_client_rtt_seconds"); n < 5 {
			t.Errorf("%v round trips measured in ten seconds", n)
		}
		if n := v.sum("uplink_ds_baseline_age_frames", "rpc=ServerMove"); n < 300 {
			t.Errorf("%v ages of baselines", n)
		}
	})
}

// TestSeals counts what sealing takes with each suite, as a part of what goes over the wire.
func TestSeals(t *testing.T) {
	for suite, tag := range map[transport.Suite]float64{transport.None: 0, transport.AES128CTRHMAC8: 8, transport.AES128GCM: 16} {
		cfg := client.Config{Suites: []transport.Suite{suite}, Insecure: true}
		registryOf(t, cfg, func(t *testing.T, r *prometheus.Registry) {
			v := gather(t, r)
			for _, side := range []string{"uplink_client_", "uplink_ds_"} {
				for channel, segment := range map[string]float64{"channel=unreliable": 0, "channel=reliable": 24} {
					payloads := v.sum(side+"payloads_total", channel)
					seal := v.sum(side+"frame_bytes_total", "stage=aead", channel)
					wire := v.sum(side+"frame_bytes_total", "stage=wire", channel)
					least := v.sum(side+"frame_bytes_total", "stage=payload", channel) + payloads*(31+segment+tag)
					if payloads < 10 || seal != payloads*tag || wire < least || wire > least+5*payloads {
						t.Errorf("%v: %s %s: %v bytes of seals of %v payloads, %v bytes of wire, want %v and headers of messages", suite, side, channel, seal, payloads, wire, least)
					}
				}
			}
			acks := v.sum("uplink_ds_acks_total")
			seal, wire := v.sum("uplink_ds_ack_aead_bytes_total"), v.sum("uplink_ds_ack_wire_bytes_total")
			if want := v.sum("uplink_ds_ack_bytes_total") + acks*(31+tag); acks == 0 || seal != acks*tag || wire != want {
				t.Errorf("%v: %v bytes of seals of %v acks, %v bytes of wire, want %v", suite, seal, acks, wire, want)
			}
		})
	}
}

// TestLinkState shows how the client's link is: 5 % of the datagrams are lost each way.
func TestLinkState(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		if loss := v.sum("uplink_client_loss_ratio", "rpc=ServerMove"); loss < 0.005 || loss > 0.2 {
			t.Errorf("a loss of %v", loss)
		}
		if burst := v.sum("uplink_client_loss_burst_payloads", "rpc=ServerMove"); burst < 1 || burst > 3 {
			t.Errorf("losses of %v payloads in a row", burst)
		}
		if n := v.sum("uplink_client_redundancy_payloads", "rpc=ServerMove"); n < 1 || n > 7 {
			t.Errorf("%v older payloads ride along", n)
		}
		if v.has("uplink_client_loss_ratio", "rpc=ServerFire") {
			t.Error("acks speak of a reliable RPC")
		}
		if n := v.sum("uplink_client_link_bytes_per_second", "direction=received"); n < 10 || n > 1000 {
			t.Errorf("%v bytes a second received", n)
		}
		if !v.has("uplink_client_link_bytes_per_second", "direction=sent") {
			t.Error("no bytes a second sent")
		}
	})
}

// TestMoves has a router give the client another address.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		must(t, err)
		inside := make(chan netip.AddrPort, 1)
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Joined: func(p *ds.Player) { inside <- p.Addr() }})
		must(t, err)
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network})
		must(t, err)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewServer(srv))
		if v := gather(t, r); v.sum("uplink_ds_path_migrations_total") != 0 || !v.has("uplink_ds_path_migrations_total") {
			t.Errorf("%v moves before the first", v.sum("uplink_ds_path_migrations_total"))
		}
		_, err = network.Rebind(<-inside)
		must(t, err)
		time.Sleep(5 * time.Second)
		if n := gather(t, r).sum("uplink_ds_path_migrations_total"); n != 1 {
			t.Errorf("%v moves", n)
		}
		must(t, conn.Close())
		must(t, srv.Close())
		must(t, <-served)
	})
}

// TestCoalescing: payloads that share a datagram, and a budget that is too small.
func TestCoalescing(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		if n, want := v.sum("uplink_client_payloads_total", "rpc=ServerMove"), v.sum("uplink_client_frames_total", "rpc=ServerMove"); n != want {
			t.Errorf("%v payloads of %v frames", n, want)
		}
		if n := v.sum("uplink_client_coalesced_payloads_total"); n != 0 {
			t.Errorf("%v payloads share a datagram", n)
		}
		for name, want := range map[string]float64{
			"bandwidth_limit_bytes_per_second": 0, "bandwidth_bytes_per_second": 0, "over_bandwidth_bytes_total": 0,
			"max_redundancy_payloads": 7, "min_frames_per_payload": 1,
		} {
			if n := v.sum("uplink_client_" + name); n != want || !v.has("uplink_client_"+name) {
				t.Errorf("%s is %v, want %v", name, n, want)
			}
		}
	})
	registryOf(t, client.Config{Codec: rpcdelta.Adaptive, Tick: 100 * time.Millisecond, Bandwidth: 800}, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		frames, payloads := v.sum("uplink_client_frames_total", "rpc=ServerMove"), v.sum("uplink_client_payloads_total", "rpc=ServerMove")
		shared := v.sum("uplink_client_coalesced_payloads_total", "rpc=ServerMove")
		if frames != 600 || payloads > 400 || shared < 50 {
			t.Errorf("%v payloads of %v frames, %v shared", payloads, frames, shared)
		}
		if n := v.sum("uplink_ds_coalesced_payloads_total", "rpc=ServerMove"); n < shared/2 || n > shared {
			t.Errorf("%v of %v shared payloads came", n, shared)
		}
		wire := v.sum("uplink_client_frame_bytes_total", "stage=wire", "rpc=ServerMove")
		if payload := v.sum("uplink_client_frame_bytes_total", "stage=payload", "rpc=ServerMove"); wire-payload > 400*15 || wire-payload < 100*31 {
			t.Errorf("%v bytes on the wire for %v", wire, payload)
		}
		if limit, rate := v.sum("uplink_client_bandwidth_limit_bytes_per_second"), v.sum("uplink_client_bandwidth_bytes_per_second"); limit != 100 || rate == 0 {
			t.Errorf("%v bytes a second, the limit is %v", rate, limit)
		}
		if v.sum("uplink_client_over_bandwidth_bytes_total") == 0 || v.sum("uplink_client_max_redundancy_payloads") != 0 || v.sum("uplink_client_min_frames_per_payload") != 4 {
			t.Errorf("the budget is not kept to: %v", v["uplink_client_min_frames_per_payload"])
		}
	})
}

// TestLabels keeps the number of series independent of the players.
func TestLabels(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		allowed := []string{"rpc", "channel", "kind", "stage", "reason", "cause", "direction", "version", "go_version"}
		for name, family := range gather(t, r) {
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
	})
}

// TestReasons checks that each reason for a drop has its series before the
// first drop, so that rates over it are right from the start.
func TestReasons(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		for _, reason := range []string{
			"baseline_missing", "desync", "late", "duplicate", "malformed", "unknown_rpc", "queue_full", "rate_limited", "rejected", "kicked",
			"wrong_session", "unauthenticated", "unexpected", "unknown_session", "version", "cookie", "token", "suite", "full", "overrun",
		} {
			if !v.has("uplink_ds_dropped_total", "reason="+reason) {
				t.Errorf("no series for %s on the server", reason)
			}
		}
		if has := v.has("uplink_ds_dropped_total", "reason=kernel"); has != (runtime.GOOS == "linux") {
			t.Errorf("series for kernel on the server: %v", has)
		}
		for _, reason := range []string{"too_large", "out_of_range", "unencodable", "reconnecting", "malformed", "unauthenticated", "duplicate", "late"} {
			if !v.has("uplink_client_dropped_total", "reason="+reason) {
				t.Errorf("no series for %s on the client", reason)
			}
		}
	})
}

type families map[string]*dto.MetricFamily

func gather(t *testing.T, r *prometheus.Registry) families {
	t.Helper()
	all, err := r.Gather()
	must(t, err)
	out := families{}
	for _, f := range all {
		out[f.GetName()] = f
	}
	return out
}

// each gives the series that have all the labels, "name=value".
func (f families) each(name string, labels ...string) (series []*dto.Metric) {
	for _, m := range f[name].GetMetric() {
		has := 0
		for _, l := range m.GetLabel() {
			if slices.Contains(labels, l.GetName()+"="+l.GetValue()) {
				has++
			}
		}
		if has == len(labels) {
			series = append(series, m)
		}
	}
	return series
}

func (f families) has(name string, labels ...string) bool { return len(f.each(name, labels...)) != 0 }

// sum adds up the series; of histograms the number of observations.
func (f families) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, m := range f.each(name, labels...) {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return total
}
