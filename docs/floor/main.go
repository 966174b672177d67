// Command floor asks how few bits a frame of a trace could take:
//
//	go run ./docs/floor -distance N [-causal] TRACE
//
// It is no codec: it sees the whole trace, the frames after each one too, and sends nothing of what it has fitted. What it
// finds is what a codec of the same kind, a weighted sum of features with noise of a slowly changing width, would
// need if it knew all that in advance. With -causal the weights are fitted to the frames before each one alone, however
// long that takes, and widths come from the past: the shape of the noise and the chances of flags stay fitted in
// hindsight. See docs/codec.md.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"text/tabwriter"

	"github.com/uplink-rpc/uplink/trace"
)

func main() {
	distance := flag.Int("distance", 6, "frames between a frame and its baseline")
	causal := flag.Bool("causal", false, "fit weights to the frames before each one alone")
	flag.Parse()
	if flag.NArg() != 1 || *distance < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *distance, *causal); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(path string, distance int, causal bool) error {
	schema, err := trace.LoadSchema(trace.SchemaPath(path))
	if err != nil {
		return err
	}
	t, err := trace.Load(path, schema)
	if err != nil {
		return err
	}
	s := newSeries(t, distance)
	s.causal = causal
	if len(s.rows) < 4*(distance+margin) {
		return fmt.Errorf("%s: %d frames are too few for distance %d", path, len(s.rows), distance)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "field\tflags\tvalues\tboth\t")
	total := bill{}
	for i := range s.fields {
		f := &s.fields[i]
		b := s.price(f)
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t\n", f.name, b.flags, b.values, b.flags+b.values)
		total.flags += b.flags
		total.values += b.values
	}
	fmt.Fprintf(w, "all\t%.1f\t%.1f\t%.1f\t\n", total.flags, total.values, total.flags+total.values)
	return w.Flush()
}

// log2 of a magnitude in steps, defined at 0.
func log2(x float64) float64 { return math.Log2(math.Abs(x) + .3) }
