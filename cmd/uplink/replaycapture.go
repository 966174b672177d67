package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/rerun"
	"github.com/uplink-rpc/uplink/token"
)

type replayCaptureOptions struct {
	to         string
	self, json bool
	speed      float64
	player     uint64
	memory     byteSize
	sealing    sealing
	admission  admission
}

func newReplayCaptureCommand() *cobra.Command {
	var o replayCaptureOptions
	c := &cobra.Command{
		Use:   "replay-capture CAPTURE",
		Short: "Send what clients sent, as a capture has it, to a dedicated server again",
		Long: `replay-capture plays the sessions of a file of uplink ds --capture: a client for each connects, binds the same RPCs, and
sends the same payloads and messages at their times.

With --self the server is one of its own, and each frame that this rebuilds is held against what the first one did. A
server elsewhere needs the RPCs' schemas, and the --ring and --prior that the first one had.

A server takes RPCs at twice the rate that clients declare: more --speed than 2 needs --self. What the server dropped
before it decoded it is not sent, nor what refers to frames that are not in the file.`,
		Example: `  uplink replay-capture out.uplink --self
  uplink replay-capture out.uplink --self --speed 20
  uplink replay-capture out.uplink --to 127.0.0.1:7777
  uplink replay-capture out.uplink --to 203.0.113.7:7777 --key ds.key.issuer --player 3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return runReplayCapture(cmd, args[0], &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.to, "to", "", "UDP address of the server")
	f.BoolVar(&o.self, "self", false, "play to a server of its own, and compare what it makes of it")
	f.Float64Var(&o.speed, "speed", 1, "how many times as fast as it was recorded")
	f.Uint64Var(&o.player, "player", 0, "only this player, by its number in the file")
	addMemoryFlag(f, &o.memory)
	f.BoolVar(&o.json, "json", false, "write what was played as JSON")
	o.admission.addFlags(f)
	o.sealing.addFlags(f, "talk to other addresses than loopback with a key that everybody has, and allow --suite none")
	return c
}

func (o *replayCaptureOptions) check() error {
	switch {
	case o.self == (o.to != ""):
		return errors.New("--to: give the address of a server, or --self for one of its own")
	case !(o.speed > 0 && o.speed <= 1000):
		return fmt.Errorf("--speed %v: want more than 0 and at most 1000", o.speed)
	case o.admission.token != "" && o.player == 0:
		return errors.New("--token: it lets one client in; say which with --player, or make tokens with --key")
	}
	return errors.Join(o.admission.check(), o.sealing.check())
}

func runReplayCapture(cmd *cobra.Command, path string, o *replayCaptureOptions) error {
	f, _, err := openCapture(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is read only
	plan, damage := rerun.Load(untilDone{cmd.Context(), f}, o.player, int64(o.memory))
	if cmd.Context().Err() != nil {
		return cmd.Context().Err()
	}
	if damage != nil {
		damage = captureError(path, damage)
	}
	if plan == nil {
		return damage
	}
	if plan.Sessions() == 0 {
		return errors.Join(damage, hintedError{fmt.Errorf("%s: there is no session to play", path), "uplink inspect " + path + " lists those that there are"})
	}
	p := newProgress(cmd.ErrOrStderr())
	options := rerun.Options{Speed: o.speed, Suites: o.sealing.suites(), Insecure: o.sealing.insecure, Progress: func(done float64) { p.show("playing", done) }}
	play := rerun.PlaySelf
	if !o.self {
		if err := o.admit(cmd.Context(), &options); err != nil {
			return err
		}
		play = rerun.Play
	}
	report, err := play(cmd.Context(), plan, options)
	p.clear()
	if o.json {
		damage = errors.Join(damage, encodeJSON(cmd.OutOrStdout(), report))
	} else {
		writePlayed(cmd.OutOrStdout(), &report, o.self)
	}
	return errors.Join(damage, o.verdict(&report, hintFor(err)))
}

// admit says where to play, and what lets each client in.
func (o *replayCaptureOptions) admit(ctx context.Context, to *rerun.Options) error {
	t, err := o.admission.ticket(ctx, o.to)
	if err != nil {
		return err
	}
	to.To = t.addr
	switch {
	case o.admission.key != "":
		to.Token = func(ctx context.Context, _ uint64) (token.Token, error) {
			each, err := o.admission.ticket(ctx, o.to)
			return each.token, err
		}
	case o.admission.token != "":
		to.Token = func(context.Context, uint64) (token.Token, error) { return t.token, nil }
	}
	return nil
}

func (o *replayCaptureOptions) verdict(r *rerun.Report, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%d of %d sessions did not play to their end: %w", r.Failed, r.Sessions, err)
	case r.Different != 0:
		return fmt.Errorf("%d payloads came out differently; the first: %s", r.Different, r.First)
	case r.Missing != 0:
		return hintedError{fmt.Errorf("the server said nothing of %d payloads", r.Missing), "play more slowly, with a lower --speed"}
	}
	return nil
}

func writePlayed(w io.Writer, r *rerun.Report, self bool) {
	fmt.Fprintf(w, "%d sessions played: %d datagrams and %d messages sent.\n", r.Sessions, r.Datagrams, r.Messages)
	if r.Skipped != 0 {
		fmt.Fprintf(w, "%d payloads not played: they refer to what is not in the file, or the server dropped them undecoded.\n", r.Skipped)
	}
	if self {
		fmt.Fprintf(w, "%d payloads came out the same, %d did not, of %d nothing came.\n", r.Same, r.Different, r.Missing)
	}
}
