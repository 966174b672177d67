package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/trace"
)

type benchOptions struct {
	traceFlags
	cfg        bench.Config
	prior, svg string
}

func newBenchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench TRACE...",
		Short: "Count the bits of recorded play over a simulated link",
		Long: `bench sends recorded play through encoder, simulated link and decoder in virtual time, and counts bits. Frames are
sent at the schema's rate. The server acks on its ticks, whose phase relative to the frames is uniformly distributed.
The link delays by half the RTT in each direction, and loses frames and acks alike.

A trace is a .csv or .csv.gz file with its schema in NAME.schema.json, or a capture: the longest play in it. Codecs:

  paper     rle with the article's own header: two 32-bit sequence numbers per frame and 32 bits per ack (the article
            does not state the size of its sequence numbers; it is inferred from its 32-bit ack)
  rle       the article's scheme with this project's headers
  adaptive  prediction and a range coder with models that learn; the default of client and server

With --distance there is no link: each frame is encoded against the one this many before it.

For long-run means, use many links and frames: --seeds 20 --frames 1000000 --warmup 10s. Nothing is timed then.`,
		Example: `  uplink bench portal2_coop_60hz.csv.gz
  uplink bench --rtt 150ms --jitter 10ms --loss 5% --burst 3 portal2_coop_60hz.csv.gz
  uplink bench --codec rle --list 40 --loss 10% portal2_coop_60hz.csv.gz
  uplink bench --distance 6 --codec rle --json portal2_coop_60hz.csv.gz rocketleague_solo_30hz.csv.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.cfg.Prior, err = loadPrior(o.prior); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	o.add(f, eachUsage)
	addRun(f, &o.cfg, &o.prior, "payload of adaptive")
	addSuiteFlag(f, &o.cfg.Suite)
	f.IntVar(&o.cfg.Seeds, "seeds", 1, "number of links, with consecutive seeds; nothing is timed if more than 1")
	f.IntVar(&o.cfg.Frames, "frames", 0, "frames to count over all seeds; the trace repeats; 0: the trace once per seed")
	f.DurationVar(&o.cfg.Warmup, "warmup", 0, "time at the start of each run that is not counted")
	f.Var((*presets)(&o.cfg.Presets), "preset", "presets of adaptive to compare: low-latency, balanced, low-bandwidth or all")
	f.Float64Var(&o.cfg.DownlinkHz, "downlink", 0, "datagrams per second of the server that acks are piggybacked on; 0: acks have datagrams of their own")
	f.IntVar(&o.cfg.SendEvery, "send-every", 1, "new frames per payload of adaptive (batching)")
	f.IntVar(&o.cfg.List, "list", 0, "list this many frames at the start, with their parts; of rle and paper")
	f.StringSliceVar(&o.cfg.Schemes, "codec", bench.Schemes(), "codecs to compare")
	f.BoolVar(&o.cfg.Fields, "fields", false, "show the bits of adaptive by field")
	f.StringVar(&o.svg, "svg", "", "with --fields: write a chart to this file")
	return cmd
}

func (o *benchOptions) check(cmd *cobra.Command) error {
	if err := checkDistance(cmd, o.cfg.Distance); err != nil {
		return err
	}
	if len(o.cfg.Presets) > 0 && cmd.Flags().Changed("suite") {
		return errors.New("--suite: leave it out with --preset, which sets it for adaptive")
	}
	if o.svg != "" && !o.cfg.Fields {
		return errors.New("--svg: it needs --fields")
	}
	if o.cfg.Fields && (o.cfg.Seeds > 1 || o.cfg.Frames > 0 || o.cfg.Warmup > 0) {
		return errors.New("--fields: leave out --seeds, --frames and --warmup")
	}
	if o.cfg.Fields && !slices.Contains(o.cfg.Schemes, rpcdelta.Adaptive.String()) {
		return errors.New("--fields: it needs adaptive among --codec")
	}
	return o.cfg.Validate()
}

func (o *benchOptions) run(cmd *cobra.Command, paths []string) error {
	results, err := measureAll(cmd, paths, o.load, func(t *trace.Trace, p *progress) (*bench.Result, error) {
		cfg := o.cfg
		cfg.Progress = func(scheme string, done float64) { p.show(t.Name+" "+scheme, done) }
		return bench.Run(cmd.Context(), t, cfg)
	})
	if err != nil {
		return err
	}
	if err := writeFile("svg", o.svg, []byte(fieldsChart(results).SVG())); err != nil {
		return err
	}
	return emit(cmd.OutOrStdout(), o.json, results, func(b *strings.Builder) { o.writeTables(b, results) })
}

func (o *benchOptions) writeTables(b *strings.Builder, results []*bench.Result) {
	for _, r := range results {
		fmt.Fprintf(b, "%s: %d frames at %g Hz, %.0f s; %s\n\n", r.Trace, r.Frames, r.RateHz, float64(r.Frames)/r.RateHz, o.runText())
		for i := range r.Codecs {
			if c := &r.Codecs[i]; len(c.Listed) > 0 {
				table.Write(b, listTable(c))
				b.WriteByte('\n')
			}
		}
		table.Write(b, benchTable(r))
		for _, c := range r.Codecs {
			if len(c.Fields) > 0 {
				b.WriteByte('\n')
				table.Write(b, fieldsTable(&c))
			}
			if c.Undecodable > 0 {
				fmt.Fprintf(b, "%s: %d payloads could not be decoded\n", nameOf(&c), c.Undecodable)
			}
		}
		b.WriteByte('\n')
	}
	if len(results) > 1 {
		table.Write(b, meansTable(results))
		b.WriteByte('\n')
	}
	if o.cfg.List > 0 {
		b.WriteString(listNotes)
	}
	b.WriteString(benchNotes)
}

// runText describes the configuration of a run.
func (o *benchOptions) runText() string {
	c := &o.cfg
	text := c.String()
	switch {
	case c.Seeds > 1 && c.Distance == 0:
		text += fmt.Sprintf(", seeds %d to %d", c.Link.Seed, c.Link.Seed+uint64(c.Seeds)-1)
	case c.Distance == 0:
		text += fmt.Sprintf(", seed %d", c.Link.Seed)
	}
	text += "; " + suiteText(c.Suite)
	if len(c.Presets) > 0 {
		text += ", presets with the suite of each"
	}
	if c.Prior != nil {
		text += fmt.Sprintf(", prior %v", c.Prior)
	}
	if c.Frames != 0 {
		text += fmt.Sprintf("; %d frames in all, the trace repeated", c.Frames)
	}
	if c.Warmup != 0 {
		text += fmt.Sprintf("; without the first %v of each", c.Warmup)
	}
	return text
}

// nameOf returns the name of a preset, or of a codec without one.
func nameOf(c *bench.Counts) string { return cmp.Or(c.Preset, c.Name) }

// listTable returns two rows of headings and one row per listed frame.
func listTable(c *bench.Counts) [][]string {
	rows := [][]string{
		{"frame", "base-", "numbers", "XORed", "run-length", "bits", "", "", "", ""},
		{"of " + nameOf(c), "line", "bits", "bytes", "bytes", "payload", "header", "sum", "full", "arrived"},
	}
	for _, l := range c.Listed {
		baseline, arrived := "none", "lost"
		if l.Baseline != nil {
			baseline = fmt.Sprint(*l.Baseline)
		}
		if l.Arrived {
			arrived = "yes"
		}
		rows = append(rows, table.Row("%d|%s|%d|%d|%d|%d|%d|%d|%d|%s", l.Seq, baseline, l.NumberBits, l.XORBytes, l.RLEBytes,
			l.PayloadBits, l.HeaderBits, l.PayloadBits+l.HeaderBits, l.FullBits, arrived))
	}
	return rows
}

const listNotes = `frame, baseline: sequence numbers; without a baseline, a frame is sent in full. payload is the numbers, less those of the
       baseline, in whole bytes, and the run-length code of the other fields, XORed with those of the baseline; full
       is the frame as an engine packs it.
