// Package conformance tests another implementation of the protocols against this one. The other one
// is a process that speaks the line protocol of docs/spec/conformance.md.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// Peer is the implementation under test.
type Peer interface {
	// Ask sends a request and returns the response, both without line feed. An error ends the test:
	// the peer cannot be used any more.
	Ask(request string) (response string, err error)
}

// Options configure a test. Zero fields mean the defaults.
type Options struct {
	// Seed determines everything that is random.
	Seed uint64
	// Layers are the layers to test, from [protocol.Layers]; default all that the peer supports.
	Layers []string
	// Frames is the number of frames, snapshots or packets of each sequence; default 400.
	Frames int
	// Schemas is the number of random schemas and worlds of each layer; default 12.
	Schemas int
	// Progress, if not nil, is called when a row is complete.
	Progress func(Row)
}

// Report is the result of a test.
type Report struct {
	Peer string `json:"peer"`
	Rows []Row  `json:"rows"`
}

// Failed reports whether a check failed.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Failures > 0 })
}

// Row is the result of one layer, and one role if there are several.
type Row struct {
	Name     string `json:"name"`
	Checks   int    `json:"checks"`
	Failures int    `json:"failures"`
	// Skipped is the reason why the test of the row was not completed, or "".
	Skipped string `json:"skipped,omitempty"`
	// First are the first failures.
	First []string `json:"first,omitempty"`
}

const maxFirst = 3

// errUnsupported is the answer of a peer that lacks a feature.
var errUnsupported = errors.New("unsupported")

// errGiveUp ends a sequence if further checks would only repeat the failure.
var errGiveUp = errors.New("the sequence has failed")

// tester tests one row.
type tester struct {
	peer    Peer
	options *Options
	row     *Row
	rng     *rand.Rand
	pick    schematest.Picker
	where   string // current sequence, for failures
	handles int
}

// rows are all tests, in order.
var rows = []struct {
	layer, name string
	test        func(context.Context, *tester) error
}{
	{protocol.Values, "values", testValues},
	{protocol.RLE, "rle encode", encoderTest(protocol.RLE)},
	{protocol.RLE, "rle decode", decoderTest(protocol.RLE)},
	{protocol.Adaptive, "adaptive encode", encoderTest(protocol.Adaptive)},
	{protocol.Adaptive, "adaptive decode", decoderTest(protocol.Adaptive)},
	{protocol.Acks, "acks", testAcks},
	{protocol.Session, "session", testSession},
	{protocol.Snapshots, "snapshots", testSnapshots},
	{protocol.Areas, "areas", testAreas},
	{protocol.State, "state", testState},
}

// Run tests a peer. An error means that the peer's process failed; the report then contains the
// results so far.
func Run(ctx context.Context, peer Peer, o Options) (Report, error) {
	if o.Frames == 0 {
		o.Frames = 400
	}
	if o.Schemas == 0 {
		o.Schemas = 12
	}
	var report Report
	hello, err := peer.Ask("hello " + strconv.Itoa(protocol.Version))
	if err != nil {
		return report, err
	}
	words := strings.Fields(hello)
	if len(words) < 2 || words[0] != "ok" {
		return report, fmt.Errorf("the peer answers hello with %.80q, want ok, a name and layers", hello)
	}
	report.Peer = words[1]
	for i, r := range rows {
		if len(o.Layers) > 0 && !slices.Contains(o.Layers, r.layer) {
			continue
		}
		row := Row{Name: r.name}
		if !slices.Contains(words[2:], r.layer) {
			row.Skipped = "the peer does not have it"
		} else {
			rng := rand.New(rand.NewPCG(o.Seed, uint64(i)))
			t := &tester{peer: peer, options: &o, row: &row, rng: rng, pick: schematest.FromRand(rng)}
			err = r.test(ctx, t)
		}
		if errors.Is(err, errUnsupported) {
			row.Skipped, err = err.Error(), nil
		}
		report.Rows = append(report.Rows, row)
		if o.Progress != nil {
			o.Progress(row)
		}
		if err != nil {
			return report, fmt.Errorf("%s: %w", row.Name, err)
		}
		if err := ctx.Err(); err != nil {
			return report, err
		}
	}
	return report, nil
}

// check counts a check, and a failure if ok is false.
func (t *tester) check(ok bool, format string, args ...any) bool {
	t.row.Checks++
	if !ok {
		t.row.Failures++
		if len(t.row.First) < maxFirst {
			t.row.First = append(t.row.First, t.where+": "+fmt.Sprintf(format, args...))
		}
	}
	return ok
}

