package metrics_test

import (
	"context"
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
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type move struct {
	X       float64 `rpcdelta:"resolution=0.01"`
	Buttons uint8
}

// registry plays ten seconds of two RPCs over a link, in virtual time, and
// hands over a pedantic registry of both ends' collectors.
func registry(t *testing.T, test func(*testing.T, *prometheus.Registry)) {
	t.Helper()
	registryOf(t, client.Config{}, test)
}

// registryOf is registry with a config of the client.
func registryOf(t *testing.T, cfg client.Config, test func(*testing.T, *prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 30 * time.Millisecond, Loss: 0.05, Seed: 1}
		network, err := simnet.NewNetwork(link, link)
		must(t, err)
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network})
		must(t, err)
		for _, rpc := range []string{"ServerMove", "ServerFire"} {
			must(t, ds.Handle(srv, rpc, func(*ds.Player, ds.Frame[move]) {}))
		}
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		cfg.Network = network
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", cfg)
		must(t, err)
		steady, err := client.Bind[move](conn, "ServerMove")
		must(t, err)
		rare, err := client.Bind[move](conn, "ServerFire", client.Reliable())
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
		if !(full > 0 && payload > 0 && wire > payload+600*31) {
			t.Errorf("full %v, payload %v, wire %v bytes", full, payload, wire)
		}
		if n := v.sum("uplink_ds_players"); n != 1 {
			t.Errorf("%v players", n)
		}
		if got, most := v.sum("uplink_client_ack_bytes_total"), v.sum("uplink_ds_ack_bytes_total"); !(got > 0 && got < most) {
			t.Errorf("%v bytes of acks sent, %v arrived at 5 %% loss", most, got)
		}
		if n := v.sum("uplink_client_round_trip_seconds"); n < 5 {
			t.Errorf("%v round trips measured in ten seconds", n)
		}
		if n := v.sum("uplink_ds_baseline_age_frames", "rpc=ServerMove"); n < 300 {
			t.Errorf("%v ages of baselines", n)
		}
	})
}

// TestCoalescing: payloads that share a datagram, and a budget that is too small.
func TestCoalescing(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		if n, want := v.sum("uplink_client_payloads_total", "rpc=ServerMove"), v.sum("uplink_client_frames_total", "rpc=ServerMove"); n != want {
			t.Errorf("%v payloads of %v frames", n, want)
		}
		if n := v.sum("uplink_client_shared_payloads_total"); n != 0 {
			t.Errorf("%v payloads share a datagram", n)
		}
		for name, want := range map[string]float64{
			"bandwidth_limit_bytes_per_second": 0, "bandwidth_bytes_per_second": 0, "over_bandwidth_bytes_total": 0,
			"redundancy_limit_payloads": 7, "min_frames_per_payload": 1,
		} {
			if n := v.sum("uplink_client_" + name); n != want || !v.has("uplink_client_"+name) {
				t.Errorf("%s is %v, want %v", name, n, want)
			}
		}
	})
	registryOf(t, client.Config{Codec: rpcdelta.Adaptive, Tick: 100 * time.Millisecond, Bandwidth: 800}, func(t *testing.T, r *prometheus.Registry) {
		v := gather(t, r)
		frames, payloads := v.sum("uplink_client_frames_total", "rpc=ServerMove"), v.sum("uplink_client_payloads_total", "rpc=ServerMove")
		shared := v.sum("uplink_client_shared_payloads_total", "rpc=ServerMove")
		if frames != 600 || payloads > 400 || shared < 50 {
			t.Errorf("%v payloads of %v frames, %v shared", payloads, frames, shared)
		}
		if n := v.sum("uplink_ds_shared_payloads_total", "rpc=ServerMove"); n < shared/2 || n > shared {
			t.Errorf("%v of %v shared payloads came", n, shared)
		}
		wire := v.sum("uplink_client_frame_bytes_total", "stage=wire", "rpc=ServerMove")
		if payload := v.sum("uplink_client_frame_bytes_total", "stage=payload", "rpc=ServerMove"); wire-payload > 400*15 || wire-payload < 100*31 {
			t.Errorf("%v bytes on the wire for %v", wire, payload)
		}
		if limit, rate := v.sum("uplink_client_bandwidth_limit_bytes_per_second"), v.sum("uplink_client_bandwidth_bytes_per_second"); limit != 100 || rate == 0 {
			t.Errorf("%v bytes a second, the limit is %v", rate, limit)
		}
		if v.sum("uplink_client_over_bandwidth_bytes_total") == 0 || v.sum("uplink_client_redundancy_limit_payloads") != 0 || v.sum("uplink_client_min_frames_per_payload") != 4 {
			t.Errorf("the budget is not kept to: %v", v["uplink_client_min_frames_per_payload"])
		}
	})
}

// TestLabels keeps the number of series independent of the players.
func TestLabels(t *testing.T) {
	registry(t, func(t *testing.T, r *prometheus.Registry) {
		allowed := []string{"rpc", "channel", "kind", "stage", "reason", "direction"}
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
		for _, reason := range []string{"baseline_missing", "late", "duplicate", "malformed", "unknown_rpc", "queue_full", "limited", "refused", "unknown_session"} {
			if !v.has("uplink_ds_dropped_total", "reason="+reason) {
				t.Errorf("no series for %s on the server", reason)
			}
		}
		for _, reason := range []string{"too_large", "out_of_range", "unencodable", "reconnecting"} {
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