`

// fieldsTable returns the bits of each field.
func fieldsTable(c *bench.Counts) [][]string {
	rows := [][]string{{"field of " + nameOf(c), "full", "payload", "share"}}
	line := func(name string, full, bits float64) []string {
		return table.Row("%s|%.1f|%.1f|%.1f %%", name, full, bits, 100*bits/max(c.PayloadBits, 1e-9))
	}
	var full, sum float64
	for _, f := range c.Fields {
		full, sum = full+f.FullBits, sum+f.PayloadBits
		rows = append(rows, line(f.Name, f.FullBits, f.PayloadBits))
	}
	return append(rows, line("whole bytes, frame count", 0, c.PayloadBits-sum), line("all", full, c.PayloadBits))
}

// fieldsChart returns a chart of the bits of each field, for all traces.
func fieldsChart(results []*bench.Result) *chart.Stacks {
	c := &chart.Stacks{Title: "Bits per frame by field: packed by an engine, and in payloads of adaptive", Unit: "bits"}
	for _, r := range results {
		for _, s := range r.Codecs {
			if len(s.Fields) == 0 {
				continue
			}
			full, coded := chart.Stack{Name: r.Trace}, chart.Stack{Name: nameOf(&s)}
			sum := 0.0
			for _, f := range s.Fields {
				full.Parts = append(full.Parts, chart.Part{Name: f.Name, Value: f.FullBits})
				coded.Parts = append(coded.Parts, chart.Part{Name: f.Name, Value: f.PayloadBits})
				sum += f.PayloadBits
			}
			coded.Parts = append(coded.Parts, chart.Part{Name: "whole bytes", Value: max(0, s.PayloadBits-sum)}, chart.Part{Name: "header", Value: s.HeaderBits})
			c.Rows = append(c.Rows, full, coded)
		}
	}
	return c
}

const benchNotes = `bits   per frame sent: full as an engine packs it; payload without headers; the headers of message and datagram, AEAD,
       IP and UDP; wire is their sum in whole bytes. ack wire: acks in encrypted datagrams of their own.
wire ratio  all bits in both directions relative to full frames, each in an encrypted datagram of its own, with 47 bytes
       of headers and tag.
