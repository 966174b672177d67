package analysis

import (
	"bytes"
	_ "embed" // the page
	"html/template"

	"github.com/uplink-rpc/uplink/internal/lab/chart"
)

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
