package adaptive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
)

// keyed returns the fields with keys, so that priors know them.
func keyed(fields []adaptive.Field) []adaptive.Field {
	out := make([]adaptive.Field, len(fields))
	for i, f := range fields {
		f.Key = uint64(i + 1)
		out[i] = f
	}
	return out
}

// randomFrames returns n random frames.
func randomFrames(fields []adaptive.Field, seed uint64, n int) []*schema.Frame {
	r := rand.New(rand.NewPCG(seed, 7))
	frames := make([]*schema.Frame, n)
	var old *schema.Frame
	for i := range frames {
		frames[i] = randomFrame(r, fields, old)
		old = frames[i]
	}
	return frames
}

// trainedPrior returns a prior that knows allKinds.
func trainedPrior(t testing.TB) *adaptive.Prior {
	t.Helper()
	return mustTrain(t, adaptive.Training{}, adaptive.Recording{Fields: keyed(allKinds), RateHz: 30, Frames: randomFrames(allKinds, 1, 200)})
}

func TestParsePriorErrors(t *testing.T) {
	good := trainedPrior(t).Append(nil)
	for n := range len(good) {
		if _, err := adaptive.ParsePrior(good[:n]); !errors.Is(err, adaptive.ErrPrior) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	change := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"other file", change(0), "does not begin as one"},
		{"format", change(4), "of format 0 and model 3, this version reads 1 and 3: train it again"},
		{"model", change(5), "train it again"},
		{"damage", change(1000), "damaged"},
		{"hash", change(len(good) - 1), "damaged"},
		{"more", append(bytes.Clone(good), 0), "damaged"},
		{"huge", make([]byte, adaptive.MaxPrior+1), "bytes, want at most"},
		{"more inside", withHash(append(bytes.Clone(good[:len(good)-8]), 0)), "1 bytes too many"},
		{"less inside", withHash(bytes.Clone(good[:len(good)-9])), "cut off"},
		{"table", withHash(append(bytes.Clone(good[:7]), good[8:]...)), "frequencies"},
	} {
		if _, err := adaptive.ParsePrior(c.in); !errors.Is(err, adaptive.ErrPrior) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestPriorBombs checks that the encoded priors that expand the most in memory stay within the
// limit.
func TestPriorBombs(t *testing.T) {
	known := trainedPrior(t)
	whole := known.Append(nil)
	tables := whole[:len(whole)-8-len(known.Rest())]
	const room = 32
	fields := func(body []byte, values ...byte) []byte {
		body = append(body, make([]byte, adaptive.ParamKinds)...) // no kind has values
		n := (adaptive.MaxPrior - len(body) - room) / (8 + 1 + 1 + len(values))
		body = binary.AppendUvarint(body, uint64(n))
		for i := range n {
			body = binary.LittleEndian.AppendUint64(body, uint64(i+1))
			body = append(append(body, 0, byte(len(values))), values...)
		}
		return body
	}
	values := func(body []byte) []byte {
		n := adaptive.MaxPrior - len(body) - adaptive.ParamKinds - room
		return append(binary.AppendUvarint(body, uint64(n)), make([]byte, n+adaptive.ParamKinds)...)
	}
	for name, c := range map[string]struct {
		body []byte
		good bool
	}{
		"fields":                   {fields(bytes.Clone(tables)), true},
		"fields with one value":    {fields(bytes.Clone(tables), 7), true},
		"fields with three values": {fields(bytes.Clone(tables), 7, 7, 7), true},
		"values":                   {values(bytes.Clone(tables)), true},
		"missing values":           {append(bytes.Clone(tables), 0xff, 0xff, 0xff, 1), false},
	} {
		file := withHash(c.body)
		if len(file) > adaptive.MaxPrior {
			t.Fatalf("%s: %d bytes", name, len(file))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := adaptive.ParsePrior(file)
		runtime.ReadMemStats(&after)
		n := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d bytes, %.1f MiB", name, len(file), float64(n)/(1<<20))
		if (err == nil) != c.good || n > 60<<20 {
			t.Errorf("%s: %d bytes allocated for %d, error %v", name, n, len(file), err)
		}
	}
}

// withHash appends the hash of an encoded prior.
func withHash(body []byte) []byte {
	return binary.LittleEndian.AppendUint64(body, adaptive.PriorHash(body))
}

// FuzzParsePrior parses files of priors, with the right hash. A prior that is parsed must encode to
// the same bytes, and both ends of a stream must agree with it.
func FuzzParsePrior(f *testing.F) {
	fields := keyed(allKinds)
	frames := randomFrames(allKinds, 3, 40)
	seeds := [][]byte{adaptive.Generic().Append(nil), trainedPrior(f).Append(nil)}
	x := corpus.Target{Parser: "prior", Seeds: seeds, Inputs: 500, Check: func(t testing.TB, in []byte) {
		if len(in) < 8 {
			return
		}
		in = withHash(bytes.Clone(in[:len(in)-8]))
		p, err := adaptive.ParsePrior(in)
		if err != nil {
			return
		}
		if out := p.Append(nil); !bytes.Equal(in, out) {
			t.Fatalf("%x became %x", in, out)
		}
		agree(t, p, fields, frames)
	}}
	x.Run(f)
}

// agree sends frames, each coded against the third frame before it, to an end with the same prior,
// then random payloads.
func agree(t failer, p *adaptive.Prior, fields []adaptive.Field, frames []*schema.Frame) {
	t.Helper()
	m := p.Compile(fields)
	client, server := newEnd(m, fields, 64), newEnd(p.Compile(fields), fields, 64)
	out := newFrames(fields)
	for i, frame := range frames {
		base := uint64(max(0, i-3))
		if i >= 3 {
			client.state.Learn(base, client.known)
			server.state.Learn(base, server.known)
		}
		b := client.encode(nil, frames[i:i+1], uint64(i), base, i >= 3)
		if n, err := server.decode(out, b, uint64(i), base, i >= 3); err != nil || n != 1 {
			t.Fatalf("frame %d: %d frames, %v", i, n, err)
		}
		if !equal(out[0], frame) || !inRange(fields, out[0]) {
			t.Fatalf("frame %d is %v, want %v", i, out[0], frame)
		}
		for _, e := range []*end{client, server} {
			e.accept(uint64(i), frame)
		}
		if a, b := client.state.Hash(), server.state.Hash(); a != b {
			t.Fatalf("after frame %d the states differ: %x and %x", i, a, b)
		}
	}
	// What is decoded from random bytes is within range.
	server.state.Learn(uint64(len(frames)-1), server.known)
	r := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		junk := make([]byte, r.IntN(40))
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		n, err := server.decode(out, junk, uint64(len(frames)), uint64(len(frames)-1), true)
		for i := range n {
			if err == nil && !inRange(fields, out[i]) {
				t.Fatalf("%x is %v", junk, out[i])
			}
		}
	}
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestAnyPrior checks that every prior that can be parsed can be used, whatever its numbers are.
func TestAnyPrior(t *testing.T) {
	fields := keyed(allKinds)
	lengths := adaptive.ParamLengths(fields)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 5))
		p, err := adaptive.ParsePrior(adaptive.RandomPrior(r, fields, lengths))
		if err != nil {
			t.Fatalf("%v", err)
		}
		agree(t, p, fields, randomFrames(allKinds, seed, 100))
	})
}

// TestGenericPrior checks that the built-in prior has this version's parameters and knows no
// fields.
func TestGenericPrior(t *testing.T) {
	g := adaptive.Generic()
	if g.Fields() != 0 {
		t.Errorf("it knows %d fields", g.Fields())
	}
	if n := g.LengthMismatches(append(keyed(allKinds), keyed(vehicleFields)...)); len(n) != 0 {
		t.Errorf("parameters %v have other lengths: train it again", n)
	}
}
