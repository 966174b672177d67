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

// widths returns the widths of all rectangles of an SVG.
func widths(t *testing.T, svg string) (all []float64) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "rect" {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Local == "width" {
				v, err := strconv.ParseFloat(a.Value, 64)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, v)
			}
		}
	}
}

func TestBars(t *testing.T) {
	c := Bars{Title: "a & b", Unit: "ns", Names: []string{"in", "out"}, Rows: []Row{{"<one>", []float64{100, 1000}}, {"two", []float64{316.2278, 90000}}}}
	svg := c.SVG()
	want := "a & b|a & b|in|out|100|1000|10000|100000 ns|<one>|100|1000|two|316|90000"
	if got := strings.Join(read(t, svg).texts, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	decade := float64(width-barLeft-barRight) / 3
	got := widths(t, svg)
	for i, want := range []float64{0, decade, decade / 2, decade * (math.Log10(90000) - 2)} {
		if len(got) != 4 || math.Abs(got[i]-want) > 0.1 {
			t.Errorf("widths %v, want %v at %d", got, want, i)
		}
	}
}

// TestOneDecade draws an axis even where all values are one power of ten.
func TestOneDecade(t *testing.T) {
	c := Bars{Names: []string{"in"}, Rows: []Row{{"one", []float64{10}}}}
	if svg := c.SVG(); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error(svg)
	}
}
