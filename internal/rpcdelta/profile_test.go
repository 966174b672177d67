package rpcdelta

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// near reports whether two sums of fractions are equal except for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// checkSums checks the invariants of a profile.
func checkSums(t failer, p *Profile) {
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

// TestProfileBothEnds checks that the profiles of both ends agree with each other and with the Info
// of each payload, and that dropped payloads do not count.
func TestProfileBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := schematest.FromRapid(t)
		s := pick.Schema()
		p := newPair(t, s, EncoderConfig{
			Codec: Codecs()[pick(1)], Redundancy: int(pick.Between(RedundancyOff, MaxRedundancy)), RPC: int(pick(20)),
		}, DecoderConfig{DeliverLate: pick(1) == 0})
		p.dec.cfg.RPC = p.enc.cfg.RPC
		var payloads [][]byte
		var sent []*Profile
		for range 60 {
			pick.Walk(s, p.frame)
			if pick(3) == 0 && p.enc.Held() < MaxHeld-1 {
				must(t, p.enc.Hold(p.frame))
				continue
			}
			enc, dec := NewProfile(s), NewProfile(s)
			p.enc.Measure(enc)
			info := p.send(t)
			checkPayload(t, enc, &info, info.Held+1, info.FullBits)
			payloads, sent = append(payloads, slices.Clone(p.payload)), append(sent, enc)
			p.dec.Measure(dec)
			arrived := max(0, len(sent)-1-int(pick(3)))
			out, _ := p.dec.Decode(payloads[arrived])
			full := 0
			for _, d := range out {
				full += d.FullBits
			}
			want := NewProfile(s)
			if len(out) > 0 {
				checkPayload(t, dec, &out[len(out)-1].Info, len(out), full)
				want.Add(sent[arrived])
				// The ends count new frames differently.
				want.Frames, want.FullBits = dec.Frames, dec.FullBits
				for k := range want.Fields {
					want.Fields[k].FullBits = dec.Fields[k].FullBits
				}
			}
			if !reflect.DeepEqual(want, dec) {
				t.Fatalf("one end measured\n%+v\nthe other\n%+v", want, dec)
			}
			if pick(1) == 0 {
				p.acknowledge(t)
			}
		}
	})
}

// checkPayload checks the profile of one payload with the given number of new frames.
func checkPayload(t failer, p *Profile, i *Info, frames, full int) {
	t.Helper()
	checkSums(t, p)
	if p.Payloads != 1 || p.Frames != uint64(frames) || p.Coded != uint64(i.Redundant+1) || p.FullBits != uint64(full) ||
		p.HeaderBits != uint64(i.HeaderBits) || p.PayloadBits != float64(i.PayloadBits) || p.RoundingBits >= 8 {
		t.Fatalf("%+v of %+v, which brings %d frames of %d bits", p, i, frames, full)
	}
}

// TestProfileShares checks that bits are counted where changes are, that residuals and predictors
// match the values, and that a profile of another schema panics.
func TestProfileShares(t *testing.T) {
	forVariants(t, func(t *testing.T, v variant) {
		s := mustSchema(t, schema.Field{Name: "Still", Kind: schema.KindVec3, Resolution: 1}, schema.Field{Name: "B", Kind: schema.KindFixed, Size: 8},
			schema.Field{Name: "Noise", Kind: schema.KindVec2, Resolution: 1}, schema.Field{Name: "Turn", Kind: schema.KindQuat})
		p := newPair(t, s, v.encoder(EncoderConfig{}), DecoderConfig{})
		dec := NewProfile(s)
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
		before := dec.Payloads
		p.dec.Measure(nil)
		if p.exchange(t); dec.Payloads != before {
			t.Error("a payload is measured after the end")
		}
		defer func() {
			if recover() == nil {
				t.Error("a profile of another schema is accepted")
			}
		}()
		p.dec.Measure(NewProfile(mustSchema(t, s.Fields()[1:]...)))
	})
}

// TestProfileAdd checks that Add covers all fields of a profile.
func TestProfileAdd(t *testing.T) {
	s, err := schema.New("Test", 60, []schema.Field{{Name: "A", Kind: schema.KindVec2, Resolution: 1}})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(n uint64) *Profile {
		p := NewProfile(s)
		var set func(v reflect.Value)
		set = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					set(v.Field(i))
				}
			case reflect.Slice, reflect.Array:
				for i := range v.Len() {
					set(v.Index(i))
				}
			case reflect.Uint64:
				v.SetUint(n)
			case reflect.Float64:
				v.SetFloat(float64(n))
			case reflect.String:
			default:
				t.Fatalf("a profile has a %v", v.Type())
			}
		}
		set(reflect.ValueOf(p).Elem())
		return p
	}
	sum := fill(7)
	sum.Add(fill(3))
	if want := fill(10); !reflect.DeepEqual(sum, want) {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

// TestPredictorNames checks that each predictor has its own name.
func TestPredictorNames(t *testing.T) {
	seen := map[string]bool{"": true}
	for i := range cost.Predictors {
		if n := PredictorName(i); seen[n] {
			t.Errorf("predictor %d is %q", i, n)
		} else {
			seen[n] = true
		}
	}
}
