package webserver

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/browser"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// evil is a name that would run a script in a page which took it for markup.
const evil = `</script><img src=x onerror="document.title='broken'">` + "\u202e"

// match is a server with players who play until stop.
type match struct {
	srv  *uplinktest.Server
	stop func()
}

// newMatch starts players that call two RPCs, one of which has hostile names throughout.
func newMatch(t *testing.T) *match {
	t.Helper()
	network := uplinktest.NewNetwork(t, simnet.Config{Delay: 10 * time.Millisecond, Loss: 0.1, Seed: 5}, simnet.Config{Delay: 10 * time.Millisecond, Seed: 6})
	evilSchema, err := schema.New(evil, 60, []schema.Field{
		{Name: evil, Kind: schema.KindVec3, Resolution: 0.1}, {Name: strings.Repeat("W", 10_000), Kind: schema.KindUint, Width: 8},
	})
	uplinktest.Must(t, err)
	srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
		if err := ds.HandleSchema(s, evilSchema, func(*ds.Player, ds.Frame[*schema.Frame]) {}); err != nil {
			return err
		}
		return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
	})
	ctx, stop := context.WithCancel(t.Context())
	var playing sync.WaitGroup
	for i := range 3 {
		conn := uplinktest.Dial(t, network, client.Config{})
		move := uplinktest.Bind(t, conn, "Move")
		other, err := client.BindSchema(t.Context(), conn, evilSchema, client.BindConfig{})
		uplinktest.Must(t, err)
		playing.Go(func() {
			frame := evilSchema.NewFrame()
			tick := time.NewTicker(time.Second / 60)
			defer tick.Stop()
			for n := uint64(0); ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				m := uplinktest.MoveAt(uint64(i), n)
				if _, err := move.Send(&m); err != nil {
					t.Error(err)
				}
				if _, err := other.Send(frame); err != nil {
					t.Error(err)
				}
			}
		})
	}
	m := &match{srv: srv, stop: func() {
		stop()
		playing.Wait()
	}}
	t.Cleanup(m.stop)
	return m
}

func (m *match) serve(t *testing.T, addr string) *Server {
	t.Helper()
	s, err := Start(Config{
		Addr: addr, Source: m.srv.Server, Collectors: []prometheus.Collector{metrics.NewServer(m.srv.Server)},
		Dashboard: dashboard.Config{Title: evil, Extension: "demo", Name: func(*ds.Player) string { return evil }},
		Handlers:  map[string]http.Handler{"/demo/": http.HandlerFunc(panel)},
	})
	uplinktest.Must(t, err)
	return s
}

// panel is an extension of the page.
func panel(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/demo/panel.js":
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, "export function mount(section, api) { section.textContent = `read-only: ${api.readOnly}`; return () => {}; }")
	case "/demo/panel.css":
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, "#demo { border-left: 3px solid }")
	}
}

