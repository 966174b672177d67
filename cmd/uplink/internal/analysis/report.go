package analysis

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/residual"
	"github.com/uplink-rpc/uplink/internal/lab/chart"
	"github.com/uplink-rpc/uplink/internal/lab/table"
)

// Report is what a trace came to. All bits are a frame's, on average. Its JSON is the command's output.
type Report struct {
	Trace  string  `json:"trace"`
	Frames int     `json:"frames"`
	RateHz float64 `json:"rate_hz"`
	// Run says how frames and their baselines lay apart.
	Run string `json:"run"`
	// FullBits is what the engine's packing takes; the others are what the codec adaptive took: PayloadBits are the sum
	// of all fields', of CountBits, which say how many frames a payload has, and of RoundingBits to whole bytes.
	FullBits     float64 `json:"full_bits"`
	HeaderBits   float64 `json:"header_bits"`
	PayloadBits  float64 `json:"payload_bits"`
	CountBits    float64 `json:"count_bits"`
	RoundingBits float64 `json:"rounding_bits"`
	// FloorDistance is how many frames lay between a frame and its baseline for the fields' FloorBits, 0 if the trace
	// is too short.
	FloorDistance int     `json:"floor_distance"`
	Fields        []Field `json:"fields"`
}

// Field is what one field took.
type Field struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	FullBits float64 `json:"full_bits"`
	Bits     float64 `json:"bits"`
	FlagBits float64 `json:"flag_bits"`
	// FloorBits is what the field might take if far more were known than a receiver can know, see docs/codec.md;
	// absent of byte strings and of traces that are too short.
	FloorBits  *float64    `json:"floor_bits,omitempty"`
	Components []Component `json:"components,omitempty"`
}

// Component is what one component took.
type Component struct {
	Name string  `json:"name"`
	Bits float64 `json:"bits"`
	// Held is the share of frames in which it was said to be as its reference, Zeros that in which the forecast was
	// exact, of those that had a residual.
	Held  float64 `json:"held"`
	Zeros float64 `json:"zeros"`
	// Used is how often each predictor of the codec made the forecast, of what was not held.
	Used []Share `json:"used,omitempty"`
	// Predictors are what others would have made of it, each alone.
	Predictors []Predictor `json:"predictors,omitempty"`
}

// Share is one of several parts, 0 to 1.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Predictor is what one predictor alone would have made of a component, over all frames that have a baseline, held ones
// too: the residuals that it leaves, in steps, and the Bits that a flag and, where that says that the component changed,
// an ideal adaptive code ([residual.Ideal]) take. All learn from the frames that both ends know then.
type Predictor struct {
	Name string  `json:"name"`
	Bits float64 `json:"bits"`
	residual.Stats
}

// Best is the predictor that takes least, nil if there is none.
func (c *Component) Best() *Predictor {
	var best *Predictor
	for i := range c.Predictors {
		if p := &c.Predictors[i]; best == nil || p.Bits < best.Bits {
			best = p
		}
	}
	return best
}

const textNotes = `bits   a frame, on average: full as the engine packs it; bits of the codec adaptive, flags those of them that say what changed;
       floor: what the field might take if far more were known than a receiver can know.
held   share of frames in which the component was said to be as its reference; used: the codec's predictors of the rest.
best   of the predictors that were tried, each alone, and its residuals, in steps, over all frames: mean magnitude, and
       magnitudes that 50, 90 and 99 % are not above; the share of zeros; the entropy of the values.
each   predictor: what it would take alone, flags included, in an ideal adaptive code; hold is the plain difference.
`

