package analysis

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// atDistance is a config without a link.
func atDistance(d int) bench.Config {
	return bench.Config{Distance: d, Link: simlink.Config{Burst: 1}, AckHz: 60, Ring: 64, Redundancy: rpcdelta.RedundancyOff}
}

// newTrace returns a trace of n frames, in which f returns the values of field i.
func newTrace(t *testing.T, n int, fields []schema.Field, f func(n, i int) []float64) *trace.Trace {
	t.Helper()
	s, err := schema.New("Move", 60, fields)
	uplinktest.Must(t, err)
	tr := &trace.Trace{Name: "made", Schema: s}
	for k := range n {
		frame := s.NewFrame()
		for i := range s.Fields() {
			uplinktest.Must(t, s.QuantizeField(frame, i, f(k, i)))
		}
		tr.Frames = append(tr.Frames, *frame)
	}
	return tr
}

// jitter is a number of [-1, 1] that a frame's number gives.
func jitter(n int) float64 { return math.Sin(float64(n*n%7919) * 1.7) }

var steering = []schema.Field{
	{Name: "Velocity", Kind: schema.KindVec2, Resolution: 0.01},
	{Name: "Location", Kind: schema.KindVec2, Resolution: 0.01, Velocity: "Velocity"},
	{Name: "Spin", Kind: schema.KindVec3, Resolution: 0.001},
	{Name: "Rotation", Kind: schema.KindQuat, Bits: 16, Velocity: "Spin"},
	{Name: "Yaw", Kind: schema.KindAngle, Bits: 16},
	{Name: "Tick", Kind: schema.KindUint, Width: 8},
	{Name: "Buttons", Kind: schema.KindBits, Width: 4},
}

// drive is a trace whose velocities change at random, and whose positions follow them.
func drive(t *testing.T, frames int) *trace.Trace {
	t.Helper()
	var v, x [2]float64
	var w [3]float64
	q := quat.Float{0, 0, 0, 1}
	return newTrace(t, frames, steering, func(n, i int) []float64 {
		switch i {
		case 0:
			for k := range v {
				was := v[k]
				v[k] += 20 * jitter(2*n+k)
				x[k] += (was + v[k]) / 2 / 60
			}
			return v[:]
		case 1:
			return x[:]
		case 2:
			was := w
			for k := range w {
				w[k] += jitter(3*n + k + 5)
			}
			turn := [3]float64{}
			for k := range w {
				turn[k] = (was[k] + w[k]) / 2 / 60
			}
			q = quat.ExpFloat(turn).Mul(q)
			return w[:]
		case 3:
			return q[:]
		case 4:
			return []float64{float64(n) * 3}
		case 5:
			return []float64{float64(n % 256)}
		}
		return []float64{float64(n / 100 % 16)}
	})
}

// TestRun: what adds up to the payload does, and predictors find what the trace was made by.
func TestRun(t *testing.T) {
	frames := 1500
	if testing.Short() {
		frames = 600
	}
	tr := drive(t, frames)
	r, err := Run(t.Context(), tr, atDistance(1))
	uplinktest.Must(t, err)
	sum, full := r.CountBits+r.RoundingBits, 0.0
	for i, f := range r.Fields {
		sum, full = sum+f.Bits, full+f.FullBits
		if f.Name != steering[i].Name || f.Kind != string(steering[i].Kind) || f.FloorBits == nil || *f.FloorBits > f.Bits {
			t.Errorf("%+v", f)
		}
	}
	if math.Abs(sum-r.PayloadBits) > 1e-6 || math.Abs(full-r.FullBits) > 1e-6 || r.Frames != frames || r.FloorDistance != 1 {
		t.Errorf("fields take %v of %v, in full %v of %v", sum, r.PayloadBits, full, r.FullBits)
	}
	for i, want := range []string{"", meanRate, "", meanRate, slope, slope} {
		for _, c := range r.Fields[i].Components {
			by := map[string]Predictor{}
			for _, p := range c.Predictors {
				by[p.Name] = p
			}
			best := c.Best()
			if best != &c.Predictors[0] || best.Bits > by[hold].Bits {
				t.Errorf("%s: %+v", c.Name, c.Predictors)
			}
			if i == 0 && math.Abs(best.Bits-c.Bits) > .2*best.Bits {
				t.Errorf("%s takes %v bits, at best %v", c.Name, c.Bits, best.Bits)
			}
			if want == "" {
				continue
			}
			if p := by[want]; p.Bits > best.Bits+.1 || p.Mean > 2 || p.Bits > by[hold].Bits-2 || by[hold].Mean <= p.Mean {
				t.Errorf("%s by %s: %+v", c.Name, want, c.Predictors)
			}
		}
	}
	if p := r.Fields[6].Components[0].Predictors; p != nil {
		t.Errorf("bits are predicted by %v", p)
	}
}

