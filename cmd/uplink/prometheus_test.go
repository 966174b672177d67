package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

const (
	deployed    = "../../deploy/"
	grafanaFile = deployed + "grafana/uplink.json"
)

// nothing are the dashboard's queries that need no result: restarts, and alerts that fire.
var nothing = []string{"changes(process_start_time_seconds", "ALERTS{"}

// TestPrometheus runs all queries and rules of deploy in the real Prometheus.
func TestPrometheus(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	binary := tool.Find(t, "prometheus")
	demo := start(t, "demo", "--rtt", "20ms", "--clients", "4")
	demoURL := demo.await(&demo.stdout, `Metrics: (\S+)\n`)[1]
	source := slice(t, sample.RocketLeague(), 150, nil)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--metrics", "127.0.0.1:0", "--debug", "--record", filepath.Join(t.TempDir(), "recorded"))
	serverURL := server.await(&server.stderr, `msg=metrics url=(\S+)\n`)[1]
	start(t, "replay", "--to", addr, "--reliable", "--loop", source.Name)
	start(t, "replay", "--to", addr, "--loop", source.Name)

	p := startPrometheus(t, binary, host(t, demoURL), host(t, serverURL), host(t, gameServer(t)))
	// Rates need two scrapes, and the rules need these; the first round trips are a second old by
	// then.
	p.await(`min(count_over_time(uplink_ds_players[1m])) >= 3 and on() count(rpc:uplink_ds_payload_to_full:ratio_rate1m) >= 4
		and on() min(uplink_ds_rtt_seconds_count) >= 2 and on() instance:uplink_ds_to_handler_seconds:p99_rate5m > 0`)

	t.Run("ratio", func(t *testing.T) {
		before, read := bytesAt(t, demoURL), time.Now()
		p.await(fmt.Sprintf(`min(timestamp(uplink_ds_players)) > %d`, read.Unix()+1))
		const of = `sum(uplink_ds_frame_bytes_total{stage="%s", instance="%s"})`
		ratio := p.value(fmt.Sprintf(of+" / "+of, "payload", host(t, demoURL), "full", host(t, demoURL)))
		after := bytesAt(t, demoURL)
		least, most := before["payload"]/after["full"], after["payload"]/before["full"]
		if !(ratio >= least && ratio <= most) || least < 0.05 || most > 1 {
			t.Errorf("the ratio is %v; /metrics has %v before, %v after", ratio, before, after)
		}
		// The rule's is of the last minute, the whole life of this demo, and weighs each RPC.
		if rule := p.value(`avg(rpc:uplink_ds_payload_to_full:ratio_rate1m{channel="unreliable"})`); !(rule > 0.05 && rule < 1) {
			t.Errorf("the rule says %v", rule)
		}
	})
	t.Run("dashboard", func(t *testing.T) {
		for _, q := range readDashboard(t).queries() {
			ask := p.patiently
			if slices.ContainsFunc(nothing, func(prefix string) bool { return strings.HasPrefix(q, prefix) }) {
				ask = p.query
			}
			if _, err := ask(substitute(q)); err != nil {
				t.Errorf("%s\n%v", q, err)
			}
		}
		for _, v := range readDashboard(t).Templating.List {
			m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
			if v.Type != "query" {
				continue
			}
			if m == nil {
				t.Errorf("variable %s: %q", v.Name, v.Definition)
			} else if values := p.labels(m[2], substitute(m[1])); len(values) == 0 {
				t.Errorf("variable %s has no value", v.Name)
			}
		}
	})
	t.Run("rules", func(t *testing.T) {
		names := p.labels("__name__", `{job="uplink"}`)
		var rules []rule
		uplinktest.Await(t, "all rules evaluated", func() bool { // each has its own second
			rules = p.rules()
			return !slices.ContainsFunc(rules, func(r rule) bool { return r.Health == "unknown" })
		}, func() any { return rules })
		if len(rules) < 30 {
			t.Errorf("%d rules", len(rules))
		}
		for _, r := range rules {
			// Kernel drops only mean that this machine is slow.
			if r.Health != "ok" || r.State == "firing" && r.Name != "UplinkKernelDrops" {
				t.Errorf("%s: %s, %s: %s", r.Name, r.Health, r.State, r.LastError)
			}
			if r.Type == "recording" {
				if _, err := p.patiently(r.Name); err != nil {
					t.Errorf("%s: %v", r.Name, err)
				}
			}
			// An alert on a metric that is not exported never fires. This server is in no fleet, so
			// there is no store, backend or uplink-nats. fleet/natsstore fires their alerts.
			for _, name := range regexp.MustCompile(`\b(?:\w+:)?(?:uplink|process|go)_\w+(?::\w+)?|\bup\b`).FindAllString(r.Query, -1) {
				if !slices.Contains(names, name) && !fleetMetric.MatchString(name) {
					t.Errorf("%s reads %s, which is not there", r.Name, name)
				}
			}
		}
	})
	t.Run("exemplars", func(t *testing.T) {
		if !strings.Contains(getOpenMetrics(t, serverURL), `# {session_id="`) {
			t.Error("no bucket names a session, in spite of --debug")
		}
	})
}

