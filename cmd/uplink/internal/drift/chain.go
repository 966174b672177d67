package drift

import (
	"math"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// chain runs both schemes side by side. Frame n is coded against frame n-distance.
type chain struct {
	schema   *schema.Schema
	distance int
	n        int // frames so far
	frame    *schema.Frame
	enc      *rpcdelta.Encoder
	dec      *rpcdelta.Decoder
	acks     []rpcdelta.Ack // of the last frames, by number modulo distance
	fields   []field
	restored []float64
	coded    []byte
}

// field is a field that has a step.
type field struct {
	name string
	at   int // number in the schema
	step float64
	turn float64 // 360 for an angle, else 0
	// sent and rebuilt are the values of the last frames at the client and at the server, by number modulo distance.
	sent, rebuilt [][]float64
	literal, ours []sum // of each frame
}

// sum is the errors of some values.
type sum struct {
	total, largest float64
	count          int
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

// step takes the row that r read last.
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

// deliver sends the current frame through encoder and decoder and gives what came out.
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

// paper codes values as the paper says and gives the errors of what its server rebuilds.
func (f *field) paper(values []float64, n, distance int) sum {
	sent, rebuilt := f.sent[n%distance], f.rebuilt[n%distance]
	for k, v := range values {
		if n < distance {
			rebuilt[k] = f.quantized(v) // a full frame
		} else {
			rebuilt[k] += f.quantized(f.wrap(v - sent[k]))
		}
		sent[k] = v
	}
	return f.difference(rebuilt, values)
}

// quantized is v in whole steps.
func (f *field) quantized(v float64) float64 { return math.Floor(v/f.step+0.5) * f.step }

// wrap takes an angle's difference the short way round.
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
		s.largest = max(s.largest, e)
	}
	return s
}