// TestRunLink checks baselines of several ages, and lost frames.
func TestRunLink(t *testing.T) {
	cfg := atDistance(0)
	cfg.Link = simlink.Config{RTT: 80 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: .1, Burst: 2, Seed: 3}
	r, err := Run(t.Context(), drive(t, 800), cfg)
	uplinktest.Must(t, err)
	if c := r.Fields[1].Components[0]; c.Best().Name != meanRate && c.Best().Name != leastSquares || r.FloorDistance < 5 {
		t.Errorf("%+v, floor at %d", c, r.FloorDistance)
	}
	if r, err := Run(t.Context(), drive(t, 1), cfg); err != nil || r.FloorDistance != 0 || !strings.Contains(Text([]*Report{r}), "Location") {
		t.Errorf("one frame: %+v, %v", r, err)
	}
}

// TestMoments: nothing is predicted from what the server did not hold, nor from the future.
func TestMoments(t *testing.T) {
	cfg := atDistance(0)
	cfg.Link = simlink.Config{RTT: 60 * time.Millisecond, Loss: .3, Burst: 1, Seed: 1}
	m, err := newMoments(t.Context(), drive(t, 400), cfg)
	uplinktest.Must(t, err)
	based := 0
	for n, x := range m.of {
		if x.base < 0 {
			continue
		}
		based++
		d := n - x.base
		if d <= 0 || !m.known[x.base] || x.prior >= x.base || x.prior >= 0 && !m.known[x.prior] || x.far > x.base-d || x.far >= 0 && !m.known[x.far] {
			t.Fatalf("frame %d: %+v", n, x)
		}
	}
	if based < 300 {
		t.Errorf("%d of 400 frames have a baseline", based)
	}
}

// hostile are names that a page or a terminal must not act on.
const hostile = `"><script>alert(1)</script>` + "\x1b[2J&amp;'{{.}}"

func TestHostileNames(t *testing.T) {
	tr := newTrace(t, 300, []schema.Field{
		{Name: hostile, Kind: schema.KindVec2, Resolution: 1}, {Name: "</style>", Kind: schema.KindBool},
	}, func(n, i int) []float64 {
		if i == 0 {
			return []float64{float64(n), 10 * jitter(n)}
		}
		return []float64{float64(n / 50 % 2)}
	})
	tr.Name = hostile
	r, err := Run(t.Context(), tr, atDistance(1))
	uplinktest.Must(t, err)
	page, err := HTML([]*Report{r, r})
	uplinktest.Must(t, err)
	html := string(page)
	if strings.Contains(html, "<script") || strings.Count(html, "</style>") != 1 || !strings.Contains(html, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("a name is markup")
	}
	if strings.Count(html, "<svg") != 4 || strings.Count(html, "</svg>") != 4 || strings.Contains(html, "src=") || strings.Contains(html, "href=") {
		t.Error("pictures are missing, or something is fetched")
	}
	if text := Text([]*Report{r}); strings.Contains(text, "\x1b") || !strings.Contains(text, "?[2J") {
		t.Errorf("a name reaches the terminal: %q", text)
	}
}

// record writes a trace of rows.
func record(t *testing.T, rows int) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("x,y,yaw,k\n")
	for n := range rows {
		fmt.Fprintf(&b, "%.5f,%.5f,%.3f,%d\n", 3*math.Sin(float64(n)/40), float64(n)*.01, math.Mod(float64(n)*2, 360)-180, n/30)
	}
	path := filepath.Join(dir, "made.csv")
	schemaJSON := `{"rpc": "Move", "rate_hz": 60, "fields": [
		{"name": "At", "kind": "vec2", "columns": ["x", "y"], "resolution": 0.001, "min": -10.0005, "max": 10},
		{"name": "Yaw", "kind": "angle", "columns": ["yaw"], "bits": 16},
		{"name": "K", "kind": "uint", "columns": ["k"], "width": 16}]}`
	for name, text := range map[string]string{path: b.String(), filepath.Join(dir, "made.schema.json"): schemaJSON} {
		uplinktest.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return path
}

