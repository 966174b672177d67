package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/inspect"
)

type inspectOptions struct {
	inspect.Options
	frames, json, csv bool
	memory            byteSize
}

func newInspectCommand() *cobra.Command {
	var o inspectOptions
	c := &cobra.Command{
		Use:   "inspect CAPTURE",
		Short: "Show what is in a capture of a dedicated server, and decode it again",
		Long: `inspect reads a file of uplink ds --capture. It decodes each payload again and says whether anything comes out other
than at the server; it lists frames, and explains a datagram bit by bit.

Of a file that is damaged or cut off it shows what is before the damage. The exit code is 1 then, and also if something
comes out differently.`,
		Example: `  uplink inspect out.uplink
  uplink inspect out.uplink --frames --player 3 --from 10s --to 12s
  uplink inspect out.uplink --frames --csv > frames.csv
  uplink inspect out.uplink --explain 1234`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			return runInspect(cmd, args[0], &o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.frames, "frames", false, "list each frame, and each payload that brought none")
	f.BoolVar(&o.json, "json", false, "write JSON: the summary, with --frames an object a line, with --explain one object")
	f.BoolVar(&o.csv, "csv", false, "write --frames as CSV")
	f.IntVar(&o.Explain, "explain", 0, "explain the record of this number, as --frames has it, bit by bit")
	f.Uint64Var(&o.Player, "player", 0, "only this player, by its number in the file")
	f.StringVar(&o.RPC, "rpc", "", "only this RPC")
	f.DurationVar(&o.From, "from", 0, "only from this time on, since the file's beginning")
	addMemoryFlag(f, &o.memory)
	f.DurationVar(&o.To, "to", 0, "only up to this time; 0s means to the end")
	return c
}

func (o *inspectOptions) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("explain") && o.Explain < 1:
		return fmt.Errorf("--explain %d: records are numbered from 1", o.Explain)
	case o.Explain != 0 && (o.frames || o.csv):
		return errors.New("--explain: it is about one record; leave --frames and --csv out")
	case o.csv && !o.frames:
		return errors.New("--csv: it is how --frames is written; add --frames")
	case o.csv && o.json:
		return errors.New("--csv: leave either that or --json out")
	case o.From < 0 || o.To < 0:
		return errors.New("--from, --to: want 0s or more")
	case o.To != 0 && o.To < o.From:
		return fmt.Errorf("--to %v: that is before --from %v", o.To, o.From)
	}
	return nil
}

func runInspect(cmd *cobra.Command, path string, o *inspectOptions) error {
	f, size, err := openCapture(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is read only
	out := cmd.OutOrStdout()
	p := newProgress(cmd.ErrOrStderr())
	o.Progress = func(done int64) { p.show("decoding again", float64(done)/float64(max(size, 1))) }
	o.Memory = int64(o.memory)
	rows := newRowWriter(out, o)
	o.Each = rows.each
	sum, explained, err := inspect.Run(untilDone{cmd.Context(), f}, o.Options)
	p.clear()
	if sum == nil {
		return captureError(path, err)
	}
	if err := rows.flush(); err != nil {
		return err
	}
	if shown := show(out, o, sum, explained); shown != nil {
		return shown
	}
	if err != nil {
		return captureError(path, err)
	}
	if n := sum.Check.Differ; n != 0 {
		return hintedError{
			fmt.Errorf("%s: %d payloads come out differently from what the server got", path, n),
			fmt.Sprintf("uplink inspect %s --frames lists them, --explain NUMBER explains one; the versions of uplink may differ", path),
		}
	}
	return nil
}

// show writes what was asked for besides frames.
func show(w io.Writer, o *inspectOptions, sum *inspect.Summary, explained *inspect.Explained) error {
	switch {
	case o.Explain != 0 && explained == nil, o.frames:
		return nil
	case o.Explain != 0 && o.json:
		return encodeJSON(w, explained)
	case o.Explain != 0:
		return explained.Write(w)
	case o.json:
		return encodeJSON(w, sum)
	}
	return sum.Write(w)
}

// addMemoryFlag adds the flag that limits what a capture takes.
func addMemoryFlag(f *pflag.FlagSet, bytes *byteSize) {
	*bytes = budget.Default
	f.Var(bytes, "memory", "most memory that the contents of the file may take; captures of many players take more")
}

// openCapture opens a file and gives its size.
func openCapture(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, hintedError{err, "uplink ds --capture FILE makes one"}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// untilDone reads until the context is done: reading a large file takes long.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// captureError adds what to do about a file.
func captureError(path string, err error) error {
	named := fmt.Errorf("%s: %w", path, err)
	switch {
	case errors.Is(err, capture.ErrForeign):
		return hintedError{named, "want a file that uplink ds --capture or uplink demo --capture wrote"}
	case errors.Is(err, capture.ErrCut):
		return hintedError{named, "the server still writes it, was killed, or the file was not copied whole; what is before is good"}
	case errors.Is(err, capture.ErrDamaged):
		return hintedError{named, "copy the file again if you can; what is before the damage is good"}
	}
	return named
}

// rowWriter writes frames as they come.
type rowWriter struct {
	each  func(inspect.Row)
	flush func() error
}

func newRowWriter(w io.Writer, o *inspectOptions) rowWriter {
	var failed error
	switch {
	case !o.frames:
		return rowWriter{flush: func() error { return nil }}
	case o.json:
		enc := json.NewEncoder(w)
		return rowWriter{func(r inspect.Row) { failed = errors.Join(failed, enc.Encode(r)) }, func() error { return failed }}
	case o.csv:
		out := csv.NewWriter(w)
		_ = out.Write(inspect.Header) // Error tells
		return rowWriter{func(r inspect.Row) { _ = r.WriteCSV(out) }, func() error {
			out.Flush()
			return out.Error()
		}}
	}
	const layout = "%7v %11v %6v %-20v %8v %-6v %4v %5v %6v %6v %8v  %v\n"
	fmt.Fprintf(w, layout, "record", "time", "player", "RPC", "frame", "kind", "age", "older", "full", "header", "payload", "")
	return rowWriter{func(r inspect.Row) {
		result := r.Check
		if r.Drop != "" {
			result = "dropped: " + r.Drop + "; " + result
		}
		if r.Late {
			result = "late; " + result
		}
		at := time.Duration(r.Seconds * float64(time.Second)).Round(time.Microsecond)
		fmt.Fprintf(w, layout, r.Record, at, r.Player, r.RPC, r.Seq, r.Kind, r.BaselineAge, r.Older, r.FullBits, r.HeaderBits, r.PayloadBits, result)
	}, func() error { return nil }}
}
