package analysis

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/table"
)

// Report is the result of one trace, and the JSON output of the command. Bits are means per frame.
type Report struct {
	Trace  string  `json:"trace"`
	Frames int     `json:"frames"`
	RateHz float64 `json:"rate_hz"`
	// Run describes the distance between frames and their baselines.
	Run string `json:"run"`
	// FullBits is the size of full frames. PayloadBits is the size with the adaptive codec: the sum
	// of all fields, of CountBits for the number of frames in a payload, and of RoundingBits to
	// whole bytes.
	FullBits     float64 `json:"full_bits"`
	HeaderBits   float64 `json:"header_bits"`
	PayloadBits  float64 `json:"payload_bits"`
	CountBits    float64 `json:"count_bits"`
	RoundingBits float64 `json:"rounding_bits"`
	// FloorDistance is the distance to the baseline for FloorBits, or 0 if the trace is too short.
	FloorDistance int     `json:"floor_distance"`
	Fields        []Field `json:"fields"`
}

// Field contains the bits of one field.
type Field struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	FullBits float64 `json:"full_bits"`
	Bits     float64 `json:"bits"`
	FlagBits float64 `json:"flag_bits"`
	// FloorBits is an estimate of the minimum, at most Bits; see docs/design/codec.md. It is nil
	// for byte strings and short traces.
	FloorBits  *float64    `json:"floor_bits,omitempty"`
	Components []Component `json:"components,omitempty"`
}

// Component contains the bits of one component.
type Component struct {
	Name string  `json:"name"`
	Bits float64 `json:"bits"`
	// Held is the share of frames in which the component equaled its reference. Zeros is the share
	// of exact predictions among frames with a residual.
	Held  float64 `json:"held"`
	Zeros float64 `json:"zeros"`
	// Used contains the share of each predictor of the codec.
	Used []Share `json:"used,omitempty"`
	// Predictors contains the result of using each other predictor exclusively, the cheapest first.
	Predictors []Predictor `json:"predictors,omitempty"`
}

// Share is a named share, 0 to 1.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Predictor is the result of one predictor for a component, over all frames with a baseline. It has
// the residuals in steps, and the Bits of a flag plus, if the component changed, of an ideal
// adaptive code ([ideal]). All models learn only from frames that both ends know.
type Predictor struct {
	Name string  `json:"name"`
	Bits float64 `json:"bits"`
	Stats
}

// Best returns the predictor with the fewest bits, or nil.
func (c *Component) Best() *Predictor {
	if len(c.Predictors) == 0 {
		return nil
	}
	return &c.Predictors[0]
}

func (c *Component) predictor(name string) *Predictor {
	if i := slices.IndexFunc(c.Predictors, func(p Predictor) bool { return p.Name == name }); i >= 0 {
		return &c.Predictors[i]
	}
	return nil
}

const textNotes = `bits   a frame, on average: full as the engine packs it; bits of the codec adaptive, flags those of them that say what changed;
       floor: an estimate of what the field needs if more is known than a receiver can know, at most what the codec needs.
held   share of frames in which the component was said to be as its reference; used: the codec's predictors of the rest.
best   of the predictors that were tried, each alone, and its residuals, in steps, over all frames: mean magnitude, and
       magnitudes that 50, 90 and 99 % are not above; the share of zeros; the entropy of the values.
each   predictor: what it would take alone, flags included, in an ideal adaptive code; hold is the plain difference.
`

// Text formats reports as tables.
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

// printable removes control characters from a name.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func (r *Report) fieldRows() [][]string {
	rows := [][]string{{"field", "kind", "full", "bits", "of it flags", "share", "floor"}}
	floor, all := 0.0, r.FloorDistance > 0
	for i := range r.Fields {
		f := &r.Fields[i]
		least := "-"
		if f.FloorBits != nil {
			least, floor = fmt.Sprintf("%.1f", *f.FloorBits), floor+*f.FloorBits
		} else {
			all = false
		}
		rows = append(rows, table.Row("%s|%s|%.1f|%.1f|%.1f|%s|%s",
			printable(f.Name), f.Kind, f.FullBits, f.Bits, f.FlagBits, r.share(f.Bits), least))
	}
	sum := "-"
	if all {
		sum = fmt.Sprintf("%.1f", floor)
	}
	return append(
		rows, table.Row("frame count|||%.1f||%s|", r.CountBits, r.share(r.CountBits)),
		table.Row("whole bytes|||%.1f||%s|", r.RoundingBits, r.share(r.RoundingBits)),
		table.Row("payload||%.1f|%.1f||%s|%s", r.FullBits, r.PayloadBits, r.share(r.PayloadBits), sum),
		table.Row("header|||%.1f|||", r.HeaderBits),
	)
}

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
	row := table.Row("%s|%.2f|%.1f %%|%s", printable(c.Name), c.Bits, 100*c.Held, used)
	best := c.Best()
	if best == nil {
		return append(row, "-", "", "", "", "", "", "")
	}
	return append(row, table.Row("%s|%.1f|%.0f|%.0f|%.0f|%.1f %%|%.2f",
		best.Name, best.Mean, best.P50, best.P90, best.P99, 100*best.Zeros, best.Entropy)...)
}

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
				if p := c.predictor(name); p != nil {
					cell = fmt.Sprintf("%.2f", p.Bits)
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

// pageReport is a report for the page. Package chart draws its pictures and escapes all names.
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

// Floor returns the field's FloorBits, which must not be nil.
func (f *pageField) Floor() float64 { return *f.FloorBits }

// HTML formats reports as one page without scripts and external resources.
func HTML(reports []*Report) ([]byte, error) {
	var pages []pageReport
	for _, r := range reports {
		p := pageReport{Report: r, Stacks: template.HTML(r.stacks().SVG()), FieldTable: r.fieldRows()}
		for i := range r.Fields {
			f := pageField{Field: &r.Fields[i]}
			if s := f.chart(); len(s.Rows) > 0 {
				f.Chart = template.HTML(s.SVG())
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

func (f *Field) chart() *chart.Stacks {
	c := &chart.Stacks{Title: "Bits that each predictor alone would take, by component", Unit: "bits"}
	if len(f.Components) == 0 || len(f.Components[0].Predictors) == 0 {
		return c
	}
	for _, first := range f.Components[0].Predictors {
		row := chart.Stack{Name: first.Name}
		for k := range f.Components {
			if p := f.Components[k].predictor(first.Name); p != nil {
				row.Parts = append(row.Parts, chart.Part{Name: f.Components[k].Name, Value: p.Bits})
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}
