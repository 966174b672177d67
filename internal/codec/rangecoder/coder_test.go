package rangecoder_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// uniform is a table in which all symbols but 0 have this frequency.
func uniform(f uint16) *rangecoder.Table {
	var freq [rangecoder.Symbols]uint16
	for i := range freq {
		freq[i] = f
	}
	freq[0] += uint16(rangecoder.Scale - len(freq)*int(f))
	t := new(rangecoder.Table)
	t.Set(&freq)
	return t
}

const flat = rangecoder.Scale / rangecoder.Symbols

// decision is one outcome and how it is coded.
type decision struct {
	kind  int
	value uint64
	p0    uint32
	bits  uint
}

func (d decision) encode(e *rangecoder.Encoder, tables [2]*rangecoder.Table) {
	switch d.kind {
	case 0:
		e.BitNoRenorm(d.value == 1, d.p0)
		e.Renorm()
	case 1:
		e.Raw(d.value, d.bits)
	default:
		e.Symbol(tables[d.kind-2], int(d.value))
	}
}

func (d decision) decode(r *rangecoder.Decoder, tables [2]*rangecoder.Table) uint64 {
	switch d.kind {
	case 0:
		one := r.BitNoRenorm(d.p0)
		r.Renorm()
		if one {
			return 1
		}
		return 0
	case 1:
		return r.Raw(d.bits)
	}
	return uint64(r.Symbol(tables[d.kind-2]))
}

func decisions(r *rand.Rand, n int) []decision {
	out := make([]decision, n)
	for i := range out {
		d := decision{kind: r.IntN(4)}
		switch d.kind {
		case 0:
			d.p0 = []uint32{1, 5, 40000, rangecoder.Scale - 1}[r.IntN(4)]
			d.value = r.Uint64() & 1
		case 1:
			d.bits = r.UintN(65)
			d.value = r.Uint64()
			if r.IntN(2) == 0 {
				d.value = uint64(r.Int64() >> r.IntN(64) * -1)
			}
			if d.bits < 64 {
				d.value &= 1<<d.bits - 1
			}
		default:
			d.value = uint64(r.IntN(rangecoder.Symbols))
		}
		out[i] = d
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	tables := [2]*rangecoder.Table{uniform(5), uniform(flat)}
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		ds := decisions(r, rapid.IntRange(0, 200).Draw(t, "decisions"))
		free := rapid.UintMax(7).Draw(t, "free")
		shared := rapid.Byte().Draw(t, "shared") >> free << free
		before := []byte("before")
		head := before
		if free > 0 {
			head = append(head, shared)
		}
		var e rangecoder.Encoder
		e.Reset(head, free)
		for _, d := range ds {
			d.encode(&e, tables)
		}
		out := e.Finish()
		if !bytes.HasPrefix(out, before) {
			t.Fatalf("the buffer began with %q", out[:len(before)])
		}
		out = out[len(before):]
		if free > 0 && (len(out) == 0 || out[0]>>free != shared>>free) {
			t.Fatalf("%x is coded behind %d bits of %#x", out, 8-free, shared)
		}
		var dec rangecoder.Decoder
		dec.Reset(out, free)
		for i, d := range ds {
			if got := d.decode(&dec, tables); got != d.value {
				t.Fatalf("decision %d of %d: got %d, want %d", i, len(ds), got, d.value)
			}
		}
		if !dec.Complete() {
			t.Fatalf("% x is not complete", out)
		}
		for _, more := range [][]byte{{0}, {1}, {255}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}} {
			dec.Reset(append(out[:len(out):len(out)], more...), free)
			same := true
			for _, d := range ds {
				same = same && d.decode(&dec, tables) == d.value
			}
			if same && dec.Complete() {
				t.Fatalf("% x and % x more are complete as well", out, more)
			}
		}
	})
}

// TestSizes pins the sizes of likely and of equally likely decisions.
func TestSizes(t *testing.T) {
	var e rangecoder.Encoder
	e.Reset(nil, 0)
	for range 50 {
		e.BitNoRenorm(false, 65000)
		e.Renorm()
	}
	if out := e.Finish(); len(out) != 0 {
		t.Errorf("50 likely decisions take % x", out)
	}
	table := uniform(flat)
	e.Reset(nil, 0)
	for i := range 8000 {
		e.Symbol(table, i%rangecoder.Symbols)
	}
	if n := len(e.Finish()); n < 6000 || n > 6001 {
		t.Errorf("8000 symbols of 6 bits take %d bytes", n)
	}
}

func TestBadTables(t *testing.T) {
	for _, f := range []uint16{0, 1} {
		bad := [rangecoder.Symbols]uint16(slices.Repeat([]uint16{f}, rangecoder.Symbols))
		check.Panics(t, func() { new(rangecoder.Table).Set(&bad) })
	}
}

func FuzzDecoder(f *testing.F) {
	tables := [2]*rangecoder.Table{uniform(5), uniform(flat)}
	f.Add([]byte(nil), uint64(0))
	f.Add(bytes.Repeat([]byte{255}, 40), uint64(1))
	f.Add([]byte{0, 0, 0, 1}, uint64(2))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		ds := decisions(rand.New(rand.NewPCG(seed, 1)), 60)
		var dec rangecoder.Decoder
		dec.Reset(in, 0)
		var e rangecoder.Encoder
		e.Reset(nil, 0)
		for i := range ds {
			d := &ds[i]
			d.value = d.decode(&dec, tables)
			if d.kind == 1 && d.bits < 64 && d.value>>d.bits != 0 || d.kind != 1 && d.value >= rangecoder.Symbols {
				t.Fatalf("value %d of %+v", d.value, d)
			}
			d.encode(&e, tables)
		}
		out := e.Finish()
		if dec.Complete() && len(in) < len(out) {
			t.Fatalf("% x decodes to what is encoded as % x", in, out)
		}
		dec.Reset(out, 0)
		for i, d := range ds {
			if got := d.decode(&dec, tables); got != d.value {
				t.Fatalf("decision %d: got %d, want %d", i, got, d.value)
			}
		}
	})
}

// TestFalses checks that Falses encodes and adapts like Bit.
func TestFalses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prob := rapid.Custom(func(t *rapid.T) rangecoder.Prob {
			return rangecoder.Prob{P: rapid.Uint16Range(24, 65512).Draw(t, "p"), N: rapid.Uint16Max(rangecoder.MaxCount).Draw(t, "n")}
		})
		probs := rapid.SliceOfN(prob, 4, 4).Draw(t, "probabilities")
		slowest := rapid.Uint16Max(rangecoder.MaxCount).Draw(t, "slowest")
		one, all := rangecoder.NewCoder(slowest, false), rangecoder.NewCoder(slowest, false)
		one.Enc.Reset(nil, 0)
		all.Enc.Reset(nil, 0)
		want := slices.Clone(probs)
		for _, at := range rapid.SliceOf(rapid.SliceOf(rapid.Uint8Max(3))).Draw(t, "indices") {
			for _, i := range at {
				one.Bit(&want[i], false)
			}
			if all.Falses(probs, at); !slices.Equal(probs, want) {
				t.Fatalf("after %d: %v, want %v", at, probs, want)
			}
		}
		if got, want := all.Enc.Finish(), one.Enc.Finish(); !bytes.Equal(got, want) {
			t.Fatalf("encoded %x, want %x", got, want)
		}
	})
}
