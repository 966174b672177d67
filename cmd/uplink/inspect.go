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

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/inspect"
	"github.com/uplink-rpc/uplink/internal/capture"
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
		Short: "Show the contents of a dedicated server's capture, and decode it again",
		Long: `inspect reads a file of uplink ds --capture. It decodes each payload again and compares the result with the server's. It
can list frames, and explain a datagram bit by bit.

If a file is damaged or truncated, inspect shows the records before the damage. The exit code is then 1, as it is if a
payload decodes differently.`,
		Example: `  uplink inspect out.uplink
  uplink inspect out.uplink --frames --player 3 --from 10s --to 12s
  uplink inspect out.uplink --frames --csv > frames.csv
  uplink inspect out.uplink --explain 1234`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			return runInspect(cmd, args[0], &o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.frames, "frames", false, "list all frames, and payloads without a frame")
	f.BoolVar(&o.json, "json", false, "print JSON: the summary; with --frames an object per line; with --explain one object")
	f.BoolVar(&o.csv, "csv", false, "print --frames as CSV")
	f.IntVar(&o.Explain, "explain", 0, "explain the record with this number of --frames, bit by bit")
	f.Uint64Var(&o.Player, "player", 0, "only the player with this number in the file")
	f.StringVar(&o.RPC, "rpc", "", "only this RPC")
	f.DurationVar(&o.From, "from", 0, "only from this time on, from the start of the file")
	addMemoryFlag(f, &o.memory)
	f.DurationVar(&o.To, "to", 0, "only up to this time; 0s: to the end")
	return c
}

func (o *inspectOptions) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("explain") && o.Explain < 1:
		return fmt.Errorf("--explain %d: records are numbered from 1", o.Explain)
	case o.Explain != 0 && (o.frames || o.csv):
		return errors.New("--explain: leave --frames and --csv out")
	case o.csv && !o.frames:
		return errors.New("--csv: it needs --frames")
	case o.csv && o.json:
		return errors.New("--csv and --json: choose one")
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
	defer f.Close() //nolint:errcheck // opened for reading only
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
			fmt.Errorf("%s: %d payloads decode differently than at the server", path, n),
			fmt.Sprintf("uplink inspect %s --frames lists them, --explain NUMBER explains one; the versions of uplink may differ", path),
		}
	}
	return nil
}

// show writes the summary or, if a record was requested, its explanation.
func show(w io.Writer, o *inspectOptions, sum *inspect.Summary, explained *inspect.Explained) error {
	var result interface{ Write(w io.Writer) error } = sum
	if o.Explain != 0 {
		result = explained
	}
	switch {
	case o.Explain != 0 && explained == nil, o.frames:
		return nil
	case o.json:
		return encodeJSON(w, result)
	}
	return result.Write(w)
}

// addMemoryFlag adds the flag that limits the memory for the contents of a capture.
func addMemoryFlag(f *pflag.FlagSet, bytes *byteSize) {
	*bytes = budget.Default
	f.Var(bytes, "memory", "maximum memory for the contents of the file; captures of many players need more")
}

// openCapture opens a file and returns its size.
func openCapture(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, hintedError{err, "uplink ds --capture FILE writes one"}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// untilDone reads until the context is done.
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

// captureError adds a hint to an error of reading a capture.
func captureError(path string, err error) error {
	named := fmt.Errorf("%s: %w", path, err)
	switch {
	case errors.Is(err, capture.ErrForeign):
		return hintedError{named, "want a file that uplink ds --capture or uplink demo --capture wrote"}
	case errors.Is(err, capture.ErrCut):
		return hintedError{named, "the server still writes it, or was killed, or the file was not copied whole; the records before are valid"}
	case errors.Is(err, capture.ErrDamaged):
		return hintedError{named, "copy the file again if you can; the records before the damage are valid"}
	}
	return named
}

// rowWriter writes frames one by one.
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
		_ = out.Write(inspect.Header) // Error returns the error
		return rowWriter{func(r inspect.Row) { _ = r.WriteCSV(out) }, func() error {
			out.Flush()
			return out.Error()
		}}
	}
	const layout = "%7v %11v %6v %-20v %8v %-6v %4v %9v %6v %6v %8v  %v\n"
	fmt.Fprintf(w, layout, "record", "time", "player", "RPC", "frame", "kind", "age", "redundant", "full", "header", "payload", "")
	return rowWriter{func(r inspect.Row) {
		result := r.Check
		if r.Drop != "" {
			result = "dropped: " + r.Drop + "; " + result
		}
		if r.Late {
			result = "late; " + result
		}
		at := time.Duration(r.Seconds * float64(time.Second)).Round(time.Microsecond)
		fmt.Fprintf(w, layout, r.Record, at, r.Player, r.RPC, r.Seq, r.Kind, r.BaselineAge, r.Redundant, r.FullBits, r.HeaderBits, r.PayloadBits, result)
	}, func() error { return nil }}
}
