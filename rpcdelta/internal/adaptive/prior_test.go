package adaptive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

// keyed gives each field a key, so that priors know them.
func keyed(fields []adaptive.Field) []adaptive.Field {
	out := make([]adaptive.Field, len(fields))
	for i, f := range fields {
		f.Key = uint64(i + 1)
		out[i] = f
	}
	return out
}

// wander is a run of random rows.
func randomRows(fields []adaptive.Field, seed uint64, n int) []*adaptive.Row {
	r := rand.New(rand.NewPCG(seed, 7))
	rows := make([]*adaptive.Row, n)
	var old *adaptive.Row
	for i := range rows {
		rows[i] = randomRow(r, fields, old)
		old = rows[i]
	}
	return rows
}

func mustTrain(t testing.TB, cfg adaptive.Training, recs ...adaptive.Recording) *adaptive.Prior {
	t.Helper()
	p, err := adaptive.Train(recs, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// trainedPrior knows the fields of everything.
func trainedPrior(t testing.TB) *adaptive.Prior {
	t.Helper()
	return mustTrain(t, adaptive.Training{}, adaptive.Recording{Fields: keyed(allKinds), RateHz: 30, Rows: randomRows(allKinds, 1, 200)})
}

// The same recordings give the same prior on every platform.
func TestTrainGolden(t *testing.T) {
	recs := []adaptive.Recording{
		{Fields: keyed(vehicleFields), RateHz: 60, Rows: smoothRows(700)},
		{Fields: keyed(allKinds), RateHz: 30, Rows: randomRows(allKinds, 1, 500)},
	}
	scratch, refined := mustTrain(t, adaptive.Training{}, recs...), mustTrain(t, adaptive.Training{From: adaptive.Generic()}, recs...)
	const want, wantRefined = 0xe11a10413fff8a6e, 0xfd13f92249cac1d1
	if scratch.Hash() != want || refined.Hash() != wantRefined {
		t.Errorf("from nothing %#x, from the generic prior %#x; want %#x and %#x", scratch.Hash(), refined.Hash(), uint64(want), uint64(wantRefined))
	}
	if n := scratch.Fields(); n != len(allKinds) { // their keys are the same numbers
		t.Errorf("%d fields", n)
	}
	if g := mustTrain(t, adaptive.Training{Generic: true}, recs...); g.Fields() != 0 {
		t.Errorf("a generic prior knows %d fields", g.Fields())
	}
}

func TestTrainOnLittle(t *testing.T) {
	rows := smoothRows(300)
	for _, n := range []int{0, 1, 2, 6, 7, 30} {
		p := mustTrain(t, adaptive.Training{From: adaptive.Generic()}, adaptive.Recording{Fields: keyed(vehicleFields), RateHz: 60, Rows: rows[:n]})
		if _, err := adaptive.ParsePrior(p.Append(nil)); err != nil {
			t.Errorf("%d frames: %v", n, err)
		}
	}
	stop := errors.New("stop")
	_, err := adaptive.Train([]adaptive.Recording{{Fields: vehicleFields, RateHz: 60, Rows: smoothRows(3000)}}, adaptive.Training{Progress: func(float64) error { return stop }})
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

// TestTrainingPays codes what the prior was trained on, and what goes on like it.
func TestTrainingPays(t *testing.T) {
	rows := smoothRows(2000)
	p := mustTrain(t, adaptive.Training{From: adaptive.Generic()}, adaptive.Recording{Fields: keyed(vehicleFields), RateHz: 60, Rows: rows[:1000]})
	size := func(p *adaptive.Prior, rows []*adaptive.Row) (total int) {
		e := newEnd(p.Compile(keyed(vehicleFields), 60), vehicleFields, 64)
		for i := 6; i < len(rows); i++ {
			e.learn(uint64(i-6), rows[i-6])
			total += len(e.encode(nil, rows[i:i+1], uint64(i), uint64(i-6), true))
		}
		return total
	}
	for _, c := range []struct {
		name string
		rows []*adaptive.Row
		most float64
	}{{"beginning", rows[1000:1100], 0.9}, {"whole", rows[1000:], 0.99}} {
		if a, b := size(adaptive.Generic(), c.rows), size(p, c.rows); float64(b) > c.most*float64(a) {
			t.Errorf("%s: %d bytes with the generic prior, %d with the trained one", c.name, a, b)
		}
	}
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
		{"format", change(4), "of format 0 and model 2, this version reads 1 and 2: train it again"},
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

// resealed appends the hash of a body.
func withHash(body []byte) []byte {
	return binary.LittleEndian.AppendUint64(body, adaptive.PriorHash(body))
}

// FuzzParsePrior takes the beginning of a file's tables and what follows them:
// what is parsed is written again as it was, and both ends of a stream agree with
// it.
func FuzzParsePrior(f *testing.F) {
	fields := keyed(allKinds)
	known := trainedPrior(f)
	whole := known.Append(nil)
	tables := whole[:len(whole)-8-len(known.Rest())]
	f.Add([]byte(nil), adaptive.Generic().Rest())
	f.Add(tables[6:100], known.Rest())
	f.Add([]byte{1, 0xc0, 0xff, 3}, []byte{0, 0, 0, 0, 0})
	rows := randomRows(allKinds, 3, 40)
	f.Fuzz(func(t *testing.T, front, rest []byte) {
		in := bytes.Clone(tables)
		copy(in[6:], front)
		in = withHash(append(in, rest...))
		p, err := adaptive.ParsePrior(in)
		if err != nil {
			return
		}
		if out := p.Append(nil); !bytes.Equal(in, out) {
			t.Fatalf("%x became %x", in, out)
		}
		agree(t, p, fields, rows)
	})
}

// agree sends rows, each against the third one before it, to an end with the same
// prior.
func agree(t failer, p *adaptive.Prior, fields []adaptive.Field, rows []*adaptive.Row) {
	t.Helper()
	m := p.Compile(fields, 30)
	client, server := newEnd(m, fields, 64), newEnd(p.Compile(fields, 30), fields, 64)
	out := newRows(fields)
	for i, row := range rows {
		base := uint64(max(0, i-3))
		if i >= 3 {
			client.state.Learn(base, client.known)
			server.state.Learn(base, server.known)
		}
		b := client.encode(nil, rows[i:i+1], uint64(i), base, i >= 3)
		if n, err := server.decode(out, b, uint64(i), base, i >= 3); err != nil || n != 1 {
			t.Fatalf("frame %d: %d rows, %v", i, n, err)
		}
		if !equal(out[0], row) || !inRange(fields, out[0]) {
			t.Fatalf("frame %d is %v, want %v", i, out[0], row)
		}
		for _, e := range []*end{client, server} {
			e.accept(uint64(i), row)
		}
		if a, b := client.state.Hash(), server.state.Hash(); a != b {
			t.Fatalf("after frame %d the states differ: %x and %x", i, a, b)
		}
	}
	// Whatever comes, it is within range.
	server.state.Learn(uint64(len(rows)-1), server.known)
	r := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		junk := make([]byte, r.IntN(40))
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		n, err := server.decode(out, junk, uint64(len(rows)), uint64(len(rows)-1), true)
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

// Any prior that can be read will do, whatever its numbers are.
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
		agree(t, p, fields, randomRows(allKinds, seed, 100))
	})
}

// The built-in prior is of this version's pieces, and knows no game.
func TestGenericPrior(t *testing.T) {
	g := adaptive.Generic()
	if g.Fields() != 0 {
		t.Errorf("it knows %d fields", g.Fields())
	}
	if n := g.LengthMismatches(append(keyed(allKinds), keyed(vehicleFields)...)); len(n) != 0 {
		t.Errorf("pieces %v have other lengths: train it again", n)
	}
}