// ask sends a request of words and returns the words after ok. If the answer is drop, dropped is
// true and result is the reason. An answer of error is a failure, and ends the sequence.
func (t *tester) ask(words ...string) (result string, dropped bool, err error) {
	request := strings.Join(words, " ")
	response, err := t.peer.Ask(request)
	if err != nil {
		return "", false, err
	}
	word, rest, _ := strings.Cut(response, " ")
	switch word {
	case "ok":
		return rest, false, nil
	case "drop":
		return rest, true, nil
	case "unsupported":
		return "", false, fmt.Errorf("%w: %s", errUnsupported, words[0])
	}
	t.check(false, "%.200s is answered with %.200s", request, response)
	return "", false, errGiveUp
}

// must is ask for a request that the peer must accept.
func (t *tester) must(words ...string) (string, error) {
	result, dropped, err := t.ask(words...)
	if dropped {
		t.check(false, "%.200s is answered with drop %s", strings.Join(words, " "), result)
		err = errGiveUp
	}
	return result, err
}

// handle returns a new handle.
func (t *tester) handle() string {
	t.handles++
	return strconv.Itoa(t.handles)
}

// each runs a sequence several times, each with another random schema or world.
func (t *tester) each(ctx context.Context, what string, f func(n int) error) error {
	for n := range t.options.Schemas {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.where = fmt.Sprintf("%s %d", what, n)
		if err := f(n); err != nil && !errors.Is(err, errGiveUp) {
			return err
		}
	}
	return nil
}

// schema sends a schema to the peer and returns its handle.
func (t *tester) schema(s *schema.Schema) (string, error) {
	h := t.handle()
	if _, err := t.must("schema", h, s.RPC(), strconv.FormatFloat(s.RateHz(), 'g', -1, 64)); err != nil {
		return h, err
	}
	for _, f := range s.Fields() {
		if _, err := t.must(append([]string{"field", h}, protocol.Field(&f)...)...); err != nil {
			return h, err
		}
	}
	result, err := t.must("compile", h)
	if err != nil {
		return h, err
	}
	fingerprint, factors, _ := strings.Cut(result, " ")
	t.check(fingerprint == fmt.Sprintf("%016x", s.Fingerprint()), "fingerprint %s, want %016x, of %v", fingerprint, s.Fingerprint(), s.Fields())
	t.checkFactors(factors, s.PerTick())
	_, err = t.must("factors", h, protocol.Ints(s.PerTick()))
	return h, err
}

func (t *tester) checkFactors(word string, want []int64) {
	got, err := protocol.ParseInts[int64](word, 64)
	ok := err == nil && len(got) == len(want)
	for i := range got {
		ok = ok && max(got[i]-want[i], want[i]-got[i]) <= 1
	}
	t.check(ok, "factors %s, want %s", word, protocol.Ints(want))
}

// randomSchema returns a schema with random fields. The first ones have velocities.
func (t *tester) randomSchema(n int) *schema.Schema {
	if n > 1 {
		return t.pick.Schema()
	}
	s, err := schema.New("Drive", 60, []schema.Field{
		{Name: "Location", Kind: schema.KindVec3, Resolution: 0.01, Velocity: "Speed"},
		{Name: "Speed", Kind: schema.KindVec3, Resolution: 0.02},
		{Name: "Rotation", Kind: schema.KindQuat, Bits: 15, Velocity: "Spin"},
		{Name: "Spin", Kind: schema.KindVec3, Resolution: 0.001},
		{Name: "Wheel", Kind: schema.KindAngle, Bits: 12},
		{Name: "Buttons", Kind: schema.KindBits, Width: 16},
		{Name: "Gear", Kind: schema.KindInt, Width: 5},
		{Name: "Name", Kind: schema.KindBytes, Max: new(float64(12))},
	})
	if err != nil {
		panic(err)
	}
	return s
}

// Write prints a report as a table.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %10s %10s\n", "layer", "checks", "failures")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%-16s %10d %10d", row.Name, row.Checks, row.Failures)
		if row.Skipped != "" {
			fmt.Fprintf(&b, "  skipped: %s", row.Skipped)
		}
		b.WriteByte('\n')
	}
	for _, row := range r.Rows {
		for _, f := range row.First {
			fmt.Fprintf(&b, "\n%s: %s\n", row.Name, f)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