// fleetMetric matches metrics of programs that only a fleet has.
var fleetMetric = regexp.MustCompile(`^uplink_(ds_fleet|store|backend|nats)_`)

// host is the host and port of a URL.
func host(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	must(t, err)
	return u.Host
}

// bytesAt reads the demo's uplink_ds_frame_bytes_total by stage.
func bytesAt(t *testing.T, url string) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^uplink_ds_frame_bytes_total\{.*stage="(\w+)"\} (\S+)$`).FindAllStringSubmatch(get(t, url), -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		must(t, err)
		sums[m[1]] += v
	}
	return sums
}

func getOpenMetrics(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	return do(t, request)
}

// grafana contains the checked parts of a dashboard.
type grafana struct {
	SchemaVersion int
	Panels        []panel
	Annotations   struct{ List []struct{ Expr string } }
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, LegendFormat string }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Options struct{ YAxis struct{ Unit string } }
}

func readDashboard(t *testing.T) *grafana {
	t.Helper()
	text, err := os.ReadFile(grafanaFile)
	must(t, err)
	var g grafana
	must(t, json.Unmarshal(text, &g))
	return &g
}

func (g *grafana) queries() (all []string) {
	for i := range g.Panels {
		for _, target := range g.Panels[i].Targets {
			all = append(all, target.Expr)
		}
	}
	for _, a := range g.Annotations.List {
		all = append(all, a.Expr)
	}
	return all
}

// substitute replaces a dashboard's variables with values, as Grafana does if all are selected.
func substitute(query string) string {
	return strings.NewReplacer("$__rate_interval", "20s", "$job", "uplink", "$instance", ".*", "$rpc", ".*").Replace(query)
}

// TestDashboard checks what no query shows: that panels are laid out, and say what they show.
func TestDashboard(t *testing.T) {
	g := readDashboard(t)
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for i := range g.Panels {
		p := &g.Panels[i]
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d: %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s is where %s is", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.FieldConfig.Defaults.Unit+p.Options.YAxis.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s: no description, unit or query", p.Title)
		}
		for _, target := range p.Targets {
			if left := strings.Index(substitute(target.Expr), "$"); left >= 0 || target.LegendFormat == "" {
				t.Errorf("%s: legend %q, query %s", p.Title, target.LegendFormat, target.Expr)
			}
		}
	}
	if len(ids) < 30 || g.SchemaVersion < 39 {
		t.Errorf("%d panels, schema %d", len(ids), g.SchemaVersion)
	}
}

// prometheusServer is a Prometheus that runs.
type prometheusServer struct {
	t    *testing.T
	url  string
	done <-chan struct{} // it has ended
}

// startPrometheus runs one with the rules in deploy, other targets and shorter intervals.
func startPrometheus(t *testing.T, binary string, targets ...string) *prometheusServer {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"prometheus.yml", "recording.yml", "alerts.yml"} {
		text, err := os.ReadFile(deployed + "prometheus/" + name)
		must(t, err)
		if name == "prometheus.yml" {
			for old, changed := range map[string]string{"_interval: 5s": "_interval: 1s", `["127.0.0.1:9464"]`: `["` + strings.Join(targets, `", "`) + `"]`} {
				if !strings.Contains(string(text), old) {
					t.Fatalf("%s has no %s", name, old)
				}
				text = []byte(strings.ReplaceAll(string(text), old, changed))
			}
		}
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	cmd := exec.CommandContext(t.Context(), binary, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0", "--enable-feature=exemplar-storage")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	p := startProgram(t, cmd)
	return &prometheusServer{t: t, done: p.done, url: "http://" + p.await(&p.stderr, `msg="Listening on" address=(\S+)`)[1]}
}

type sampleValue struct {
	Metric map[string]string
	Value  [2]any // time and text
}

// call asks the API for the data that out is.
func (p *prometheusServer) call(ctx context.Context, path string, form url.Values, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+path+"?"+form.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	answer := struct {
		Error string
		Data  any
	}{Data: out}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

func (p *prometheusServer) query(expr string) ([]sampleValue, error) {
	var data struct{ Result []sampleValue }
	err := p.call(p.t.Context(), "query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// patiently is a query that has a result after some scrapes, or is an error.
func (p *prometheusServer) patiently(expr string) (result []sampleValue, err error) {
	p.t.Helper()
	uplinktest.Await(p.t, expr, func() bool {
		result, err = p.query(expr)
		return err != nil || len(result) != 0
	}, nil)
	return result, err
}

// value returns the value of a query with one result.
func (p *prometheusServer) value(expr string) float64 {
	p.t.Helper()
	result, err := p.query(expr)
	must(p.t, err)
	if len(result) != 1 {
		p.t.Fatalf("%d series: %s", len(result), expr)
	}
	v, err := strconv.ParseFloat(result[0].Value[1].(string), 64)
	must(p.t, err)
	return v
}

// await waits until a query has a result.
func (p *prometheusServer) await(expr string) {
	p.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		// Until it is ready, Prometheus answers with something else.
		if result, err := p.query(expr); err == nil && len(result) != 0 {
			return
		}
		select {
		case <-tick.C:
		case <-p.done:
			p.t.Fatalf("Prometheus has ended without a result of %s", expr)
		}
	}
}

// labels returns the values of a label in all matching series.
func (p *prometheusServer) labels(name, match string) (values []string) {
	p.t.Helper()
	must(p.t, p.call(p.t.Context(), "label/"+name+"/values", url.Values{"match[]": {match}}, &values))
	return values
}

type rule struct{ Name, Type, Query, Health, LastError, State string }

func (p *prometheusServer) rules() (all []rule) {
	p.t.Helper()
	var data struct {
		Groups []struct{ Rules []rule }
	}
	must(p.t, p.call(p.t.Context(), "rules", nil, &data))
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// avatar is a call of a gameServer's player, and an object of its worlds.
type avatar struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
}

// gameServer starts a game that covers what the commands' own servers do not: jitter buffers, a
// snapshot channel and a state channel, and one player. It returns the URL that serves the metrics
// of the server and the player, and in dashboard/ the server's dashboard.
func gameServer(t *testing.T) (url string) {
	t.Helper()
	ctx := t.Context() // done when the test ends, before anything is closed
	check := func(err error) {
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	var stream *ds.StateStream
	var snapshots, states *ds.World[avatar]
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Poll: true, TickHz: 60, Joined: func(p *ds.Player) {
		_, err := snapshots.Offer(p)
		check(err)
		stream, err = states.OfferState(p, ds.StateConfig{})
		check(err)
	}})
	must(t, err)
	must(t, ds.Handle(srv, "GameMove", func(*ds.Player, ds.Frame[avatar]) {}, ds.JitterBuffer{}))
	snapshots, err = ds.NewWorld(srv, "seen", ds.WorldConfig[avatar]{TickHz: 60, SendHz: 20})
	must(t, err)
	states, err = ds.NewWorld(srv, "simulated", ds.WorldConfig[avatar]{TickHz: 60})
	must(t, err)

	var running sync.WaitGroup
	t.Cleanup(func() {
		running.Wait()
		must(t, srv.Close())
	})
	running.Go(func() { _ = srv.Serve(ctx) })
	each := func(f func(n uint64)) {
		running.Go(func() {
			tick := time.NewTicker(time.Second / 60)
			defer tick.Stop()
			for n := uint64(1); ; n++ {
				select {
				case <-tick.C:
					f(n)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	each(func(n uint64) {
		srv.Poll()
		at := avatar{schema.Vec3{X: float64(n%1000) / 10}}
		for _, w := range []*ds.World[avatar]{snapshots, states} {
			check(w.Begin(n))
			check(w.Put(1, 0, &at))
			w.Commit()
			if w == states && stream != nil {
				check(stream.Prioritize(1, 1))
			}
			_, err := w.Send()
			check(err)
		}
	})

	conn, err := client.Dial(ctx, srv.Addr().String(), client.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	_, err = client.SubscribeSnapshots(t.Context(), conn, "seen", client.SnapshotConfig[avatar]{})
	must(t, err)
	_, err = client.SubscribeState(t.Context(), conn, "simulated", client.StateConfig[avatar]{Handle: func(*client.StateUpdate[avatar]) {}})
	must(t, err)
	move, err := client.Bind[avatar](t.Context(), conn, "GameMove", client.BindConfig{RateHz: 60})
	must(t, err)
	each(func(n uint64) {
		_, err := move.Send(&avatar{schema.Vec3{Y: float64(n%1000) / 10}})
		check(err)
	})

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewServer(srv), metrics.NewClient(conn))
	page := dashboard.New(srv, dashboard.Config{Open: true})
	running.Go(func() { page.Run(ctx) })
	mux := http.NewServeMux()
	mux.Handle("/", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/dashboard/", http.StripPrefix("/dashboard", page))
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL
}