// Text gives reports as tables.
func Text(reports []*Report) string {
	var b strings.Builder
	for _, r := range reports {
		fmt.Fprintf(&b, "%s: %d frames at %g Hz; %s\n\n", printable(r.Trace), r.Frames, r.RateHz, r.Run)
		table.Write(&b, r.fieldRows())
		for _, rows := range [][][]string{r.componentRows(), r.predictorRows()} {
			if len(rows) > 1 {
				b.WriteByte('\n')
				table.Write(&b, rows)
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString(textNotes)
	return b.String()
}

// printable leaves out of a name what a terminal would act on.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

func bits(v float64) string { return fmt.Sprintf("%.1f", v) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func (r *Report) fieldRows() [][]string {
	rows := [][]string{{"field", "kind", "full", "bits", "of it flags", "share", "floor"}}
	floor, all := 0.0, r.FloorDistance > 0
	for i := range r.Fields {
		f := &r.Fields[i]
		least := "-"
		if f.FloorBits != nil {
			least, floor = bits(*f.FloorBits), floor+*f.FloorBits
		} else {
			all = false
		}
		rows = append(rows, []string{printable(f.Name), f.Kind, bits(f.FullBits), bits(f.Bits), bits(f.FlagBits), r.share(f.Bits), least})
	}
	sum := "-"
	if all {
		sum = bits(floor)
	}
	return append(
		rows, []string{"frame count", "", "", bits(r.CountBits), "", r.share(r.CountBits), ""},
		[]string{"whole bytes", "", "", bits(r.RoundingBits), "", r.share(r.RoundingBits), ""},
		[]string{"payload", "", bits(r.FullBits), bits(r.PayloadBits), "", r.share(r.PayloadBits), sum},
		[]string{"header", "", "", bits(r.HeaderBits), "", "", ""},
	)
}

// share is that of the payload.
func (r *Report) share(bits float64) string { return percent(bits / max(r.PayloadBits, 1e-9)) }

func (r *Report) componentRows() [][]string {
	rows := [][]string{{"component", "bits", "held", "used", "best", "mean", "50 %", "90 %", "99 %", "zeros", "entropy"}}
	for i := range r.Fields {
		for k := range r.Fields[i].Components {
			rows = append(rows, r.Fields[i].Components[k].row())
		}
	}
	return rows
}

func (c *Component) row() []string {
	used := "-"
	if len(c.Used) > 0 {
		used = fmt.Sprintf("%s %.0f %%", c.Used[0].Name, 100*c.Used[0].Share)
	}
	row := []string{printable(c.Name), fmt.Sprintf("%.2f", c.Bits), percent(c.Held), used}
	best := c.Best()
	if best == nil {
		return append(row, "-", "", "", "", "", "", "")
	}
	return append(
		row, best.Name, fmt.Sprintf("%.1f", best.Mean), fmt.Sprintf("%.0f", best.P50), fmt.Sprintf("%.0f", best.P90),
		fmt.Sprintf("%.0f", best.P99), percent(best.Zeros), fmt.Sprintf("%.2f", best.Entropy),
	)
}

// predictorRows are what each predictor would take of each component.
func (r *Report) predictorRows() [][]string {
	rows := [][]string{append([]string{"each"}, predictorNames[:]...)}
	for i := range r.Fields {
		for _, c := range r.Fields[i].Components {
			if len(c.Predictors) == 0 {
				continue
			}
			row := []string{printable(c.Name)}
			for _, name := range predictorNames {
				cell := "-"
				for _, p := range c.Predictors {
					if p.Name == name {
						cell = fmt.Sprintf("%.2f", p.Bits)
					}
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

//go:embed report.html.tmpl
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{"percent": percent}).Parse(pageText))

// pageReport is a report as the page shows it. Pictures are made by package chart, which escapes all names.
type pageReport struct {
	*Report
	Stacks     template.HTML
	FieldTable [][]string
	Fields     []pageField
}

type pageField struct {
	*Field
	Chart template.HTML
}

// Floor is the field's, where it has one.
func (f *pageField) Floor() float64 { return *f.FloorBits }

// HTML gives reports as one page that needs nothing else: no script, and nothing from elsewhere.
func HTML(reports []*Report) ([]byte, error) {
	var pages []pageReport
	for _, r := range reports {
		p := pageReport{Report: r, Stacks: picture(r.stacks().SVG()), FieldTable: r.fieldRows()}
		for i := range r.Fields {
			f := pageField{Field: &r.Fields[i]}
			if s := f.chart(); len(s.Rows) > 0 {
				f.Chart = picture(s.SVG())
			}
			p.Fields = append(p.Fields, f)
		}
		pages = append(pages, p)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, pages); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func picture(svg string) template.HTML {
	return template.HTML(svg)
}

// stacks draws the fields, as the engine packs them, as they were coded, and their floor.
func (r *Report) stacks() *chart.Stacks {
	full, coded, least := chart.Stack{Name: "full"}, chart.Stack{Name: "adaptive"}, chart.Stack{Name: "floor"}
	for i := range r.Fields {
		f := &r.Fields[i]
		full.Parts = append(full.Parts, chart.Part{Name: f.Name, Value: f.FullBits})
		coded.Parts = append(coded.Parts, chart.Part{Name: f.Name, Value: f.Bits})
		if f.FloorBits != nil {
			least.Parts = append(least.Parts, chart.Part{Name: f.Name, Value: max(0, *f.FloorBits)})
		}
	}
	coded.Parts = append(coded.Parts, chart.Part{Name: "frame count, whole bytes", Value: max(0, r.CountBits+r.RoundingBits)}, chart.Part{Name: "header", Value: r.HeaderBits})
	c := &chart.Stacks{Title: "Bits of a frame, by field", Unit: "bits", Rows: []chart.Stack{full, coded}}
	if r.FloorDistance > 0 {
		c.Rows = append(c.Rows, least)
	}
	return c
}

// chart draws what each predictor takes of each component.
func (f *Field) chart() *chart.Stacks {
	c := &chart.Stacks{Title: "Bits that each predictor alone would take, by component", Unit: "bits"}
	if len(f.Components) == 0 || len(f.Components[0].Predictors) == 0 {
		return c
	}
	for _, first := range f.Components[0].Predictors {
		row := chart.Stack{Name: first.Name}
		for k := range f.Components {
			for _, p := range f.Components[k].Predictors {
				if p.Name == first.Name {
					row.Parts = append(row.Parts, chart.Part{Name: f.Components[k].Name, Value: p.Bits})
				}
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}
