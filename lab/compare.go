package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/lab/internal/compare"
	"github.com/uplink-rpc/uplink/lab/internal/peer"
)

// ownTraces are the traces of the repository, relative to this folder.
const ownTraces = "../testdata/traces/*.csv.gz"

// seeds is the number of links with loss for each trace.
const seeds = 4

// timedLoss is the loss at which times are measured. At this loss adaptive sends redundant frames.
const timedLoss = 0.05

type compareOptions struct {
	cfg  compare.Config
	json bool
	out  string
}

func newCompareCommand() *cobra.Command {
	o := compareOptions{cfg: compare.Config{TimedLoss: timedLoss, Seeds: seeds}}
	cmd := &cobra.Command{
		Use:   "compare [TRACE...]",
		Short: "Compare the codecs with alternatives, on the frames of recorded play",
		RunE:  o.run,
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&o.out, "output", "", "directory for charts in SVG files; empty: none")
	cmd.Flags().IntVar(&o.cfg.Frames, "frames", 0, "use only this many frames of each trace; 0: all")
	return cmd
}

// comparison is the JSON output of compare.
type comparison struct {
	Traces  []*compare.Result `json:"traces"`
	Summary *compare.Summary  `json:"summary"`
}

func (o *compareOptions) run(cmd *cobra.Command, paths []string) error {
	if o.cfg.Frames != 0 && o.cfg.Frames < compare.MinFrames {
		return fmt.Errorf("--frames %d: want at least %d", o.cfg.Frames, compare.MinFrames)
	}
	if err := checkOutput(o.out); err != nil {
		return err
	}
	results, err := o.compare(cmd, paths)
	if err != nil {
		return err
	}
	s := compare.Summarize(results)
	if o.out != "" {
		if err := draw(o.out, s); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return emit(cmd, o.json, []comparison{{results, s}}, func(b *strings.Builder) { b.WriteString(tables(results, s)) })
}

// checkOutput returns an error if --output is not a directory.
func checkOutput(dir string) error {
	if _, err := os.Stat(dir); dir != "" && err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// compare runs all schemes on each trace. It returns an error if decoded frames differ from the
// sent ones.
func (o *compareOptions) compare(cmd *cobra.Command, paths []string) ([]*compare.Result, error) {
	if len(paths) == 0 {
		var err error
		if paths, err = filepath.Glob(ownTraces); err != nil || len(paths) == 0 {
			return nil, errors.New("no traces at " + ownTraces + ": run it in lab, or name some")
		}
	}
	o.cfg.Progress = func(trace, scheme string) { cmd.PrintErrf("%s: %s\n", trace, scheme) }
	var results []*compare.Result
	for _, path := range paths {
		t, err := trace.Load(path, nil)
		if err != nil {
			return nil, err
		}
		r, err := compare.Run(cmd.Context(), t, o.cfg)
		if err != nil {
			return nil, err
		}
		if n := r.Wrong(); n > 0 {
			return nil, fmt.Errorf("%s: %d frames differ from what was sent", t.Name, n)
		}
		results = append(results, r)
	}
	return results, nil
}

func draw(folder string, s *compare.Summary) error {
	bits := chart.Chart{
		Title: "Bits a delivered frame against loss, repeated until 99.9 % arrive in time", XUnit: "%", YUnit: "bits",
	}
	for _, loss := range s.Losses {
		bits.X = append(bits.X, 100*loss)
	}
	ns := chart.Bars{
		Title: "Nanoseconds a frame, nothing repeated, geometric mean of the traces", Unit: "ns", Names: []string{"encode", "decode"},
	}
	for _, m := range s.Means {
		if compare.Repeated(m.Name) {
			bits.Lines = append(bits.Lines, chart.Line{Name: m.Base(), Y: m.Bits})
			continue
		}
		ns.Rows = append(ns.Rows, chart.Row{Name: m.Name, Values: []float64{m.EncodeNs, m.DecodeNs}})
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "bench-bits.svg"), []byte(bits.SVG()), 0o644),
		os.WriteFile(filepath.Join(folder, "bench-ns.svg"), []byte(ns.SVG()), 0o644),
	)
}

