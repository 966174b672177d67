package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/transport"
)

type replayOptions struct {
	to, schema, priorFile string
	codec                 rpcdelta.Codec
	preset                client.Preset
	prior                 *prior.Prior
	link                  simlink.Config
	sealing               sealing
	admission             admission
	logging               logging
	reliable, again, json bool
	ring                  int
	wait                  time.Duration
}

func newReplayCommand() *cobra.Command {
	var o replayOptions
	var codec string
	c := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Send a recorded trace to a dedicated server",
		Long: `replay is a client that plays a trace: it binds the RPC of the trace's schema at a server, such as uplink ds, and sends
frames at the schema's rate. The link flags put a simulated link in front of the socket.

A server on another machine needs a connect token: --token passes one, --key issues them as a backend does.`,
		Example: `  uplink replay --to 127.0.0.1:7777 portal2_coop_60hz.csv.gz
  uplink replay --to 127.0.0.1:7777 --loss 10% --rtt 100ms --loop moves.csv
  uplink replay --to 127.0.0.1:7777 --preset balanced moves.csv
  uplink replay --to 127.0.0.1:7777 --json --log-format json moves.csv
  uplink replay --to 203.0.113.7:7777 --key ds.key.issuer moves.csv
  uplink replay --to 203.0.113.7:7777 --token @token.txt --suite compact moves.csv`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.codec, err = codecFlag(codec); err != nil {
				return err
			}
			if o.prior, err = loadPrior(o.priorFile); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return runReplay(cmd, args[0], &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.to, "to", "127.0.0.1:7777", "UDP address of the server")
	f.StringVar(&o.schema, schemaFlag, "", "schema file, instead of NAME.schema.json")
	f.StringVar(&codec, "codec", rpcdelta.DefaultCodec.String(), "codec")
	addPresetFlag(f, &o.preset)
	f.StringVar(&o.priorFile, priorFlag, "", "prior from uplink train, used if the server has it too")
	o.link = simlink.Config{Burst: 1, Seed: 1}
	o.link.AddFlags(f)
	f.IntVar(&o.ring, "ring", rpcdelta.DefaultRing, "ring size, in frames")
	f.DurationVar(&o.wait, "wait", 3*time.Second, "how long to wait for the server's answer")
	f.BoolVar(&o.reliable, "reliable", false, "send over the reliable channel")
	f.BoolVar(&o.again, "loop", false, "repeat the trace until Ctrl-C")
	f.BoolVar(&o.json, "json", false, "print the totals as JSON")
	o.logging.addFlags(c)
	o.admission.addFlags(f)
	o.sealing.addFlags(f, "permit addresses other than loopback with a public test key, and --suite none")
	return c
}

func (o *replayOptions) check() error {
	if o.prior != nil && o.codec != rpcdelta.Adaptive {
		return fmt.Errorf("--%s: only --codec %v uses a prior", priorFlag, rpcdelta.Adaptive)
	}
	if o.wait <= 0 {
		return fmt.Errorf("--wait %v: want more than 0s", o.wait)
	}
	if err := checkRing(o.ring); err != nil {
		return err
	}
	return cmp.Or(checkServer("to", o.to), checkPreset(&o.preset, o.codec), o.admission.check(), o.sealing.check(), o.link.Validate())
}

func runReplay(cmd *cobra.Command, path string, o *replayOptions) (err error) {
	t, err := loadTrace(path, o.schema)
	if err != nil {
		return err
	}
	line := newLine(cmd.ErrOrStderr())
	keyLog, err := openKeyLog(cmd)
	if err != nil {
		return err
	}
	conn, err := o.dial(cmd.Context(), keyLog, o.logging.logger(line))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	stream, err := client.BindSchema(cmd.Context(), conn, t.Schema, client.BindConfig{Reliable: o.reliable})
	if err != nil {
		return err
	}
	stop := line.tick(func(time.Duration) string {
		st := stream.Stats()
		if o.again {
			return fmt.Sprintf("%s: %d frames sent", t.Name, st.Frames())
		}
		return fmt.Sprintf("%s: %d of %d frames sent", t.Name, st.Frames(), len(t.Frames))
	})
	defer stop()
	skipped, err := send(cmd.Context(), stream, t, o.again)
	if err != nil {
		return err
	}
	linger := o.link.Drained() // the link and the reliable channel may still contain the last frames
	if o.reliable {
		linger += time.Second + 2*o.link.RTT
	}
	time.Sleep(linger)
	stop()
	total := conn.Stats()
	sent := newSent(stream.Stats(), total.WireRatio(t.Schema.RPC()), skipped)
	if o.json {
		err = encodeJSON(cmd.OutOrStdout(), sent)
	} else {
		sent.write(cmd.OutOrStdout())
	}
	if o.reliable {
		err = errors.Join(err, sent.complete())
	}
	return err
}

