package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// drawn is what an SVG shows.
type drawn struct {
	texts     []string
	polylines [][][2]float64
	dashed    []bool
}

func read(t *testing.T, svg string) (d drawn) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" {
				d.texts = append(d.texts, s)
			}
		case xml.StartElement:
			if e.Name.Local == "polyline" {
				d.polyline(t, e.Attr)
			}
		}
	}
}

func (d *drawn) polyline(t *testing.T, attributes []xml.Attr) {
	t.Helper()
	var points [][2]float64
	dashed := false
	for _, a := range attributes {
		switch a.Name.Local {
		case "stroke-dasharray":
			dashed = true
		case "points":
			for p := range strings.FieldsSeq(a.Value) {
				x, y, _ := strings.Cut(p, ",")
				px, errX := strconv.ParseFloat(x, 64)
				py, errY := strconv.ParseFloat(y, 64)
				if err := errors.Join(errX, errY); err != nil {
					t.Fatal(err)
				}
				points = append(points, [2]float64{px, py})
			}
		}
	}
	d.polylines, d.dashed = append(d.polylines, points), append(d.dashed, dashed)
}

func TestSVG(t *testing.T) {
	c := Chart{
		Title: "a < b & c", XUnit: "Hz", YUnit: "kbit/s", X: []float64{10, 20, 60},
		Lines: []Line{{Name: "one", Y: []float64{10, 15, 30}}, {Y: []float64{5, 5, 5}}, {Name: "<two>", Y: []float64{40, 40, 30.1}}},
	}
	d := read(t, c.SVG())
	want := "a < b & c|a < b & c|10|20|60 Hz|0|10|20|30|40|kbit/s|<two>|one"
	if got := strings.Join(d.texts, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(d.polylines) != 3 || d.dashed[0] || !d.dashed[1] || d.dashed[2] {
		t.Fatalf("%+v", d)
	}
	bottom := float64(height - below)
	for i, line := range d.polylines {
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

func TestSpread(t *testing.T) {
	got := spread([]label{{y: 52}, {y: 50}, {y: 200}, {y: 51}})
	for i, want := range []float64{50, 50 + labelGap, 50 + 2*labelGap, 200} {
		if got[i].y != want {
			t.Errorf("%+v", got)
		}
	}
}

// TestSpreadAtBottom keeps labels in the picture.
func TestSpreadAtBottom(t *testing.T) {
	got := spread([]label{{y: 300}, {y: 355}, {y: 356}, {y: 357}})
	for i, want := range []float64{300, height - 3*labelGap, height - 2*labelGap, height - labelGap} {
		if got[i].y != want {
			t.Errorf("%+v", got)
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
