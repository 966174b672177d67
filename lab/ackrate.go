package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/transport"
)

type ackRateOptions struct {
	cfg   bench.Config
	rates []float64
	json  bool
	svg   string
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
	o := ackRateOptions{cfg: bench.Config{
		Link: simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}, Ring: rpcdelta.DefaultRing, Suite: transport.AES128GCM, Untimed: true,
		Schemes: []string{rpcdelta.DefaultCodec.String()},
	}}
	cmd := &cobra.Command{
		Use:   "ackrate TRACE...",
		Short: "Measure what acks cost and save at several ack rates",
		Long: `ackrate runs recorded play over a simulated link as uplink bench does, at several ack rates. More acks give newer
baselines and smaller frames on the uplink. They cost more on the downlink, in datagrams of their own.`,
		Args: cobra.MinimumNArgs(1),
		RunE: o.run,
	}
	f := cmd.Flags()
	o.cfg.Link.AddFlags(f)
	f.Float64SliceVar(&o.rates, "ack-hz", []float64{10, 12, 15, 20, 30, 60}, "maximum acks per second, ascending")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.svg, "svg", "", "write a chart to this file")
	return cmd
}

func (o *ackRateOptions) check() error {
	for i, hz := range o.rates {
		if hz <= 0 || i > 0 && hz <= o.rates[i-1] {
			return fmt.Errorf("--ack-hz %v: want ascending rates above 0", o.rates)
		}
		if o.cfg.AckHz = hz; o.cfg.Validate() != nil {
			return o.cfg.Validate()
		}
	}
	if len(o.rates) < 2 {
		return fmt.Errorf("--ack-hz %v: want at least two rates", o.rates)
	}
	return nil
}

func (o *ackRateOptions) run(cmd *cobra.Command, paths []string) error {
	if err := o.check(); err != nil {
		return err
	}
	var curves []ackCurve
	for _, path := range paths {
		t, err := trace.Load(path, nil)
		if err != nil {
			return err
		}
		c := ackCurve{Name: t.Name, Hz: o.rates}
		for _, hz := range o.rates {
			cfg := o.cfg
			cfg.AckHz = hz
			r, err := bench.Run(cmd.Context(), t, cfg)
			if err != nil {
				return err
			}
			up, down := r.Codecs[0].UpKbits(r.RateHz), r.Codecs[0].DownKbits(r.RateHz)
			c.Up, c.Down, c.Sum = append(c.Up, up), append(c.Down, down), append(c.Sum, up+down)
			c.Batched = append(c.Batched, r.Codecs[0].BatchedKbits(r.RateHz))
		}
		curves = append(curves, c)
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(o.chart(curves).SVG()), 0o644); err != nil {
			return err
		}
	}
	return emit(cmd, o.json, curves, func(b *strings.Builder) {
		const notes = "%v, seed %d; codec %s; encrypted with gcm, %d bytes per datagram; up and acks in wire bits, with AEAD, IP and UDP;\nbatched: full frames in the same datagrams, without acks\n\n"
		fmt.Fprintf(b, notes, &o.cfg.Link, o.cfg.Link.Seed, o.cfg.Schemes[0], o.cfg.Suite.Overhead())
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