// dial connects to the server.
func (o *replayOptions) dial(ctx context.Context, keyLog io.Writer, log *slog.Logger) (*client.Conn, error) {
	t, err := o.admission.ticket(ctx, o.to, log)
	if err != nil {
		return nil, err
	}
	cfg := client.Config{
		Token: t.token, Renew: t.renew, Transport: client.Transport{Suites: o.sealing.suites(), Insecure: o.sealing.insecure, BindTimeout: o.wait, KeyLog: keyLog},
		Tuning: client.Tuning{Codec: o.codec, Prior: o.prior, Ring: o.ring}, Preset: o.preset, Logger: log,
	}
	if !o.link.Perfect() {
		network, err := o.link.Network()
		if err != nil {
			return nil, err
		}
		cfg.Network = network
	}
	silence := fmt.Errorf("%w %v (--wait)", load.ErrSilence, o.wait)
	ctx, cancel := context.WithTimeoutCause(ctx, o.wait, silence)
	defer cancel()
	conn, err := client.Dial(ctx, t.addr, cfg)
	return conn, dialHint(err, o.to)
}

// send plays the trace at its rate until its end or until the context is done. It skips frames
// while there is no connection, or no room on the reliable channel.
func send(ctx context.Context, stream *client.Stream[schema.Frame], t *trace.Trace, again bool) (skipped int, err error) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / t.Schema.RateHz()))
	defer tick.Stop()
	for i := 0; again || i < len(t.Frames); i++ {
		select {
		case <-ctx.Done():
			return skipped, nil
		case <-tick.C:
		}
		_, err := stream.Send(t.At(i))
		switch {
		case errors.Is(err, client.ErrReconnecting), errors.Is(err, transport.ErrBacklog):
			skipped++
		case err != nil:
			return skipped, fmt.Errorf("%s: row %d: %w", t.Name, i%len(t.Frames)+1, err)
		}
	}
	return skipped, nil
}

// sent is the result of a replay. Bits are means per frame, without the headers of datagrams.
type sent struct {
	RPC           string  `json:"rpc"`
	Frames        uint64  `json:"frames"`
	Full          float64 `json:"full_bits"`
	Sent          float64 `json:"sent_bits"`  // payload and message header
	WireRatio     float64 `json:"wire_ratio"` // 0 on the reliable channel
	Keyframes     uint64  `json:"keyframes"`
	Skipped       int     `json:"skipped"`
	PriorFallback bool    `json:"prior_fallback"`
}

func newSent(st client.RPCStats, ratio float64, skipped int) *sent {
	n := float64(max(1, st.Frames()))
	return &sent{
		RPC: st.RPC, Frames: st.Frames(), Full: float64(st.FullBits) / n, Sent: float64(st.HeaderBits+st.PayloadBits) / n,
		WireRatio: ratio, Keyframes: st.Keyframe + st.Reset, Skipped: skipped, PriorFallback: st.PriorFallbacks != 0,
	}
}

// complete returns an error if frames were skipped.
func (s *sent) complete() error {
	if s.Skipped == 0 {
		return nil
	}
	return hintedError{
		fmt.Errorf("--reliable: %d of %d frames of %s were skipped", s.Skipped, s.Frames+uint64(s.Skipped), s.RPC),
		"the link delivers less than the trace has: lower its loss or RTT, or replay a trace of a lower rate",
	}
}

func (s *sent) write(w io.Writer) {
	ratio := ""
	if s.WireRatio != 0 {
		ratio = fmt.Sprintf("wire ratio %.2f; ", s.WireRatio)
	}
	fmt.Fprintf(w, "%d frames sent: %spayloads without the datagrams' headers %.0f bits a frame, bit-packed %.0f; %d keyframes\n",
		s.Frames, ratio, s.Sent, s.Full, s.Keyframes)
	if s.PriorFallback {
		fmt.Fprintln(w, "the server does not have the prior; the built-in one was used")
	}
	if s.Skipped != 0 {
		fmt.Fprintf(w, "%d frames skipped: no connection, or no room on the reliable channel\n", s.Skipped)
	}
}
