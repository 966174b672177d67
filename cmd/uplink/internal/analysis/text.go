package analysis

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/internal/lab/table"
)

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
