package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Bars is rows of bars over a logarithmic axis.
type Bars struct {
	Title string
	// Unit stands at the end of the axis.
	Unit string
	// Names are those of the bars of each row, in one color each.
	Names []string
	Rows  []Row
}

// Row is some bars of one name.
type Row struct {
	Name string
	// Values are positive, as many as there are Names.
	Values []float64
}

// Sizes of bars.
const (
	barLeft, barRight, barTop = 100, 70, 60
	barHeight, rowGap         = 10, 8
)

// SVG draws the bars. The axis starts at the power of ten below the least value.
func (c *Bars) SVG() string {
	rowHeight := barHeight*len(c.Names) + rowGap
	bottom := barTop + rowHeight*len(c.Rows)
	low, high := c.decades()
	x := func(v float64) float64 {
		return barLeft + (math.Log10(v)-low)/(high-low)*(width-barLeft-barRight)
	}
	var b strings.Builder
	begin(&b, bottom+below, c.Title)
	for i, name := range c.Names {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"38\" fill=\"%s\">%s</text>\n", barLeft+90*i, colors[i%len(colors)], html.EscapeString(name))
	}
	for d := low; d <= high; d++ {
		at, name := x(math.Pow(10, d)), fmt.Sprintf("%g", math.Pow(10, d))
		fmt.Fprintf(&b, "<path stroke=\"#7d8590\" stroke-opacity=\"0.3\" d=\"M%.1f %dV%d\"/>\n", at, barTop-rowGap, bottom)
		if d == high {
			name += " " + c.Unit
		}
		text(&b, at, float64(bottom+18), "middle", name)
	}
	for i, row := range c.Rows {
		y := barTop + rowHeight*i
		text(&b, barLeft-6, float64(y+(rowHeight-rowGap)/2+4), "end", row.Name)
		for k, v := range row.Values {
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", barLeft, y+barHeight*k, x(v)-barLeft, barHeight-1, colors[k%len(colors)])
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" font-size=\"10\">%s</text>\n", x(v)+4, y+barHeight*k+8, number(v))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// number is a value with three digits, or as many as it has before the point.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// decades are the powers of ten around all values.
func (c *Bars) decades() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, row := range c.Rows {
		for _, v := range row.Values {
			low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
		}
	}
	if low >= high {
		high = low + 1
	}
	return low, high
}
