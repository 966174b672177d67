// Command floor asks how few bits a frame of a trace could take:
//
//	go run ./docs/floor -distance N [-causal] TRACE
//
// See internal/floor, and docs/codec.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/uplink-rpc/uplink/internal/floor"
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
	bills, err := floor.Price(t, distance, causal, nil)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "field\tflags\tvalues\tboth\t")
	total := floor.Bill{}
	for _, b := range bills {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t\n", b.Field, b.Flags, b.Values, b.Flags+b.Values)
		total.Flags += b.Flags
		total.Values += b.Values
	}
	fmt.Fprintf(w, "all\t%.1f\t%.1f\t%.1f\t\n", total.Flags, total.Values, total.Flags+total.Values)
	return w.Flush()
}
