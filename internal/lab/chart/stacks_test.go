package chart_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/lab/chart"
)

func TestStacks(t *testing.T) {
	c := chart.Stacks{Title: "A & B", Unit: "bits", Rows: []chart.Stack{
		{Name: "full", Parts: []chart.Part{{"Location", 60}, {"Tiny", 0.5}, {"Nothing", 0}}},
		{Name: "coded", Parts: []chart.Part{{"Location", 20}, {"Tiny", 0.25}}},
	}}
	svg := c.SVG()
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]int{
		">Location 60</text>": 1, ">Tiny 0.5</text>": 0, "<title>Tiny 0.5</title>": 1, ">60.5</text>": 1, ">Tiny</text>": 1, ">20.2</text>": 1, "A &amp; B": 2,
		"#2f81f7": 3, "<rect": 5, ">full</text>": 1,
	} {
		if got := strings.Count(svg, what); got != n {
			t.Errorf("%q is there %d times, want %d", what, got, n)
		}
	}
}
