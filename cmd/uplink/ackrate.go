package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
)

type ackRateOptions struct {
	traceFlags
	cfg        bench.Config
	rates      []float64
	codec, svg string
}

// ackCurve is the wire rate of one trace at each ack rate, in kbit/s.
type ackCurve struct {
	Name string    `json:"trace"`
	Hz   []float64 `json:"ack_hz"`
	Up   []float64 `json:"up_kbits"`
	Down []float64 `json:"acks_kbits"`
	Sum  []float64 `json:"sum_kbits"`
	// Batched is the rate of full frames in the same datagrams, without acks.
	Batched []float64 `json:"batched_kbits"`
}

func newAckRateCommand() *cobra.Command {
	o := ackRateOptions{cfg: bench.Config{Link: simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}, Ring: rpcdelta.DefaultRing, Untimed: true}}
	cmd := &cobra.Command{
		Use:   "ackrate TRACE...",
		Short: "Measure what acks cost and save at several ack rates",
		Long: `ackrate runs recorded play over a simulated link as bench does, at several ack rates. More acks give newer
baselines and smaller frames on the uplink. They cost more on the downlink, in datagrams of their own.`,
		Example: `  uplink ackrate --rtt 60ms portal2_coop_60hz.csv.gz
  uplink ackrate --ack-hz 5,10,20 --json portal2_coop_60hz.csv.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: checked(o.check, o.run),
	}
	f := cmd.Flags()
	o.add(f, eachUsage)
	o.cfg.Link.AddFlags(f)
	addSuiteFlag(f, &o.cfg.Suite)
	f.Float64SliceVar(&o.rates, "ack-hz", []float64{10, 12, 15, 20, 30, 60}, "maximum acks per second, ascending")
	f.IntVar(&o.cfg.Ring, "ring", o.cfg.Ring, "ring size, in frames")
	f.StringVar(&o.codec, "codec", rpcdelta.DefaultCodec.String(), "codec")
	f.StringVar(&o.svg, "svg", "", "write a chart to this file")
	return cmd
}

func (o *ackRateOptions) check() error {
	o.cfg.Schemes = []string{o.codec}
	if len(o.rates) == 0 {
		return errors.New("--ack-hz: want at least one rate")
	}
	for i, hz := range o.rates {
		if i > 0 && hz <= o.rates[i-1] {
			return fmt.Errorf("--ack-hz %g,%g: want ascending rates", o.rates[i-1], hz)
		}
		if o.cfg.AckHz = hz; hz == 0 {
			return errors.New("--ack-hz 0: want more than 0 acks a second")
		}
		if err := o.cfg.Validate(); err != nil {
			return err
		}
	}
	if o.svg != "" && len(o.rates) < 2 {
		return errors.New("--svg: a curve needs at least two rates, see --ack-hz")
	}
	return nil
}

func (o *ackRateOptions) run(cmd *cobra.Command, paths []string) error {
	curves, err := measureAll(cmd, paths, o.load, func(t *trace.Trace, p *progress) (ackCurve, error) {
		c := ackCurve{Name: t.Name, Hz: o.rates}
		for _, hz := range o.rates {
			cfg := o.cfg
			cfg.AckHz = hz
			cfg.Progress = func(_ string, done float64) { p.show(fmt.Sprintf("%s, %g Hz", t.Name, hz), done) }
			r, err := bench.Run(cmd.Context(), t, cfg)
			if err != nil {
				return c, err
			}
			up, down := r.Codecs[0].UpKbits(r.RateHz), r.Codecs[0].DownKbits(r.RateHz)
			c.Up, c.Down, c.Sum = append(c.Up, up), append(c.Down, down), append(c.Sum, up+down)
			c.Batched = append(c.Batched, r.Codecs[0].BatchedKbits(r.RateHz))
		}
		return c, nil
	})
	if err != nil {
		return err
	}
	if o.svg != "" {
		err = writeFile("svg", o.svg, []byte(o.chart(curves).SVG()))
	}
	if err != nil {
		return err
	}
	return emit(cmd.OutOrStdout(), o.json, curves, func(b *strings.Builder) {
		fmt.Fprintf(b, "%v, seed %d; codec %s; %s; up and acks in wire bits, with AEAD, IP and UDP;\nbatched: full frames in the same datagrams, without acks\n\n", &o.cfg.Link, o.cfg.Link.Seed, o.codec, suiteText(o.cfg.Suite))
		table.Write(b, o.table(curves))
	})
}

func (o *ackRateOptions) table(curves []ackCurve) [][]string {
	line := func(name, what, format string, values []float64) []string {
		row := []string{name, what}
		for _, v := range values {
			row = append(row, fmt.Sprintf(format, v))
		}
		return row
	}
	rows := [][]string{line("kbit/s", "", "%g Hz", o.rates)}
	for _, c := range curves {
		rows = append(rows, line(c.Name, "up", "%.2f", c.Up))
		rows = append(rows, line("", "acks", "%.2f", c.Down), line("", "sum", "%.2f", c.Sum))
		rows = append(rows, line("", "batched", "%.2f", c.Batched))
	}
	return rows
}

func (o *ackRateOptions) chart(curves []ackCurve) *chart.Chart {
	c := &chart.Chart{Title: "Uplink and acks (solid), uplink alone (dashed), full frames in the same datagrams (dotted)", XUnit: "Hz", YUnit: "kbit/s", X: o.rates}
	for _, curve := range curves {
		c.Lines = append(c.Lines, chart.Line{Name: curve.Name, Y: curve.Sum}, chart.Line{Y: curve.Up}, chart.Line{Y: curve.Batched, Dotted: true})
	}
	return c
}