batched  wire ratios of the batching of the preset with other frames in its datagrams, none of which is repeated: full
       frames, without acks, and those of rle.
delay  mean time from Send to the first arrival, less the one-way delay; urgent: longest wait of a frame in which a bit or
       bool changed. Frames that arrive after the deadline of their preset are not delivered.
frames delivered in time; late: shares that reached the server in some payload, but not in time; keyframes: payloads
       without a baseline; wrong: different from what was sent (must be 0). All of a run count but those of the warm-up.
ns     per frame, median of several passes; encode includes processing acks, decode writing them; -: not measured.
traces together: geometric means of their bits, whose ratio is that to the first codec's, and of the wire ratios; the
       arithmetic mean of delivery.
paper  is rle with two 32-bit sequence numbers per frame; their size is inferred from the article's 32-bit ack.
`

// meansTable returns the geometric means over all traces: of bits, with their ratios to the first
// codec, and of the wire ratios. With presets, it also has the wire ratios of full frames and of
// rle in the same datagrams.
func meansTable(results []*bench.Result) [][]string {
	n := float64(len(results))
	rows := [][]string{
		{fmt.Sprintf("%d traces", len(results)), "payload + header", "", "wire", "frames", ""},
		{"codec", "bits", "ratio", "ratio", "delivered", "wrong"},
	}
	presets := hasPresets(results[0])
	if presets {
		rows[0], rows[1] = append(rows[0], "batched", ""), append(rows[1], "full", "rle")
	}
	first := 0.0
	for i := range results[0].Codecs {
		bits, ratio, batched, rle, delivered, wrong := 0.0, 0.0, 0.0, 0.0, 0.0, 0
		for _, r := range results {
			c := &r.Codecs[i]
			bits += math.Log(c.PayloadBits + c.HeaderBits)
			ratio += math.Log(c.WireRatio)
			batched += math.Log(c.BatchedRatio)
			rle += math.Log(c.BatchedRLERatio)
			delivered += c.DeliveredRatio
			wrong += c.Mismatches
		}
		mean := math.Exp(bits / n)
		if i == 0 {
			first = mean
		}
		name := nameOf(&results[0].Codecs[i])
		rows = append(rows, table.Row("%s|%.1f|%.3f|%.3f|%.3f %%|%d", name, mean, mean/first, math.Exp(ratio/n), 100*delivered/n, wrong))
		if presets {
			rows[len(rows)-1] = append(rows[len(rows)-1], batchedCells(math.Exp(batched/n), math.Exp(rle/n))...)
		}
	}
	return rows
}

// batchedCells returns the wire ratios of full frames and of rle in the datagrams of a preset. A
// codec without a preset has no datagrams to compare rle in.
func batchedCells(full, rle float64) []string {
	if rle == 0 {
		return table.Row("%.3f|-", full)
	}
	return table.Row("%.3f|%.3f", full, rle)
}

func hasPresets(r *bench.Result) bool {
	return slices.ContainsFunc(r.Codecs, func(c bench.Counts) bool { return c.Preset != "" })
}

// benchTable returns two rows of headings and one row per codec.
func benchTable(r *bench.Result) [][]string {
	rows := [][]string{
		{"", "bits", "", "", "", "", "", "", "", "ack", "kbit/s", "", "wire", "frames", "", "", "", "ns", "", ""},
		{"codec", "full", "payload", "header", "datagram", "AEAD", "IP, UDP", "wire", "ack", "wire", "up", "down", "ratio", "delivered", "late", "keyframes", "wrong", "encode", "decode", "allocs"},
	}
	presets := hasPresets(r)
	if presets {
		rows[0], rows[1] = append(rows[0], "batched", "", "ms", ""), append(rows[1], "full", "rle", "delay", "urgent")
	}
	for i := range r.Codecs {
		c := &r.Codecs[i]
		times := []string{"-", "-", "-"}
		if c.EncodeNs > 0 {
			times = table.Row("%.0f|%.0f|%.2g", c.EncodeNs, c.DecodeNs, c.Allocs)
		}
		rows = append(rows, slices.Concat(
			table.Row("%s|%.1f|%.1f|%.1f|%.1f", nameOf(c), c.FullBits, c.PayloadBits, c.HeaderBits, c.DatagramBits),
			table.Row("%.1f|%.1f|%.1f|%.1f|%.1f", c.AEADBits, c.IPBits, c.WireBits, c.AckBits, c.AckWireBits),
			table.Row("%.2f|%.2f|%.3f", c.UpKbits(r.RateHz), c.DownKbits(r.RateHz), c.WireRatio),
			table.Row("%.3f %%|%.2f %%|%d|%d", 100*c.DeliveredRatio, 100*c.Late, c.Keyframes, c.Mismatches), times))
		if last := len(rows) - 1; presets {
			rows[last] = append(rows[last], slices.Concat(batchedCells(c.BatchedRatio, c.BatchedRLERatio),
				table.Row("%.1f|%.1f", c.DelayMsMean, c.UrgentDelayMsMax))...)
		}
	}
	return rows
}
