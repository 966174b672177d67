// Package drift measures the error that the paper's scheme accumulates when it is taken at its word, beside this
// project's.
//
// At its word: floats are subtracted and their difference is quantized; the server adds it to the float that it rebuilt
// before, the client subtracts from the float that it sent. What quantizing the difference cut off stays in the
// server's value, and the next frame of the chain adds to it. Here values are quantized first, so that differences are
// exact.
package drift

import (
	"errors"
	"io"
	"math"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// Result is what one trace came to.
type Result struct {
	Trace    string  `json:"trace"` // for whoever ran it to say
	Frames   int     `json:"frames"`
	RateHz   float64 `json:"rate_hz"`
	Distance int     `json:"distance"`
	Fields   []Field `json:"fields"`
}

// Field is the errors of one numeric field, all its values together.
type Field struct {
	Name string `json:"name"`
	// Step is the field's resolution; in degrees for an angle.
	Step  float64 `json:"step"`
	Spans []Span  `json:"spans"`
}

// Span is the errors of the frames of one second.
type Span struct {
	// Until is the end of the second, in seconds from the start of the trace.
	Until float64 `json:"until_s"`
	// Literal is the error of the paper's scheme, Ours that of this project's. Both are in the value's unit.
	Literal Error `json:"literal"`
	Ours    Error `json:"ours"`
}

// Error is the mean and the largest of absolute differences.
type Error struct {
	Mean    float64 `json:"mean"`
	Largest float64 `json:"largest"`
}

// Run reads all frames from r, and codes each against the one distance before it. Fields that are no numbers with a
// step, as the paper's scheme has no rule for them, are left out.
func Run(r *trace.Reader, s *schema.Schema, distance int) (*Result, error) {
	c, err := newChain(s, distance)
	if err != nil {
		return nil, err
	}
	for {
		switch err := r.Read(c.frame); {
		case errors.Is(err, io.EOF):
			return c.result(), nil
		case err != nil:
			return nil, err
		}
		if err := c.step(r); err != nil {
			return nil, err
		}
	}
}

func (c *chain) result() *Result {
	rate := c.schema.RateHz()
	res := &Result{Frames: c.n, RateHz: rate, Distance: c.distance}
	for _, f := range c.fields {
		out := Field{Name: f.name, Step: f.step}
		for _, until := range seconds(float64(c.n) / rate) {
			from, to := int(math.Round((until-1)*rate)), int(math.Round(until*rate))
			from, to = max(from, 0), min(to, c.n)
			out.Spans = append(out.Spans, Span{until, summary(f.literal[from:to]), summary(f.ours[from:to])})
		}
		res.Fields = append(res.Fields, out)
	}
	return res
}

// seconds is the ends of the seconds to show, of a trace of so many.
func seconds(length float64) []float64 {
	var ends []float64
	for _, until := range []float64{1, 10} {
		if until < length {
			ends = append(ends, until)
		}
	}
	return append(ends, length)
}

func summary(errs []sum) Error {
	var all sum
	for _, e := range errs {
		all.total += e.total
		all.count += e.count
		all.largest = max(all.largest, e.largest)
	}
	if all.count == 0 {
		return Error{}
	}
	return Error{Mean: all.total / float64(all.count), Largest: all.largest}
}
