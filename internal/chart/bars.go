package chart

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Bars is a bar chart with a logarithmic axis.
type Bars struct {
	Title string
	// Unit is the unit of the axis.
	Unit string
	// Names are the names of the bars in each row.
	Names []string
	Rows  []Row
}

// Row is a named group of bars.
type Row struct {
	Name string
	// Values are positive, one for each of Bars.Names.
	Values []float64
}

// Sizes of bars.
const (
	barLeft, barRight, barTop = 100, 70, 60
	barHeight, rowGap         = 10, 8
)

// SVG returns the chart. The axis starts at the power of ten below the minimum.
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
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"38\" fill=\"%s\">%s</text>\n", barLeft+90*i, colorOf(i), html.EscapeString(name))
	}
	for d := low; d <= high; d++ {
		at, name := x(math.Pow(10, d)), fmt.Sprintf("%g", math.Pow(10, d))
		gridLine(&b, "M%.1f %dV%d", at, barTop-rowGap, bottom)
		if d == high {
			name += " " + c.Unit
		}
		text(&b, at, float64(bottom+18), "middle", name)
	}
	for i, row := range c.Rows {
		y := barTop + rowHeight*i
		text(&b, barLeft-6, float64(y+(rowHeight-rowGap)/2+4), "end", row.Name)
		for k, v := range row.Values {
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", barLeft, y+barHeight*k, x(v)-barLeft, barHeight-1, colorOf(k))
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" font-size=\"10\">%s</text>\n", x(v)+4, y+barHeight*k+8, number(v))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// number formats a value with three significant digits, or without decimals from 100 on.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (c *Bars) decades() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, row := range c.Rows {
		for _, v := range row.Values {
			low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
		}
	}
	return low, max(high, low+1)
}

// Stacks is a chart of stacked bars whose axis starts at 0.
type Stacks struct {
	Title string
	// Unit is the unit of the axis.
	Unit string
	Rows []Stack
}

// Stack is one bar. Parts with the same name have the same color in all bars.
type Stack struct {
	Name  string
	Parts []Part
}

// Part is a part of a bar.
type Part struct {
	Name string
	// Value is not negative.
	Value float64
}

// Sizes of stacks.
const (
	legendLine                      = 18
	stackLeft, stackRight, stackTop = 170, 60, 40
	stackHeight, stackGap           = 26, 10
	letter                          = 6.5 // mean width of a letter, in pixels
)

// SVG returns the chart. Parts that are wide enough are labeled with
// name and value; all have them as a title.
func (c *Stacks) SVG() string {
	bottom := stackTop + (stackHeight+stackGap)*len(c.Rows)
	most := 1.0
	var names []string
	for _, r := range c.Rows {
		most = max(most, r.sum())
		for _, p := range r.Parts {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	scale := (width - stackLeft - stackRight) / most
	var b strings.Builder
	legend, lines := layOut(names)
	begin(&b, bottom+below+legendLine*lines, c.Title)
	axis := Chart{Lines: []Line{{Y: []float64{most}}}}
	for v := 0.0; v <= most; v += axis.step() {
		x := stackLeft + v*scale
		gridLine(&b, "M%.1f %dV%d", x, stackTop-4, bottom)
		text(&b, x, float64(bottom+14), "middle", fmt.Sprintf("%g", v))
	}
	text(&b, width-stackRight+8, float64(bottom+14), "start", c.Unit)
	for i, r := range c.Rows {
		y := stackTop + (stackHeight+stackGap)*i
		text(&b, stackLeft-6, float64(y+stackHeight/2+4), "end", r.Name)
		x := float64(stackLeft)
		for _, p := range r.Parts {
			w := p.Value * scale
			color := colorOf(slices.Index(names, p.Name))
			label := p.Name + " " + number(p.Value)
			fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>%s</title></rect>\n", x, y, max(0, w-1), stackHeight, color, html.EscapeString(label))
			for _, short := range []string{label, number(p.Value)} {
				if w > letter*float64(len(short)) {
					fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#ffffff\" font-size=\"11\">%s</text>\n", x+w/2, y+stackHeight/2+4, html.EscapeString(short))
					break
				}
			}
			x += w
		}
		text(&b, x+5, float64(y+stackHeight/2+4), "start", number(r.sum()))
	}
	for i, l := range legend {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" fill=\"%s\">%s</text>\n", l.x, bottom+below+legendLine*l.line, colorOf(i), html.EscapeString(names[i]))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

type entry struct {
	x    float64
	line int
}

// layOut returns the positions of names in the legend, and its lines.
func layOut(names []string) (_ []entry, lines int) {
	out := make([]entry, len(names))
	x, line := float64(left), 0
	for i, n := range names {
		w := letter * float64(len(n)+3)
		if x+w > width-left {
			x, line = left, line+1
		}
		out[i] = entry{x, line}
		x += w
	}
	return out, line + 1
}

func (s *Stack) sum() (n float64) {
	for _, p := range s.Parts {
		n += p.Value
	}
	return n
}
