// Package drift compares the error of this project with that of the article's scheme, implemented
// literally.
//
// The article quantizes the difference of two floats. The server adds it to its previous restored
// value, but the client computes it from its previous exact value. So the rounding errors of a
// chain of frames add up. This project quantizes values first, so differences are exact.
package drift

import (
	"errors"
	"io"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Result is the result of one trace.
type Result struct {
	Trace    string  `json:"trace"` // set by the caller
	Frames   int     `json:"frames"`
	RateHz   float64 `json:"rate_hz"`
	Distance int     `json:"distance"`
	Fields   []Field `json:"fields"`
}

// Field contains the errors of one numeric field, over all its values.
type Field struct {
	Name string `json:"name"`
	// Step is the field's resolution, in degrees for an angle.
	Step  float64 `json:"step"`
	Spans []Span  `json:"spans"`
}

// Span contains the errors of the frames of one second.
type Span struct {
	// Until is the end of the second, in seconds from the start of the trace.
	Until float64 `json:"until_s"`
	// Article is the error of the article's scheme, QuantizeFirst the error of this project. Both
	// are in the unit of the value.
	Article       Error `json:"article"`
	QuantizeFirst Error `json:"quantize_first"`
}

// Error contains the mean and the maximum of absolute differences.
type Error struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Run reads all frames from r and encodes each against the frame distance before it. It skips
// fields that are not numbers with a resolution, because the article does not define them.
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
	length := float64(c.n) / rate
	ends := slices.DeleteFunc([]float64{1, 10}, func(until float64) bool { return until >= length })
	ends = append(ends, length)
	res := &Result{Frames: c.n, RateHz: rate, Distance: c.distance}
	for _, f := range c.fields {
		out := Field{Name: f.name, Step: f.step}
		for _, until := range ends {
			from, to := int(math.Round((until-1)*rate)), int(math.Round(until*rate))
			from, to = max(from, 0), min(to, c.n)
			out.Spans = append(out.Spans, Span{until, summary(f.literal[from:to]), summary(f.ours[from:to])})
		}
		res.Fields = append(res.Fields, out)
	}
	return res
}

func summary(errs []sum) Error {
	var all sum
	for _, e := range errs {
		all.total += e.total
		all.count += e.count
		all.max = max(all.max, e.max)
	}
	if all.count == 0 {
		return Error{}
	}
	return Error{Mean: all.total / float64(all.count), Max: all.max}
}

// chain runs both schemes in parallel. Frame n is coded against frame n-distance.
type chain struct {
	schema   *schema.Schema
	distance int
	n        int // number of frames so far
	frame    *schema.Frame
	enc      *rpcdelta.Encoder
	dec      *rpcdelta.Decoder
	acks     []rpcdelta.Ack // acks of the last frames, by frame number modulo distance
	fields   []field
	restored []float64
	coded    []byte
}

// field is a field with a resolution.
type field struct {
	name string
	at   int // index in the schema
	step float64
	turn float64 // 360 for an angle, else 0
	// sent and rebuilt are the values of the last frames at the client and at the server, by frame
	// number modulo distance.
	sent, rebuilt [][]float64
	literal, ours []sum // errors of each frame
}

type sum struct {
	total, max float64
	count      int
}

func newChain(s *schema.Schema, distance int) (*chain, error) {
	enc, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{Ring: rpcdelta.MaxRing, PeerRing: rpcdelta.MaxRing})
	if err != nil {
		return nil, err
	}
	dec, err := rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{Ring: rpcdelta.MaxRing})
	if err != nil {
		return nil, err
	}
	c := &chain{schema: s, distance: distance, frame: s.NewFrame(), enc: enc, dec: dec, acks: make([]rpcdelta.Ack, distance)}
	for i := range s.Fields() {
		if f, ok := newField(&s.Fields()[i], distance); ok {
			f.at = i
			c.fields = append(c.fields, f)
		}
	}
	return c, nil
}

func newField(f *schema.Field, distance int) (field, bool) {
	d := field{name: f.Name}
	switch f.Kind {
	case schema.KindVec2, schema.KindVec3, schema.KindScalar:
		d.step = f.Resolution
	case schema.KindAngle:
		d.step, d.turn = math.Ldexp(360, -f.Bits), 360
	default:
		return d, false
	}
	d.sent, d.rebuilt = make([][]float64, distance), make([][]float64, distance)
	for i := range distance {
		d.sent[i], d.rebuilt[i] = make([]float64, f.Values()), make([]float64, f.Values())
	}
	return d, true
}

// step processes the row that r has read last.
func (c *chain) step(r *trace.Reader) error {
	got, err := c.deliver()
	if err != nil {
		return err
	}
	for i := range c.fields {
		f := &c.fields[i]
		values := r.Floats(f.at)
		f.literal = append(f.literal, f.paper(values, c.n, c.distance))
		c.restored = c.schema.RestoreField(c.restored[:0], got, f.at)
		f.ours = append(f.ours, f.difference(c.restored, values))
	}
	c.n++
	return nil
}

// deliver sends the current frame through encoder and decoder and returns the decoded frame.
func (c *chain) deliver() (*schema.Frame, error) {
	slot := &c.acks[c.n%c.distance]
	if c.n >= c.distance {
		if err := c.enc.Ack(*slot); err != nil {
			return nil, err
		}
	}
	var err error
	if c.coded, _, err = c.enc.AppendFrame(c.coded[:0], c.frame); err != nil {
		return nil, err
	}
	got, err := c.dec.Decode(c.coded)
	if err != nil {
		return nil, err
	}
	*slot, _, err = rpcdelta.ParseAck(c.dec.AppendAck(nil))
	return got[0].Frame, err
}

// paper encodes values with the article's scheme and returns the errors at the server.
func (f *field) paper(values []float64, n, distance int) sum {
	sent, rebuilt := f.sent[n%distance], f.rebuilt[n%distance]
	for k, v := range values {
		if n < distance {
			rebuilt[k] = f.quantized(v) // the first frame is sent in full
		} else {
			rebuilt[k] += f.quantized(f.wrap(v - sent[k]))
		}
		sent[k] = v
	}
	return f.difference(rebuilt, values)
}

func (f *field) quantized(v float64) float64 { return math.Floor(v/f.step+0.5) * f.step }

// wrap returns the equivalent difference of angles with the smallest magnitude.
func (f *field) wrap(d float64) float64 {
	if f.turn == 0 {
		return d
	}
	return math.Remainder(d, f.turn)
}

func (f *field) difference(got, want []float64) sum {
	s := sum{count: len(got)}
	for k := range got {
		e := math.Abs(f.wrap(got[k] - want[k]))
		s.total += e
		s.max = max(s.max, e)
	}
	return s
}
