package tune

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestTighten: whatever the values, they are within the bound; and the next coarser step would not
// be, or not surely.
func TestTighten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]schema.Kind{schema.KindVec2, schema.KindVec3, schema.KindScalar, schema.KindAngle, schema.KindQuat, schema.KindUnitVec}).Draw(t, "kind")
		limit := math.Pow(10, rapid.Float64Range(-2, 1).Draw(t, "limit"))
		f := schema.Field{Name: "F", Kind: kind}
		if err := tighten(&f, limit); err != nil {
			t.Fatal(err)
		}
		s, err := schema.New("R", 60, []schema.Field{f})
		if err != nil {
			t.Fatal(err)
		}
		n := s.Fields()[0].Values()
		values := make([]float64, n)
		for range 50 {
			norm := 0.0
			for i := range values {
				values[i] = rapid.Float64Range(-1, 1).Draw(t, "v")
				norm += values[i] * values[i]
			}
			if norm < 1e-3 {
				values[0] = 1
			}
			if kind == schema.KindAngle {
				values[0] *= 400
			}
			frame := s.NewFrame()
			if err := s.QuantizeField(frame, 0, values); err != nil {
				t.Fatal(err)
			}
			if e := analysis.Off(kind, s.RestoreField(nil, frame, 0), values); e > limit*(1+1e-9) {
				t.Fatalf("%v of %s is off by %v, want at most %v: %v", values, kind, e, limit, f)
			}
		}
		if f.Resolution != 0 && f.Resolution*1.12 < 2*limit/math.Sqrt(float64(dimensions(&f))) {
			t.Fatalf("resolution %v for a bound of %v", f.Resolution, limit)
		}
	})
}

func TestBounds(t *testing.T) {
	vec := func(columns ...string) *schema.Field {
		return &schema.Field{Name: "F", Kind: schema.KindVec2, Columns: columns}
	}
	quat := &schema.Field{Name: "F", Kind: schema.KindQuat}
	for _, c := range []struct {
		text, unit string
		f          *schema.Field
		want       float64
		err        string
	}{
		{"F=1cm", "", vec("x_m", "y_m"), .01, ""},
		{"F=1cm", "", vec("x_uu", "y_uu"), 1, ""},
		{"F=2mm", "km", vec("x", "y"), 2e-6, ""},
		{"F=0.5", "", vec("x", "y"), .5, ""},
		{"F=1 cm/s", "", vec("x_mps", "y_mps"), .01, ""},
		{"F=90deg", "", vec("x_rad", "y_rad"), math.Pi / 2, ""},
		{"F=0.1", "", quat, .1, ""},
		{"F=0.1rad", "", quat, 18 / math.Pi, ""},
		{"F=1cm", "", vec("x", "y"), 0, "the unit of x, y is not known: name it with --unit F=cm"},
		{"F=1cm", "", vec("x_m", "y_cm"), 0, "is not known"},
		{"F=1cm", "", vec("x_mps", "y_mps"), 0, "cm is one of length, but F has one of length a second"},
		{"F=1cm", "", quat, 0, "cm is one of length, but F has one of angle"},
		{"F=1", "", &schema.Field{Name: "F", Kind: schema.KindUint}, 0, "a uint is not rounded"},
		{"F", "", nil, 0, "want Field=0.01"},
		{"=1", "", nil, 0, "want Field=0.01"},
		{"F=", "", nil, 0, "want Field=0.01"},
		{"F=0", "", nil, 0, "want Field=0.01"},
		{"F=-1", "", nil, 0, "want Field=0.01"},
		{"F=1furlong", "", nil, 0, "unknown unit \"furlong\""},
	} {
		b, err := ParseBound(c.text)
		got := 0.0
		if err == nil {
			got, err = b.limit(c.f, c.unit)
		}
		if math.Abs(got-c.want) > 1e-9*c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v, want %v, %s", c.text, got, err, c.want, c.err)
		}
	}
}

func TestRoundDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Pow(10, rapid.Float64Range(-9, 9).Draw(t, "x"))
		got := roundDown(x)
		mantissa, _, _ := strings.Cut(strconv.FormatFloat(got, 'e', -1, 64), "e")
		if got > x*(1+1e-9) || got < x*.9 || len(mantissa) > len("1.1") {
			t.Fatalf("%v becomes %v", x, got)
		}
	})
}

