package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// drawn is what an SVG shows.
type drawn struct {
	texts  []string
	lines  [][][2]float64
	dashed []string
	widths []float64 // of rectangles
}

func read(t *testing.T, svg string) (d drawn) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		uplinktest.Must(t, err)
		switch e := token.(type) {
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" {
				d.texts = append(d.texts, s)
			}
		case xml.StartElement:
			attribute := func(name string) string {
				i := slices.IndexFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
				if i < 0 {
					return ""
				}
				return e.Attr[i].Value
			}
			switch e.Name.Local {
			case "polyline":
				var points [][2]float64
				for p := range strings.FieldsSeq(attribute("points")) {
					var at [2]float64
					_, err := fmt.Sscanf(p, "%f,%f", &at[0], &at[1])
					uplinktest.Must(t, err)
					points = append(points, at)
				}
				d.lines, d.dashed = append(d.lines, points), append(d.dashed, attribute("stroke-dasharray"))
			case "rect":
				var w float64
				_, err := fmt.Sscan(attribute("width"), &w)
				uplinktest.Must(t, err)
				d.widths = append(d.widths, w)
			}
		}
	}
}

func TestSVG(t *testing.T) {
	c := Chart{
		Title: "a < b & c", XUnit: "Hz", YUnit: "kbit/s", X: []float64{10, 20, 60},
		Lines: []Line{{Name: "one", Y: []float64{10, 15, 30}}, {Y: []float64{5, 5, 5}, Dotted: true}, {Name: "<two>", Y: []float64{40, 40, 30.1}}},
	}
	d := read(t, c.SVG())
	want := "a < b & c|a < b & c|10|20|60 Hz|0|10|20|30|40|kbit/s|<two>|one"
	if got := strings.Join(d.texts, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Equal(d.dashed, []string{"", "1 4", ""}) {
		t.Fatalf("%+v", d)
	}
	bottom := float64(height - below)
	for i, line := range d.lines {
		for k, p := range line {
			value := (bottom - p[1]) / (bottom - top) * 40
			if math.Abs(value-c.Lines[i].Y[k]) > 0.1 {
				t.Errorf("line %d, point %d shows %v, want %v", i, k, value, c.Lines[i].Y[k])
			}
		}
		if line[0][0] != left || line[2][0] != width-right || math.Abs(line[1][0]-(left+(width-left-right)*0.2)) > 0.1 {
			t.Errorf("line %d: %v", i, line)
		}
	}
}

// TestLog checks the places of points between logarithmic axes.
func TestLog(t *testing.T) {
	c := Chart{Log: true, X: []float64{1, 10, 1000}, Lines: []Line{{Name: "a", Y: []float64{2, 20, 1000}}, {Name: "b", Y: []float64{100, 100, 100}}}}
	d := read(t, c.SVG())
	if got, want := strings.Join(d.texts, "|"), "1|10|1000|1|10|100|1000|a|b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for line, lines := range d.lines {
		for i, p := range lines {
			x := left + math.Log10(c.X[i])/3*(width-left-right)
			y := height - below - math.Log10(c.Lines[line].Y[i])/3*(height-top-below)
			if math.Abs(p[0]-x) > .1 || math.Abs(p[1]-y) > .1 {
				t.Errorf("line %d: point %d at %v, want %.1f, %.1f", line, i, p, x, y)
			}
		}
	}
}

// TestSpread expects labels that neither overlap nor leave the picture.
func TestSpread(t *testing.T) {
	for _, c := range [][2][]float64{
		{{52, 50, 200, 51}, {50, 50 + labelGap, 50 + 2*labelGap, 200}},
		{{300, 355, 356, 357}, {300, height - 3*labelGap, height - 2*labelGap, height - labelGap}},
	} {
		var labels []label
		for _, y := range c[0] {
			labels = append(labels, label{y: y})
		}
		for i, got := range spread(labels) {
			if got.y != c[1][i] {
				t.Errorf("%v: label %d at %v, want %v", c[0], i, got.y, c[1][i])
			}
		}
	}
}

// TestSteps expects a few round numbers on the axis, which the largest value is not above.
func TestSteps(t *testing.T) {
	for _, most := range []float64{0, 0.003, 0.9, 1, 3, 7.5, 10, 11, 99, 100, 101, 43.8, 123456} {
		c := Chart{X: []float64{0, 1}, Lines: []Line{{Name: "a", Y: []float64{0, most}}}}
		step, ceiling := c.step(), c.ceiling()
		if n := ceiling / step; n < 4 || n > 11 || ceiling < most {
			t.Errorf("%v: steps of %v up to %v", most, step, ceiling)
		}
	}
}

func TestBars(t *testing.T) {
	c := Bars{Title: "a & b", Unit: "ns", Names: []string{"in", "out"}, Rows: []Row{{"<one>", []float64{100, 1000}}, {"two", []float64{316.2278, 90000}}}}
	d := read(t, c.SVG())
	want := "a & b|a & b|in|out|100|1000|10000|100000 ns|<one>|100|1000|two|316|90000"
	if got := strings.Join(d.texts, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	decade := float64(width-barLeft-barRight) / 3
	for i, want := range []float64{0, decade, decade / 2, decade * (math.Log10(90000) - 2)} {
		if len(d.widths) != 4 || math.Abs(d.widths[i]-want) > 0.1 {
			t.Errorf("widths %v, want %v at %d", d.widths, want, i)
		}
	}
	one := Bars{Names: []string{"in"}, Rows: []Row{{"one", []float64{10}}}} // of which no axis follows
	if svg := one.SVG(); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error(svg)
	}
}

func TestStacks(t *testing.T) {
	c := Stacks{Title: "A & B", Unit: "bits", Rows: []Stack{
		{Name: "full", Parts: []Part{{"Location", 60}, {"Tiny", 0.5}, {"Nothing", 0}}},
		{Name: "coded", Parts: []Part{{"Location", 20}, {"Tiny", 0.25}}},
	}}
	svg := c.SVG()
	if d := read(t, svg); len(d.widths) != 5 {
		t.Errorf("%+v", d)
	}
	for what, n := range map[string]int{
		">Location 60</text>": 1, ">Tiny 0.5</text>": 0, "<title>Tiny 0.5</title>": 1, ">60.5</text>": 1, ">Tiny</text>": 1, ">20.2</text>": 1, "A &amp; B": 2,
		"#2f81f7": 3, ">full</text>": 1,
	} {
		if got := strings.Count(svg, what); got != n {
			t.Errorf("%q is there %d times, want %d", what, got, n)
		}
	}
}
