// Package corpus runs fuzz targets from the inputs in testdata/fuzz, which the targets of both
// languages share, and mutates these inputs in the gate.
package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/repo"
)

// Target is a fuzz target of a parser.
type Target struct {
	// Parser names the directory of the corpus in testdata/fuzz, and the target in native/fuzz.
	Parser string
	// Seeds are inputs in addition to the corpus.
	Seeds [][]byte
	// Inputs is the number of random inputs per run in the gate.
	Inputs int
	// Generate returns a random input that is not derived from another one. Half of the random
	// inputs come from it, unless it is nil.
	Generate func(r *rand.Rand) []byte
	// Check parses an input and fails the test if the parser misbehaves. It must not modify the
	// input.
	Check func(t testing.TB, in []byte)
	// Results returns the results of the parser for an input as one line, which must be equal to
	// that of the C++ target. It may be nil.
	Results func(t testing.TB, in []byte) string
}

// Run runs the target on its seeds, its corpus and, with go test -fuzz, the inputs of the fuzzer.
//
// If the environment variable UPLINK_FUZZ is set, the target runs on Inputs random inputs first, or
// on UPLINK_FUZZ of them if that is above 1. They depend on the seed UPLINK_FUZZ_SEED, by default a
// random one. An input that fails is stored in the corpus.
//
// If UPLINK_FUZZ_WRITE is the name of a directory, random inputs are not run but written to
// PARSER/N there, each with its results in PARSER/N.results.
func (x *Target) Run(f *testing.F) {
	f.Helper()
	directory := filepath.Join(repo.Root(f), "testdata", "fuzz", x.Parser)
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("%s has no corpus: %v", directory, err)
	}
	inputs := x.Seeds
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		inputs = append(inputs, in)
	}
	for _, in := range inputs {
		f.Add(in)
	}
	if n := os.Getenv("UPLINK_FUZZ"); n != "" && flag.Lookup("test.fuzz").Value.String() == "" {
		if n, _ := strconv.Atoi(n); n > 1 {
			x.Inputs = n
		}
		x.random(f, directory, inputs)
	}
	f.Fuzz(func(t *testing.T, in []byte) { x.Check(t, in) })
}

func (x *Target) random(f *testing.F, directory string, inputs [][]byte) {
	f.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("UPLINK_FUZZ_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	var in []byte
	n, done := 0, false
	to := os.Getenv("UPLINK_FUZZ_WRITE")
	defer func() {
		if done {
			return
		}
		sum := sha256.Sum256(in)
		file := filepath.Join(directory, hex.EncodeToString(sum[:8]))
		if err := os.WriteFile(file, in, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Fprintf(os.Stderr, "%s: random input %d of UPLINK_FUZZ_SEED=%d failed, see %s\n", f.Name(), n, seed, file)
	}()
	for ; n < x.Inputs; n++ {
		if x.Generate != nil && n%2 == 1 {
			in = x.Generate(r)
		} else {
			in = Mutate(r, inputs)
		}
		if to == "" {
			x.Check(f, in)
		} else if x.Results != nil {
			x.write(f, filepath.Join(to, x.Parser, strconv.Itoa(n)), in)
		}
	}
	done = !f.Failed()
	f.Logf("UPLINK_FUZZ_SEED=%d: %d inputs", seed, n)
}

// write writes an input and its results.
func (x *Target) write(f *testing.F, file string, in []byte) {
	f.Helper()
	for name, data := range map[string][]byte{file: in, file + ".results": []byte(x.Results(f, in) + "\n")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(name, data, 0o644)); err != nil {
			f.Fatal(err)
		}
	}
}

// Hash is the hash of the values that a parser returned: FNV-1a over 32-bit numbers, low byte
// first.
type Hash uint64

// Add adds numbers.
func (h *Hash) Add(numbers ...int32) {
	if *h == 0 {
		*h = 14695981039346656037
	}
	for _, v := range numbers {
		for i := range 4 {
			*h = (*h ^ Hash(byte(v>>(8*i)))) * 1099511628211
		}
	}
}

// Mutate returns an input with one to eight random changes of one of the inputs.
func Mutate(r *rand.Rand, inputs [][]byte) []byte {
	in := bytes.Clone(inputs[r.IntN(len(inputs))])
	for range 1 << r.IntN(4) {
		in = change(r, in, inputs[r.IntN(len(inputs))])
	}
	return in
}

// edges are boundary values of bytes: parsers often compare with them.
var edges = []byte{0, 1, 2, 0x3f, 0x40, 0x7e, 0x7f, 0x80, 0x81, 0xc0, 0xfe, 0xff}

// change returns an input with one change; other is another input.
func change(r *rand.Rand, in, other []byte) []byte {
	at := r.IntN(len(in) + 1)
	n := min(1+r.IntN(1<<r.IntN(6)), len(in)-at)
	from := other[r.IntN(len(other)+1):]
	from = from[:min(len(from), 1+r.IntN(1<<r.IntN(8)))]
	switch kind := r.IntN(8); {
	case kind == 0 || n == 0: // insert
		return append(in[:at:at], append(bytes.Clone(from), in[at:]...)...)
	case kind == 1: // remove
		return append(in[:at:at], in[at+n:]...)
	case kind == 2: // flip a bit
		in[at] ^= 1 << r.IntN(8)
	case kind == 3:
		in[at] = edges[r.IntN(len(edges))]
	case kind == 4: // count up or down
		in[at] += byte(r.IntN(9) - 4)
	case kind == 5: // replace by a part of another input
		copy(in[at:], from)
	case kind == 6: // repeat
		return append(in[:at+n:at+n], in[at:]...)
	default: // random bytes
		for i := range in[at : at+n] {
			in[at+i] = byte(r.Uint32())
		}
	}
	return in
}