func noise(n int) float64 { return math.Sin(float64(n*n%7919) * 1.7) }

// record writes a trace in which "at" has the velocity "v", in another unit, "turn" the angular
// velocity "w", and "other" has nothing to do with any.
func record(t *testing.T, rows int) (path string) {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("x_m,y_m,u_cmps,v_cmps,i,j,qx,qy,qz,qw,wx,wy,wz\n")
	var v, x, was, other [2]float64
	var w, before [3]float64
	q := quat.Float{0, 0, 0, 1}
	for n := range rows {
		was, before = v, w
		for k := range v {
			v[k] += 15 * noise(2*n+k)
			x[k] += (v[k] + was[k]) / 2 / 100 / 60
			other[k] += noise(7*n + 3*k)
		}
		turn := [3]float64{}
		for k := range w {
			w[k] += .3 * noise(3*n+k+5)
			turn[k] = (w[k] + before[k]) / 2 / 60
		}
		q = quat.ExpFloat(turn).Mul(q)
		fmt.Fprintf(&b, "%.5f,%.5f,%.3f,%.3f,%.3f,%.3f,%.6f,%.6f,%.6f,%.6f,%.5f,%.5f,%.5f\n", x[0], x[1], v[0], v[1], other[0], other[1], q[0], q[1], q[2], q[3], w[0], w[1], w[2])
	}
	path = filepath.Join(dir, "made.csv")
	schemaJSON := `{"rpc": "Move", "rate_hz": 60, "fields": [
		{"name": "At", "kind": "vec2", "columns": ["x_m", "y_m"], "resolution": 0.0001},
		{"name": "V", "kind": "vec2", "columns": ["u_cmps", "v_cmps"], "resolution": 0.1},
		{"name": "Other", "kind": "vec2", "columns": ["i", "j"], "resolution": 0.01},
		{"name": "Turn", "kind": "quat", "columns": ["qx", "qy", "qz", "qw"], "bits": 16},
		{"name": "W", "kind": "vec3", "columns": ["wx", "wy", "wz"], "resolution": 0.001}]}`
	for name, text := range map[string]string{path: b.String(), filepath.Join(dir, "made.schema.json"): schemaJSON} {
		uplinktest.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return path
}

// TestRun: bounds are kept, the links are those that the trace was made with, each step but the
// first saves, and the schema that comes of it reads the trace.
func TestRun(t *testing.T) {
	path := record(t, 1500)
	r, err := analysis.Load(path, nil)
	uplinktest.Must(t, err)
	last := 0.0
	cfg := Config{
		Bounds:   []Bound{{"At", 1, "cm"}, {"Turn", .2, "deg"}},
		Delivery: .99,
	}
	cfg.Link, cfg.AckHz = simlink.Config{RTT: 100 * time.Millisecond, Loss: .05, Burst: 1, Seed: 1}, 60
	cfg.Progress = func(_ string, done float64) {
		if done < last || done >= 1 {
			t.Errorf("%v of it is done after %v", done, last)
		}
		last = done
	}
	got, err := Run(t.Context(), []*analysis.Recording{r}, cfg)
	uplinktest.Must(t, err)
	f := got.Schema.Fields()
	if f[0].Velocity != "V" || f[0].VelocityScale != .01 || f[3].Velocity != "W" || f[3].VelocityScale != 1 || f[1].Velocity != "" || f[2].Velocity != "" || f[4].Velocity != "" {
		t.Errorf("%+v", f)
	}
	for i, k := range got.Kept {
		if want := []float64{.01, .2}[i]; math.Abs(k.Bound-want) > 1e-9 || k.Measured > k.Bound || k.Measured < k.Bound/4 {
			t.Errorf("%+v", k)
		}
	}
	for i, s := range got.Steps[1:] {
		if before := got.Steps[i]; s.Bits > before.Bits*1.01 && s.Kbits > before.Kbits {
			t.Errorf("%+v after %+v", s, before)
		}
	}
	end := got.Steps[len(got.Steps)-1]
	if end.Delivered < .99 || end.Bits > .8*got.Steps[0].Bits || got.Ring >= rpcdelta.DefaultRing || got.Redundancy == rpcdelta.RedundancyOff {
		t.Errorf("%+v, ring %d, redundancy %d", got.Steps, got.Ring, got.Redundancy)
	}
	file, err := got.Schema.AppendJSON(nil)
	uplinktest.Must(t, err)
	s, err := schema.Parse(file)
	if err != nil || s.Fingerprint() != got.Schema.Fingerprint() {
		t.Fatalf("%s: %v", file, err)
	}
	if _, err := trace.Load(path, s); err != nil {
		t.Error(err)
	}
}

func TestRunErrors(t *testing.T) {
	r, err := analysis.Load(record(t, 60), nil)
	uplinktest.Must(t, err)
	other, err := analysis.Load(record(t, 60), must(t, r.Schema, func(f []schema.Field) { f[0].Resolution = 1 }))
	uplinktest.Must(t, err)
	one := []*analysis.Recording{r}
	for want, c := range map[string]struct {
		recordings []*analysis.Recording
		change     func(*Config)
	}{
		"want a recording":         {nil, func(*Config) {}},
		"is another one than that": {[]*analysis.Recording{r, other}, func(*Config) {}},
		"Move has no such field":   {one, func(c *Config) { c.Bounds[0].Field = "Nothing" }},
		"20 bits are off by up to": {one, func(c *Config) { c.Bounds[0] = Bound{"Turn", 1e-9, ""} }},
		"--delivery 2":             {one, func(c *Config) { c.Delivery = 2 }},
		"--unit At=x":              {nil, func(c *Config) { c.Units = map[string]string{"At": "x"} }},
		"row 1":                    {one, func(c *Config) { c.Bounds[0].Value = 1e-12 }},
	} {
		cfg := Config{Delivery: .99, Bounds: []Bound{{"At", 1, ""}}}
		cfg.Link, cfg.AckHz = simlink.Config{Burst: 1}, 60
		c.change(&cfg)
		if _, err := Run(t.Context(), c.recordings, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// must is the schema with changed fields.
func must(t *testing.T, s *schema.Schema, change func([]schema.Field)) *schema.Schema {
	t.Helper()
	fields := append([]schema.Field(nil), s.Fields()...)
	change(fields)
	out, err := schema.New(s.RPC(), s.RateHz(), fields)
	uplinktest.Must(t, err)
	return out
}

// TestWholeNumbers expects values that are whole multiples of their resolution to stay such, with
// the resolution that the schema has unless a coarser one keeps the bound.
func TestWholeNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells.csv")
	var b strings.Builder
	b.WriteString("x,y\n")
	for n := range 600 {
		fmt.Fprintf(&b, "%d,%d\n", 500+n*7%23, 400-n*5%17)
	}
	schemaJSON := `{"rpc": "Mouse", "rate_hz": 60, "fields": [{"name": "Cursor", "kind": "vec2", "columns": ["x", "y"], "resolution": 1}]}`
	uplinktest.Must(t, os.WriteFile(path, []byte(b.String()), 0o600))
	uplinktest.Must(t, os.WriteFile(trace.SchemaPath(path), []byte(schemaJSON), 0o600))
	r, err := analysis.Load(path, nil)
	uplinktest.Must(t, err)
	for bound, want := range map[float64]float64{0.25: 1, 0.5: 1, 1: 1, 1.6: 2} {
		cfg := Config{Bounds: []Bound{{"Cursor", bound, ""}}, Delivery: .99}
		cfg.Link, cfg.AckHz = simlink.Config{RTT: 50 * time.Millisecond, Burst: 1, Seed: 1}, 60
		got, err := Run(t.Context(), []*analysis.Recording{r}, cfg)
		uplinktest.Must(t, err)
		if f := got.Schema.Fields()[0]; f.Resolution != want || got.Kept[0].Measured > bound || want == 1 && got.Kept[0].Measured != 0 {
			t.Errorf("within %v: resolution %v, want %v; off by %v", bound, f.Resolution, want, got.Kept[0].Measured)
		}
	}
}
