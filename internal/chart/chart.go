// Package chart draws lines and bars as SVG, for light and dark pages.
package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Chart is a line chart.
type Chart struct {
	Title string
	// XUnit and YUnit are the units of the axes.
	XUnit, YUnit string
	// Log selects logarithmic axes. All coordinates are then above 0.
	Log bool
	// X contains the coordinates of the points of all lines: at least two, ascending.
	X     []float64
	Lines []Line
}

// Line is one line of a chart.
type Line struct {
	// Name labels the line. A line without a name is dashed and has the color of the previous one.
	Name string
	// Dotted draws a line without a name with dots instead of dashes.
	Dotted bool
	// Y contains a value of at least 0 for each element of Chart.X.
	Y []float64
}

// The size of the picture and of its margins, in pixels.
const (
	width, height           = 720, 380
	left, right, top, below = 48, 190, 40, 40
	labelGap                = 15
)

// colors are legible on white and on black.
var colors = []string{
	"#2f81f7", "#d29922", "#3fb950", "#db61a2", "#a371f7", "#f0883e", "#1b9e9e", "#8b949e",
	"#e5534b", "#b08800", "#6a8ffb", "#7ee787", "#c06be8", "#57ab5a",
}

func colorOf(i int) string { return colors[i%len(colors)] }

// SVG returns the chart. Its vertical axis starts at 0, or at a power of ten.
func (c *Chart) SVG() string {
	var b strings.Builder
	begin(&b, height, c.Title)
	c.axes(&b)
	color := -1
	var labels []label
	for _, l := range c.Lines {
		dash := ` stroke-dasharray="4 4"`
		if l.Dotted {
			dash = ` stroke-dasharray="1 4"`
		}
		if l.Name != "" {
			color, dash = color+1, ""
			labels = append(labels, label{l.Name, c.y(l.Y[len(l.Y)-1]), colorOf(color)})
		}
		fmt.Fprintf(&b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colorOf(max(color, 0)), dash)
		for i, y := range l.Y {
			fmt.Fprintf(&b, "%.1f,%.1f ", c.x(c.X[i]), c.y(y))
		}
		b.WriteString("\"/>\n")
	}
	for _, l := range spread(labels) {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s</text>\n", width-right+8, l.y+4, l.color, html.EscapeString(l.text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func begin(b *strings.Builder, height int, title string) {
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#7d8590\">\n", width, height)
	fmt.Fprintf(b, "<title>%s</title>\n", html.EscapeString(title))
	text(b, left, 18, "start", title)
}

func (c *Chart) axes(b *strings.Builder) {
	last := len(c.X) - 1
	for _, x := range c.X[:last] {
		text(b, c.x(x), height-below+18, "middle", fmt.Sprintf("%g", x))
	}
	text(b, width-right, height-below+18, "end", fmt.Sprintf("%g %s", c.X[last], c.XUnit))
	for _, y := range c.marks() {
		gridLine(b, "M%d %.1fH%d", left, c.y(y), width-right)
		text(b, left-6, c.y(y)+4, "end", fmt.Sprintf("%g", y))
	}
	text(b, 0, top-10, "start", c.YUnit)
}

func gridLine(b *strings.Builder, path string, at ...any) {
	fmt.Fprintf(b, "<path stroke=\"#7d8590\" stroke-opacity=\"0.3\" d=\""+path+"\"/>\n", at...)
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, html.EscapeString(s))
}

// marks returns the values of the grid lines.
func (c *Chart) marks() (all []float64) {
	if c.Log {
		low, high := c.decades()
		for d := low; d <= high; d++ {
			all = append(all, math.Pow10(d))
		}
		return all
	}
	for y := 0.0; y <= c.ceiling(); y += c.step() {
		all = append(all, y)
	}
	return all
}

// decades returns the exponents of the ends of a logarithmic axis.
func (c *Chart) decades() (low, high int) {
	least, most := math.Inf(1), 0.0
	for _, l := range c.Lines {
		least, most = min(least, slices.Min(l.Y)), max(most, slices.Max(l.Y))
	}
	low = int(math.Floor(math.Log10(least)))
	return low, max(low+1, int(math.Ceil(math.Log10(most))))
}

func (c *Chart) x(v float64) float64 {
	first, last := c.X[0], c.X[len(c.X)-1]
	if c.Log {
		v, first, last = math.Log10(v), math.Log10(first), math.Log10(last)
	}
	return left + (v-first)/(last-first)*(width-left-right)
}

func (c *Chart) y(v float64) float64 {
	share := v / c.ceiling()
	if c.Log {
		low, high := c.decades()
		share = (math.Log10(v) - float64(low)) / float64(high-low)
	}
	return height - below - share*(height-top-below)
}

// step returns the distance of grid lines: a round number, of which the axis has four to ten.
func (c *Chart) step() float64 {
	most := c.most()
	step := 1.0
	for step*10 < most {
		step *= 10
	}
	for step*4 > most {
		step /= 2
	}
	return step
}

func (c *Chart) ceiling() float64 {
	step := c.step()
	ceiling := step
	for ceiling < c.most() {
		ceiling += step
	}
	return ceiling
}

// most returns the maximum value, or 1 if all are 0.
func (c *Chart) most() float64 {
	most := 0.0
	for _, l := range c.Lines {
		most = max(most, slices.Max(l.Y))
	}
	return cmp.Or(most, 1)
}

type label struct {
	text  string
	y     float64
	color string
}

// spread moves labels so that they neither overlap nor leave the picture.
func spread(labels []label) []label {
	slices.SortFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(labels); i++ {
		labels[i].y = max(labels[i].y, labels[i-1].y+labelGap)
	}
	limit := float64(height - labelGap)
	for i := len(labels) - 1; i >= 0 && labels[i].y > limit; i-- {
		labels[i].y = limit
		limit -= labelGap
	}
	return labels
}
