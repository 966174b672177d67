package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/rerun"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/spectate"
	"github.com/uplink-rpc/uplink/token"
)

type replayCaptureOptions struct {
	to, world  string
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
		Short: "Send the recorded traffic of a capture to a dedicated server, or show a recorded world",
		Long: `replay-capture plays the sessions of a file of uplink ds --capture. For each session a client connects, binds the same
RPCs, and sends the same payloads and messages at the recorded times.

With --self it runs a server of its own, and compares each decoded frame with that of the recorded server. Another
server needs the schemas of the RPCs, and the --ring and --prior of the recorded server.

A server accepts RPCs at twice the declared rate: a --speed above 2 needs --self. Payloads that the server dropped
before decoding are not sent, nor payloads whose baselines are not in the file.

With --world it sends nothing: it decodes the snapshots of that world as the server sent them to one player, lost ones
included, and prints the objects of each tick.`,
		Example: `  uplink replay-capture out.uplink --self
  uplink replay-capture out.uplink --self --speed 20
  uplink replay-capture out.uplink --to 127.0.0.1:7777
  uplink replay-capture out.uplink --to 203.0.113.7:7777 --key ds.key.issuer --player 3
  uplink replay-capture out.uplink --world cubes --player 3 --json > cubes.jsonl`,
		Args: oneArg,
		RunE: checked(o.check, o.run),
	}
	f := c.Flags()
	f.StringVar(&o.to, "to", "", "UDP address of the server")
	f.BoolVar(&o.self, "self", false, "play to a server of its own, and compare the decoded frames")
	f.StringVar(&o.world, "world", "", "print the snapshots of this world, for the first player to whom it was offered, or --player")
	f.Float64Var(&o.speed, "speed", 1, "speed relative to the recording")
	f.Uint64Var(&o.player, "player", 0, "only the player with this number in the file")
	addMemoryFlag(f, &o.memory)
	f.BoolVar(&o.json, "json", false, "print the totals as JSON; with --world an object per snapshot")
	o.admission.addFlags(f)
	o.sealing.addFlags(f, "permit addresses other than loopback with a public test key, and --suite none")
	return c
}

func (o *replayCaptureOptions) check() error {
	switch {
	case o.world != "" && (o.self || o.to != ""):
		return errors.New("--world: it sends nothing; leave --to and --self out")
	case o.world != "" && o.speed != 1:
		return errors.New("--speed: --world prints all at once; leave it out")
	case o.self && o.to != "":
		return errors.New("--self: it plays to a server of its own; leave --to out")
	case o.world == "" && !o.self && o.to == "":
		return errors.New("--to: want the address of a server, or --self, or --world to show a world")
	case !(o.speed > 0 && o.speed <= 1000):
		return fmt.Errorf("--speed %v: want more than 0 and at most 1000", o.speed)
	case o.admission.token != "" && o.player == 0:
		return errors.New("--token: it admits one client; choose it with --player, or use --key")
	}
	return errors.Join(o.admission.check(), o.sealing.check())
}

func (o *replayCaptureOptions) run(cmd *cobra.Command, args []string) error {
	path := args[0]
	f, _, err := openCapture(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	if o.world != "" {
		return o.show(cmd, path, untilDone{cmd.Context(), f})
	}
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
		return errors.Join(damage, hintedError{fmt.Errorf("%s: no session to play", path), "uplink inspect " + path + " lists the sessions"})
	}
	p := newProgress(cmd.ErrOrStderr())
	options := rerun.Options{Speed: o.speed, Suites: o.sealing.suites(), Insecure: o.sealing.insecure, Progress: func(done float64) { p.show("playing", done) }}
	play := rerun.PlaySelf
	if !o.self {
		if err := o.admit(cmd.Context(), (&logging{}).logger(cmd.ErrOrStderr()), &options); err != nil {
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

// show prints the snapshots of a world.
func (o *replayCaptureOptions) show(cmd *cobra.Command, path string, r io.Reader) error {
	out := bufio.NewWriter(cmd.OutOrStdout())
	each := func(s *spectate.Snapshot) error { return s.WriteText(out) }
	if o.json {
		enc := json.NewEncoder(out)
		each = func(s *spectate.Snapshot) error { return enc.Encode(s) }
	}
	report, err := spectate.Run(r, spectate.Options{World: o.world, Player: o.player, Memory: int64(o.memory), Each: each})
	if report.Snapshots+report.Skipped > 0 && !o.json {
		fmt.Fprintf(out, "%d snapshots of %s to player %d; %d could not be decoded.\n", report.Snapshots, o.world, report.Player, report.Skipped)
	}
	if flushed := out.Flush(); flushed != nil {
		return flushed
	}
	switch {
	case cmd.Context().Err() != nil:
		return cmd.Context().Err()
	case errors.Is(err, spectate.ErrState):
		return fmt.Errorf("%s: world %s: %w", path, o.world, err)
	case err != nil:
		return captureError(path, err)
	case report.Snapshots > 0:
		return nil
	case slices.Contains(report.Worlds, o.world):
		return hintedError{
			fmt.Errorf("%s: no snapshot of %s to player %d can be decoded", path, o.world, report.Player),
			"the player did not subscribe, or already had the initial state, which is then not in the file: choose another --player",
		}
	}
	to := ""
	if o.player != 0 {
		to = fmt.Sprintf(" to player %d", o.player)
	}
	hint := "uplink inspect " + path + " lists the players"
	if len(report.Worlds) > 0 {
		hint = fmt.Sprintf("it has offers of %q", report.Worlds)
	}
	return hintedError{
		fmt.Errorf("%s: it has no offer of the world %s%s", path, o.world, to),
		hint + "; a world that was offered in an earlier file of a series cannot be shown",
	}
}

// admit sets the server address and the tokens of the clients.
func (o *replayCaptureOptions) admit(ctx context.Context, log *slog.Logger, to *rerun.Options) error {
	t, err := o.admission.ticket(ctx, o.to, log)
	if err != nil {
		return err
	}
	to.To = t.addr
	switch {
	case o.admission.key != "":
		to.Token = func(ctx context.Context, _ uint64) (token.Token, error) {
			each, err := o.admission.ticket(ctx, o.to, slog.New(slog.DiscardHandler)) // warnings were logged before
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
		return fmt.Errorf("%d payloads decoded differently; the first: %s", r.Different, r.First)
	case r.Missing != 0:
		return hintedError{fmt.Errorf("the server did not report %d payloads", r.Missing), "play more slowly, with a lower --speed"}
	}
	return nil
}

func writePlayed(w io.Writer, r *rerun.Report, self bool) {
	fmt.Fprintf(w, "%d sessions played: %d datagrams and %d messages sent.\n", r.Sessions, r.Datagrams, r.Messages)
	if r.Skipped != 0 {
		fmt.Fprintf(w, "%d payloads skipped: their baselines are not in the file, or the server dropped them undecoded.\n", r.Skipped)
	}
	if self {
		fmt.Fprintf(w, "%d payloads decoded as recorded, %d differently, %d missing.\n", r.Same, r.Different, r.Missing)
	}
}