const notes = `bits  payload in whole bytes and header of the message, over the frames delivered; no datagram, UDP or IP. The same
      frames, baselines, headers and losses for all: the second half of each trace, a round trip of 100 ms, the default
      ack rate, 4 links with loss. Means over traces are geometric.
arr.  share of the frames that arrive, with repetition before the deadline.
ns    of a frame sent and of a payload that arrived, fastest of several passes, at 5 % loss. One run: compare them with
      each other. Those of paper, rle and adaptive have acks, headers and learning in them, those of peers have not.
*     general-purpose. zstd and flate have dictionaries made of the first half of the trace, and quake3 a Huffman code.
      adaptive has the built-in prior, which was made of the repository's traces, both halves.
+     two sequence numbers of 32 bits a frame, a size inferred from the paper's 32-bit ack.
`

func tables(results []*compare.Result, s *compare.Summary) string {
	var b strings.Builder
	b.WriteString("equal delivery: bits a delivered frame by loss if 99.9 % are to arrive before the deadline, and ns a frame\n\n")
	table.Write(&b, append(meanTable(s, true), spanRow(s)))
	b.WriteString("\nnothing repeated: bits a delivered frame by loss, and ns a frame\n\n")
	table.Write(&b, meanTable(s, false))
	b.WriteString("\nbits a frame without loss\n\n")
	table.Write(&b, traceTable(results))
	b.WriteString("\nbits of adaptive over those of the general-purpose peer that is best at the trace and loss, both repeated or neither\n\n")
	table.Write(&b, ratioTable(s))
	b.WriteString("\n" + notes)
	return b.String()
}

// meanTable returns the table of the schemes with repetition, or without.
func meanTable(s *compare.Summary, repeated bool) [][]string {
	head := []string{""}
	for _, loss := range s.Losses {
		head = append(head, percent(loss), "arr.")
	}
	rows := [][]string{append(head, "encode ns", "decode ns")}
	for _, m := range s.Means {
		if compare.Repeated(m.Name) != repeated {
			continue
		}
		row := []string{label(m.Base(), m.Class)}
		for k := range s.Losses {
			row = append(row, fmt.Sprintf("%.1f", m.Bits[k]), fmt.Sprintf("%.2f %%", 100*m.Delivered[k]))
		}
		rows = append(rows, append(row, cells([]float64{m.EncodeNs, m.DecodeNs}, format("%.0f"))...))
	}
	return rows
}

// spanRow returns a row with the number of frames in the payloads of general-purpose peers.
func spanRow(s *compare.Summary) []string {
	row := []string{"frames a payload *"}
	for _, n := range s.Spans {
		row = append(row, fmt.Sprint(n), "")
	}
	return append(row, "", "")
}

// label returns the name of a scheme, with a mark for general-purpose peers and for paper.
func label(name string, class peer.Class) string {
	switch {
	case class == peer.General:
		return name + " *"
	case name == compare.Paper:
		return name + " +"
	}
	return name
}

func traceTable(results []*compare.Result) [][]string {
	rows := [][]string{{""}}
	for _, first := range results[0].Schemes {
		if !compare.Repeated(first.Name) {
			rows = append(rows, []string{label(first.Name, first.Class)})
		}
	}
	best := []string{"best *"}
	for _, r := range results {
		rows[0] = append(rows[0], r.Trace)
		at := 0
		for _, scheme := range r.Schemes {
			if !compare.Repeated(scheme.Name) {
				at++
				rows[at] = append(rows[at], fmt.Sprintf("%.1f", scheme.Points[0].Bits))
			}
		}
		best = append(best, r.Best(0, false).Name)
	}
	return append(rows, best)
}

func ratioTable(s *compare.Summary) [][]string {
	rows := [][]string{append([]string{""}, cells(s.Losses, percent)...)}
	for _, r := range s.Ratios {
		rows = append(rows, append([]string{r.Name}, cells(r.Loss, format("%.3f"))...))
	}
	return rows
}

func cells(values []float64, text func(float64) string) (out []string) {
	for _, v := range values {
		out = append(out, text(v))
	}
	return out
}

func format(verb string) func(float64) string {
	return func(v float64) string { return fmt.Sprintf(verb, v) }
}

func percent(loss float64) string { return fmt.Sprintf("%g %%", 100*loss) }
