package rpcdelta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/schema"
)

// near reports whether two sums of fractions are equal except for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// checkSums checks the invariants of a profile.
func checkSums(t failer, p *inspect.Profile) {
	t.Helper()
	sum, full := p.CountBits+p.RoundingBits, uint64(0)
	for i := range p.Fields {
		f := &p.Fields[i]
		sum, full = sum+f.Bits, full+f.FullBits
		bits := f.FlagBits
		for k := range f.Components {
			c := &f.Components[k]
			bits += c.Bits
			n, residuals := c.Held, uint64(0)
			for _, x := range c.Predictors {
				n += x
			}
			for _, x := range c.Residuals {
				residuals += x
			}
			if n != p.Coded || residuals > n-c.Held {
				t.Fatalf("component %d of %s: %+v over %d frames", k, f.Name, *c, p.Coded)
			}
		}
		if bytes := f.Kind == schema.KindFixed || f.Kind == schema.KindBytes; bits > f.Bits+1e-6 || !bytes && !near(bits, f.Bits) {
			t.Fatalf("%s has %v bits, its parts %v", f.Name, f.Bits, bits)
		}
	}
	if !near(sum, p.PayloadBits) || full != p.FullBits {
		t.Fatalf("parts of %v are %v, of %d are %d", p.PayloadBits, sum, p.FullBits, full)
	}
}

// checkSame checks that both ends measured the same.
func checkSame(t failer, a, b *inspect.Profile) {
	t.Helper()
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Fatalf("one end measured\n%+v\nthe other\n%+v", a, b)
	}
}

// profiles checks the profiles of both ends of a stream.
type profiles struct {
	s        *schema.Schema
	sent     []*inspect.Profile // by packet number, and one for the next payload
	dec      *inspect.Profile   // of the last payload that arrived
	payloads *inspect.Profile   // at the decoder, added up
}

func newProfiles(s *schema.Schema, e *Encoder) *profiles {
	x := &profiles{s: s, sent: []*inspect.Profile{inspect.NewProfile(s)}, payloads: inspect.NewProfile(s)}
	e.Measure(x.sent[0])
	return x
}

// made checks the encoder's profile of a payload.
func (x *profiles) made(t failer, e *Encoder, i *Info) {
	t.Helper()
	p := x.sent[len(x.sent)-1]
	checkPayload(t, p, i, i.Held+1, i.FullBits)
	x.sent = append(x.sent, inspect.NewProfile(x.s))
	e.Measure(x.sent[len(x.sent)-1])
}

func (x *profiles) arrives(d *Decoder) {
	x.dec = inspect.NewProfile(x.s)
	d.Measure(x.dec)
}

// decoded checks the decoder's profile of a payload.
func (x *profiles) decoded(t failer, number uint64, out []Delivery) {
	t.Helper()
	if len(out) == 0 {
		checkSame(t, inspect.NewProfile(x.s), x.dec)
		return
	}
	full := 0
	for _, d := range out {
		full += d.FullBits
	}
	checkPayload(t, x.dec, &out[len(out)-1].Info, len(out), full)
	q := *x.sent[number]
	// The ends count new frames differently.
	q.Frames, q.FullBits, q.Fields = x.dec.Frames, x.dec.FullBits, slices.Clone(q.Fields)
	for k := range q.Fields {
		q.Fields[k].FullBits = x.dec.Fields[k].FullBits
	}
	checkSame(t, &q, x.dec)
	x.payloads.Add(x.dec)
}

// checkPayload checks the profile of one payload with the given number of new frames.
func checkPayload(t failer, p *inspect.Profile, i *Info, frames, full int) {
	t.Helper()
	checkSums(t, p)
	if p.Payloads != 1 || p.Frames != uint64(frames) || p.Coded != uint64(i.Redundant+1) || p.FullBits != uint64(full) ||
		p.HeaderBits != uint64(i.HeaderBits) || p.PayloadBits != float64(i.PayloadBits) || p.RoundingBits >= 8 {
		t.Fatalf("%+v of %+v, which brings %d frames of %d bits", p, i, frames, full)
	}
}