// TestWhatIf: errors are within half a step where all arrives, grow with resolution, loss and a
// lower rate; bits fall with resolution; the order of the cases is the grid's.
func TestWhatIf(t *testing.T) {
	r, err := Load(record(t, 900), nil)
	uplinktest.Must(t, err)
	g := Grid{Resolutions: []float64{1, 16}, Redundancies: []int{rpcdelta.RedundancyOff, 2}, Losses: []float64{0, .2}}
	cfg := atDistance(0)
	last := 0.0
	cfg.Progress = func(_ string, done float64) { last = max(last, done) }
	out, err := WhatIf(t.Context(), r, g, cfg)
	if err != nil || len(out.Cases) != 16 || last != 1 {
		t.Fatalf("%+v, %v, %v done", out, err, last)
	}
	at := func(resolution float64, redundancy int, loss, rate float64) *Case {
		for i := range out.Cases {
			if c := &out.Cases[i]; c.Resolution == resolution && c.Redundancy == redundancy && c.Loss == loss && c.RateHz == rate {
				return c
			}
		}
		t.Fatalf("no such case among %+v", out.Cases)
		return nil
	}
	off := rpcdelta.RedundancyOff
	fine, coarse := at(1, off, 0, 60), at(16, off, 0, 60)
	if fine.Delivered != 1 || fine.Errors[0].P99 > .0005*math.Sqrt2+1e-9 || fine.Errors[0].Mean < 1e-5 || fine.Errors[1].P99 > 180./65536+1e-9 || len(fine.Errors) != 2 {
		t.Errorf("%+v", fine)
	}
	if e := coarse.Errors[0]; e.P99 > .008*math.Sqrt2+1e-9 || e.Mean < 8*fine.Errors[0].Mean || coarse.Bits > 1.01*fine.Bits {
		t.Errorf("%+v, fine %+v", coarse, fine)
	}
	lossy, redundant, slow := at(1, off, .2, 60), at(1, 2, .2, 60), at(1, off, 0, 30)
	if lossy.Delivered > .85 || lossy.Errors[0].Mean < 2*fine.Errors[0].Mean || redundant.Delivered < .97 || redundant.Bits <= lossy.Bits || redundant.Errors[0].Mean >= lossy.Errors[0].Mean {
		t.Errorf("%+v\n%+v", lossy, redundant)
	}
	if slow.Errors[1].Mean < .9 || slow.Kbits >= fine.Kbits {
		t.Errorf("%+v", slow)
	}
	rows := out.Text([]string{"At", "K"}, func(n int) string { return fmt.Sprint(n) })
	if len(rows) != 17 || len(rows[1]) != len(rows[0]) || rows[1][9] != "-" {
		t.Errorf("%q", rows[:2])
	}
}

// TestWhatIfErrors name what is wrong, and where.
func TestWhatIfErrors(t *testing.T) {
	r, err := Load(record(t, 100), nil)
	uplinktest.Must(t, err)
	one := func(change func(*Grid)) error {
		g := Grid{Resolutions: []float64{1}, Redundancies: []int{0}, Losses: []float64{0}, Rates: []float64{60}}
		change(&g)
		if err := g.Validate(); err != nil {
			return err
		}
		_, err := WhatIf(t.Context(), r, g, atDistance(0))
		return err
	}
	for want, change := range map[string]func(*Grid){
		"--rates 45: made has 60 rows a second": func(g *Grid) { g.Rates = []float64{45} },
		"--resolutions 0: want factors":         func(g *Grid) { g.Resolutions = []float64{0} },
		"--resolutions NaN":                     func(g *Grid) { g.Resolutions = []float64{math.NaN()} },
		"the grid has 0 cases":                  func(g *Grid) { g.Losses = nil },
	} {
		if err := one(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := r.CheckField("K"); err == nil || r.CheckField("Yaw") != nil {
		t.Errorf("%v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.csv"), r.Schema); err == nil {
		t.Error("no such file is loaded")
	}
}

func TestOff(t *testing.T) {
	half := math.Sqrt(.5)
	for _, c := range []struct {
		kind schema.Kind
		a, b []float64
		want float64
	}{
		{schema.KindVec3, []float64{1, 2, 3}, []float64{1, 5, 7}, 5},
		{schema.KindScalar, []float64{1, 2}, []float64{1.5, 0}, 2},
		{schema.KindAngle, []float64{179}, []float64{-179}, 2},
		{schema.KindQuat, []float64{0, 0, 0, 1}, []float64{0, 0, half, half}, 90},
		{schema.KindQuat, []float64{0, 0, 0, 1}, []float64{0, 0, -half, -half}, 90},
		{schema.KindQuat, []float64{0, 0, 0, 2}, []float64{0, 0, 0, -3}, 0},
		{schema.KindUnitVec, []float64{0, 0, 1}, []float64{0, 0, -1}, 180},
		{schema.KindUnitVec, []float64{0, 0, 0}, []float64{0, 0, -1}, 0},
	} {
		if got := Off(c.kind, c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s %v and %v are %v apart, want %v", c.kind, c.a, c.b, got, c.want)
		}
	}
}

// TestSquares: weights are found, and follow where they change.
func TestSquares(t *testing.T) {
	s := newSquares(3)
	for n := range 20000 {
		w := []float64{1.5, -2, 0}
		if n > 2000 {
			w = []float64{.5, 1, 0}
		}
		x := []float64{100 * jitter(n), 30 * jitter(n+13), 0}
		y := jitter(n + 71)
		for i := range w {
			y += w[i] * x[i]
		}
		if n == 1999 || n == 19999 {
			for i, want := range w[:2] {
				if math.Abs(s.w[i]-want) > .1 {
					t.Errorf("after %d: %v, want %v", n, s.w, w)
				}
			}
		}
		s.learn(x, y)
	}
}