// TestPage visits the page at both widths, by keyboard, and while the server is down.
func TestPage(t *testing.T) {
	b := browser.Start(t)
	m := newMatch(t)
	web := m.serve(t, "127.0.0.1:0")
	defer func() { _ = web.Close() }()
	b.Open(web.URL())
	b.Await(`document.querySelector("#status").dataset.state === "live"`)
	b.Await(`document.querySelectorAll("#players tbody tr").length === 3`)
	b.Await(`document.querySelectorAll("#treemap .cell").length > 1 && document.querySelectorAll("figure canvas").length >= 4`)
	b.Await(`document.querySelector("#chart-fields tbody") || document.querySelector("#chart-fields .u-legend")`)
	b.Await(`document.querySelector("#demo").textContent === "read-only: false" && getComputedStyle(document.querySelector("#demo")).borderLeftWidth === "3px"`)
	for _, width := range []int64{400, 1280} {
		b.Resize(width, 900)
		b.Await(fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= %[1]d`, width))
	}
	checkNames(t, b)
	checkKeyboard(t, b)

	m.stop()
	checkFigures(t, b, web)

	addr := web.listener.Addr().String()
	b.Quiet(true) // the console reports refused connections
	uplinktest.Must(t, web.Close())
	b.Await(`document.querySelector("#status").dataset.state === "lost" && !document.querySelector("#trouble").hidden`)
	b.Await(`document.querySelector("#trouble").textContent.includes("The server does not answer")`)
	web = m.serve(t, addr)
	b.Await(`document.querySelector("#status").dataset.state === "live" && document.querySelector("#trouble").hidden`)
	b.Quiet(false)
	b.Blank() // it would complain when the server ends
}

// checkNames: hostile names are text and nothing else.
func checkNames(t *testing.T, b *browser.Browser) {
	t.Helper()
	if n := browser.Value[int](b, `document.querySelectorAll("img, script:not([src])").length`); n != 0 {
		t.Errorf("%d elements of hostile names", n)
	}
	if title := browser.Value[string](b, `document.title`); title == "broken" {
		t.Error("a name ran a script")
	}
	want := strings.TrimSuffix(evil, "\u202e")
	for _, at := range []string{"#title", "#players tbody button", "#rpcs tbody th", "#bits-rpc"} {
		if text := browser.Value[string](b, `document.querySelector("`+at+`").textContent`); !strings.Contains(text, want) {
			t.Errorf("%s is %q", at, text)
		}
	}
}

// checkKeyboard opens a field, and a player, without a mouse.
func checkKeyboard(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.Run(`document.querySelector("#bits-rpc").value = "Move"; document.querySelector("#bits-rpc").dispatchEvent(new Event("change"))`)
	b.Await(`document.querySelector("#treemap .cell").getAttribute("aria-label").startsWith("Location: ")`)
	b.Run(`document.querySelector("#treemap .cell").focus()`)
	b.Key(browser.Enter)
	b.Await(`document.querySelectorAll("#field .component").length === 3 && document.querySelector("#field .histogram i")`)
	b.Await(`document.querySelector("#field .bars").textContent.includes("%")`)
	if pressed := browser.Value[string](b, `document.activeElement.getAttribute("aria-pressed")`); pressed != "true" {
		t.Errorf("the field's cell is pressed: %q", pressed)
	}
	b.Key(browser.Enter)
	b.Await(`document.querySelector("#field").hidden`)

	b.Run(`document.querySelector("#find").focus()`)
	b.Key(browser.Tab) // to the table, which scrolls where it is too wide
	b.Key(browser.Tab)
	if text := browser.Value[string](b, `document.activeElement.textContent`); text != "Player" {
		t.Errorf("after the search comes %q", text)
	}
	b.Key(browser.Enter)
	b.Await(`document.querySelector("#players th").getAttribute("aria-sort") === "ascending"`)
	b.Run(`document.querySelector("#players tbody button").focus()`)
	b.Key(browser.Enter)
	b.Await(`document.querySelectorAll("#player canvas").length === 6 && document.querySelector("#player").textContent.includes("calls delivered")`)
	b.Run(`[...document.querySelectorAll("#player button")].find((e) => e.textContent === "Close").focus()`)
	b.Key(browser.Enter)
	b.Await(`document.querySelector("#player").hidden && document.activeElement.closest("#players tbody")`)

	b.Run(`document.querySelector("#chart-bits summary").focus()`)
	b.Key(browser.Enter)
	b.Await(`document.querySelectorAll("#chart-bits details tbody tr").length > 1`)
}

// checkFigures compares the page with /metrics until both have the same round trips.
func checkFigures(t *testing.T, b *browser.Browser, web *Server) {
	t.Helper()
	b.Run(`document.querySelector("input[value=total]").click()`)
	for range 60 {
		differ := differences(t, b, settled(t, web))
		if len(differ) == 0 {
			return
		}
		t.Log(differ)
	}
	t.Error("the page and /metrics do not agree")
}

// differences returns the values on the page that differ from /metrics.
func differences(t *testing.T, b *browser.Browser, v values) (differ []string) {
	t.Helper()
	compare := func(what, page string, metrics float64) {
		if !says(page, metrics) {
			differ = append(differ, fmt.Sprintf("%s: the page says %q, /metrics %v", what, page, metrics))
		}
	}
	for _, rpc := range []string{"Move", evil} {
		series := func(name string, labels ...string) float64 {
			return v.sum(name, append(labels, "rpc="+rpc)...)
		}
		stage := func(name string) float64 { return series("uplink_ds_frame_bytes_total", "stage="+name) }
		calls, deltas := series("uplink_ds_frames_total"), series("uplink_ds_frames_total", "kind=delta")
		if calls < 100 {
			t.Fatalf("%s: %v calls", rpc, calls)
		}
		want := map[int]float64{
			0: calls, 3: series("uplink_ds_wire_bytes_total"), 5: stage("full") + 47*calls,
			7: calls / (calls + series("uplink_ds_missed_frames_total") - series("uplink_ds_late_frames_total")),
			8: series("uplink_ds_baseline_age_frames_sum") / deltas, 9: (calls - deltas) / calls,
			10: series("uplink_ds_redundant_frames_total") / series("uplink_ds_payloads_total"),
		}
		got := browser.Value[[]string](b, fmt.Sprintf(
			`[...[...document.querySelectorAll("#rpcs tbody tr")].find((e) => e.firstChild.textContent === %s).children].slice(1).map((e) => e.textContent)`, strconv.QuoteToASCII(rpc)))
		for i, w := range want {
			compare(fmt.Sprintf("%s, column %d", rpc, i+1), got[i], w)
		}
		for _, reason := range []string{"late", "duplicate", "malformed"} {
			dropped, n := 0.0, series("uplink_ds_dropped_total", "reason="+reason)
			if m := regexp.MustCompile(reason + ` ([\d,]+)`).FindStringSubmatch(got[11]); m != nil {
				dropped, _ = strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
			}
			if dropped != n {
				differ = append(differ, fmt.Sprintf("%s: the page says %q, /metrics %v %s", rpc, got[11], n, reason))
			}
		}
	}
	calls, missed := v.sum("uplink_ds_frames_total"), v.sum("uplink_ds_missed_frames_total")-v.sum("uplink_ds_late_frames_total")
	for tile, want := range map[string]float64{
		"calls": calls, "full": v.sum("uplink_ds_frame_bytes_total", "stage=full") + 47*calls,
		"up": v.sum("uplink_ds_wire_bytes_total"), "delivered": calls / (calls + missed),
		"rtt": v.sum("uplink_ds_rtt_seconds_sum") / v.sum("uplink_ds_rtt_seconds_count"),
	} {
		compare("tile "+tile, browser.Value[string](b, `[...document.querySelectorAll("#tile-`+tile+` .value > *")].map((e) => e.textContent).join(" ").trim()`), want)
	}
	compare("players", browser.Value[string](b, `document.querySelector("#tile-calls .sub").textContent`), v.sum("uplink_ds_players"))
	return differ
}

var (
	shownNumber = regexp.MustCompile(`^([\d,]+(?:\.(\d+))?) ?(\S*)`)
	units       = map[string]float64{"": 1, "frames": 1, "per": 1, "players": 1, "%": 0.01, "ms": 1e-3, "kB": 1e3, "MB": 1e6}
)

// says reports whether a text is a value, rounded. Bytes are whole in /metrics, bits on the page.
func says(text string, value float64) bool {
	m := shownNumber.FindStringSubmatch(text)
	if m == nil || units[m[3]] == 0 {
		return false
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	digit := units[m[3]] * math.Pow10(-len(m[2]))
	most := digit/2 + 1e-9
	if units[m[3]] >= 1e3 {
		most++
	}
	return err == nil && math.Abs(n*units[m[3]]-value) <= most
}

type values map[string]float64

// settled returns the values once the number of calls no longer changes.
func settled(t *testing.T, web *Server) values {
	t.Helper()
	for last := -1.0; ; {
		v := scrape(t, web)
		now := v.sum("uplink_ds_frames_total") + v.sum("uplink_ds_dropped_total") + v.sum("uplink_ds_missed_frames_total")
		if now == last {
			return v
		}
		last = now
		select {
		case <-t.Context().Done():
			t.Fatal("the counters do not come to rest")
		case <-time.After(time.Second):
		}
	}
}

var seriesLine = regexp.MustCompile(`(?m)^(uplink_\w+)(?:\{(.*)\})? (\S+)$`)

func scrape(t *testing.T, web *Server) values {
	t.Helper()
	code, body := get(t, web.MetricsURL())
	if code != http.StatusOK {
		t.Fatalf("code %d", code)
	}
	v := values{}
	for _, m := range seriesLine.FindAllStringSubmatch(body, -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		uplinktest.Must(t, err)
		v[m[1]+"{"+m[2]+"}"] = n
	}
	return v
}

// sum adds up the series of a name that have all the labels, "name=value".
func (v values) sum(name string, labels ...string) float64 {
	total := 0.0
	for series, n := range v {
		given, rest, _ := strings.Cut(series, "{")
		has := 0
		for _, l := range labels {
			label, value, _ := strings.Cut(l, "=")
			escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)
			if strings.Contains(rest, label+`="`+escaped+`"`) {
				has++
			}
		}
		if given == name && has == len(labels) {
			total += n
		}
	}
	return total
}
