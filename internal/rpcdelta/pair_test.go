package rpcdelta

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// variant is a codec with its redundancy and prior.
type variant struct {
	codec      Codec
	redundancy int
	trained    bool // it has a prior of its own
}

var variants = []variant{{codec: RLE}, {Adaptive, RedundancyOff, false}, {Adaptive, RedundancyAuto, false}, {Adaptive, 3, false}, {Adaptive, 2, true}}

func (v variant) String() string {
	s := fmt.Sprint(v.codec, " ", v.redundancy)
	if v.trained {
		s += " trained"
	}
	return s
}

// prior returns the prior of the streams.
func (v variant) prior() *prior.Prior {
	if v.trained {
		return smallPrior()
	}
	return nil
}

// encoder sets the variant in a config.
func (v variant) encoder(c EncoderConfig) EncoderConfig {
	c.Codec, c.Redundancy, c.Prior = v.codec, v.redundancy, v.prior()
	return c
}

// stream sets the variant in a config.
func (v variant) stream(c streamConfig) streamConfig {
	c.Codec, c.Redundancy, c.Prior = v.codec, v.redundancy, v.prior()
	return c
}

// forVariants runs a test with each variant.
func forVariants(t *testing.T, f func(t *testing.T, v variant)) {
	t.Helper()
	for i := 0; i < len(variants); i += thin(2) {
		t.Run(variants[i].String(), func(t *testing.T) { f(t, variants[i]) })
	}
}

// forSingles runs a test with the variants that send one frame per payload.
func forSingles(t *testing.T, f func(t *testing.T, v variant)) {
	t.Helper()
	for _, v := range variants[:2] {
		t.Run(v.String(), func(t *testing.T) { f(t, v) })
	}
}

// thin returns a step for iterating over all cases of a test; with -short it is larger, so most
// cases are skipped. A step that is coprime to the dimensions covers each value of each dimension.
func thin(step int) int {
	if testing.Short() {
		return step
	}
	return 1
}

// failer is a *testing.T, *testing.B or *rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// must fails a test if there is an error.
func must(t failer, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// pair is an encoder and a decoder without a network between them.
type pair struct {
	s         *schema.Schema
	enc       *Encoder
	dec       *Decoder
	frame     *schema.Frame // the next to send
	delivered *schema.Frame
	payload   []byte
	ack       []byte
}

func newPair(t failer, s *schema.Schema, ec EncoderConfig, dc DecoderConfig) *pair {
	t.Helper()
	enc, err := NewEncoder(s, ec)
	must(t, err)
	dc.PeerRing = ec.Ring
	if dc.Codec == 0 {
		dc.Codec = ec.Codec
	}
	if dc.Prior == nil {
		dc.Prior = ec.Prior
	}
	dec, err := NewDecoder(s, dc)
	must(t, err)
	p := &pair{s: s, enc: enc, dec: dec, frame: s.NewFrame(), delivered: s.NewFrame()}
	schematest.FromRand(rand.New(rand.NewPCG(0, 0))).Frame(s, p.frame, p.delivered)
	return p
}

// send encodes the next payload.
func (p *pair) send(t failer) Info {
	var info Info
	var err error
	if p.payload, info, err = p.enc.AppendFrame(p.payload[:0], p.frame); err != nil {
		t.Helper()
		t.Fatal(err)
	}
	return info
}

// receive decodes the last payload, whose newest frame must arrive unchanged.
func (p *pair) receive(t failer) Delivery {
	t.Helper()
	out, err := p.dec.Decode(p.payload)
	if err != nil || len(out) == 0 {
		t.Fatalf("%d deliveries, %v", len(out), err)
	}
	d := out[len(out)-1]
	if !d.Frame.Equal(p.frame) {
		t.Fatalf("got %v, want %v", d.Frame, p.frame)
	}
	p.delivered.CopyFrom(d.Frame)
	return d
}

// acknowledge passes the decoder's ack to the encoder.
func (p *pair) acknowledge(t failer) Ack {
	t.Helper()
	p.ack = p.dec.AppendAck(p.ack[:0])
	a, rest, err := ParseAck(p.ack)
	if err != nil || len(rest) != 0 {
		t.Fatalf("ack %x: %v, %d bytes left", p.ack, err, len(rest))
	}
	must(t, p.enc.Ack(a))
	return a
}

// exchange sends a frame, receives it and acknowledges it.
func (p *pair) exchange(t failer) Info {
	t.Helper()
	info := p.send(t)
	p.receive(t)
	p.acknowledge(t)
	return info
}

// restart replaces the decoder by a new one.
func (p *pair) restart(t failer) {
	t.Helper()
	var err error
	p.dec, err = NewDecoder(p.s, p.dec.cfg)
	must(t, err)
}

// header returns the header of the last payload.
func (p *pair) header(t failer) wire.Header {
	t.Helper()
	h, err := wire.Parse(p.payload)
	must(t, err)
	return h
}

// sendMarked sends n frames, whose first component is their sequence, and returns the payloads.
func (p *pair) sendMarked(t failer, n int) (payloads [][]byte) {
	t.Helper()
	for range n {
		p.frame.Ints[0] = int32(p.enc.next)
		p.send(t)
		payloads = append(payloads, slices.Clone(p.payload))
	}
	return payloads
}

// arrival is a payload that arrives at a decoder, with the result.
type arrival struct {
	payload int
	frames  []uint64 // their sequences
	late    bool     // an error without DeliverLate
	missed  uint64
	err     error
}

// arrive decodes payloads of sendMarked and checks the results.
func (p *pair) arrive(t failer, payloads [][]byte, arrivals []arrival) {
	t.Helper()
	for _, a := range arrivals {
		if a.late && !p.dec.cfg.DeliverLate {
			a.frames, a.err = nil, ErrLate
		}
		out, err := p.dec.Decode(payloads[a.payload])
		if !errors.Is(err, a.err) || len(out) != len(a.frames) {
			t.Fatalf("%+v: %+v, %v", a, out, err)
		}
		for i, d := range out {
			if d.Seq != a.frames[i] || d.Late != a.late || d.Missed != a.missed || d.Frame.Ints[0] != int32(d.Seq) {
				t.Fatalf("%+v: %+v of %v", a, d, d.Frame)
			}
			a.missed = 0
		}
	}
}