// TestProfileBothEnds checks that the profiles of both ends agree with each other and with the Info
// of each payload on any link. Dropped payloads do not count.
func TestProfileBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schematest.FromRapid(t).Schema()
		x := newStream(t, s, streamConfig{
			Seed: rapid.Uint64().Draw(t, "seed"), Codec: rapid.SampledFrom(Codecs()).Draw(t, "codec"),
			Redundancy: rapid.IntRange(RedundancyOff, MaxRedundancy).Draw(t, "redundancy"), RPC: rapid.IntRange(0, 20).Draw(t, "rpc"),
			AckEvery: rapid.IntRange(1, 30).Draw(t, "ack every"), Every: rapid.IntRange(-MaxHeld, MaxHeld).Draw(t, "every"),
			Up:          linkConfig{Delay: 3, Jitter: rapid.IntRange(0, 10).Draw(t, "jitter"), Loss: float64(rapid.IntRange(0, 40).Draw(t, "loss")) / 100, Duplicate: 0.1},
			Down:        linkConfig{Delay: 3},
			DeliverLate: rapid.Bool().Draw(t, "deliver late"),
		})
		x.profiles = newProfiles(s, x.enc)
		x.run(t, 200/thin(2))
		checkSums(t, x.profiles.payloads)
		if got := x.profiles.payloads.Frames; got != x.delivered {
			t.Fatalf("%d frames are measured of %d", got, x.delivered)
		}
	})
}

// TestProfileShares checks that bits are counted where changes are, and that residuals and
// predictors match the values.
func TestProfileShares(t *testing.T) {
	forVariants(t, func(t *testing.T, v variant) {
		s := mustSchema(t, schema.Field{Name: "Still", Kind: schema.KindVec3, Resolution: 1}, schema.Field{Name: "B", Kind: schema.KindFixed, Size: 8},
			schema.Field{Name: "Noise", Kind: schema.KindVec2, Resolution: 1}, schema.Field{Name: "Turn", Kind: schema.KindQuat}, schema.Field{Name: "N", Kind: schema.KindUint, Width: 8})
		p := newPair(t, s, v.encoder(EncoderConfig{}), DecoderConfig{})
		enc, dec := inspect.NewProfile(s), inspect.NewProfile(s)
		p.enc.Measure(enc)
		p.dec.Measure(dec)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range 300 {
			p.frame.Ints[3], p.frame.Ints[4] = int32(rng.IntN(1000)), int32(rng.IntN(1000))
			p.send(t)
			p.receive(t)
			if i%3 == 0 {
				p.acknowledge(t)
			}
		}
		checkSums(t, dec)
		checkSame(t, enc, dec)
		noise := &dec.Fields[2]
		for i := range dec.Fields {
			if f := &dec.Fields[i]; f != noise && f.Bits >= noise.Bits || v.codec == Adaptive && noise.Bits < 0.85*dec.PayloadBits {
				t.Errorf("of %v bits the noise has %v, %s %v", dec.PayloadBits, noise.Bits, f.Name, f.Bits)
			}
		}
		for _, c := range noise.Components {
			large := uint64(0)
			for _, n := range c.Residuals[7:11] {
				large += n
			}
			if large < dec.Coded*2/3 || c.Held > dec.Coded/20 {
				t.Errorf("%+v", c)
			}
		}
		for _, c := range dec.Fields[0].Components {
			if v.codec == Adaptive && c.Held < dec.Coded*9/10 {
				t.Errorf("%+v", c)
			}
		}
		if n := len(dec.Fields[3].Components); n != 3 || dec.Fields[3].Kind != schema.KindQuat || dec.Fields[3].Name != "Turn" {
			t.Errorf("%d components of %+v", n, dec.Fields[3])
		}
		before := *dec
		p.enc.Measure(nil)
		p.dec.Measure(nil)
		p.exchange(t)
		if dec.Payloads != before.Payloads || enc.PayloadBits != before.PayloadBits {
			t.Error("a payload is measured after the end")
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a profile of another schema is accepted")
				}
			}()
			p.dec.Measure(inspect.NewProfile(mustSchema(t, schema.Field{Name: "A", Kind: schema.KindBool})))
		}()
	})
}

// TestProfileHostile checks that the parts of any payload that a decoder accepts add up.
func TestProfileHostile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := schematest.FromRapid(t)
		s := pick.Schema()
		codec := rapid.SampledFrom(Codecs()).Draw(t, "codec")
		p := newPair(t, s, EncoderConfig{Codec: codec, Redundancy: 2}, DecoderConfig{DeliverLate: true})
		all := inspect.NewProfile(s)
		p.dec.Measure(all)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 60 {
			pick.Walk(s, p.frame)
			p.send(t)
			if rng.IntN(3) == 0 && len(p.payload) > 0 {
				p.payload[rng.IntN(len(p.payload))] ^= 1 << rng.IntN(8)
			}
			before := all.Frames
			out, _ := p.dec.Decode(p.payload)
			if all.Frames != before+uint64(len(out)) {
				t.Fatalf("%d frames are measured of %d", all.Frames-before, len(out))
			}
			checkSums(t, all)
			_ = p.enc.Ack(mustAck(t, p.dec.AppendAck(nil)))
		}
	})
}

func mustAck(t failer, b []byte) Ack {
	t.Helper()
	a, _, err := ParseAck(b)
	must(t, err)
	return a
}
