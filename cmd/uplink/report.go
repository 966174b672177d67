package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hintedError is an error with a hint.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

// report prints an error with its hint, if any, and returns the exit code.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		_, _ = fmt.Fprintln(w, "uplink: interrupted")
		return 1
	}
	_, _ = fmt.Fprintf(w, "uplink: %v\n", err)
	var hinted hintedError
	if errors.As(err, &hinted) {
		_, _ = fmt.Fprintf(w, "hint: %s\n", hinted.hint)
	}
	var usage usageError
	if !errors.As(err, &usage) {
		return 1
	}
	_, _ = fmt.Fprintf(w, "hint: %s --help\n", cmd.CommandPath())
	return 2
}

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usageArgs wraps the errors of an argument check in usageError, with a hint if there are no
// arguments.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err != nil && len(args) == 0 {
			err = missing(cmd, err)
		}
		if err != nil {
			return usageError{err}
		}
		return nil
	}
}

// missing returns the error for a missing file argument.
func missing(cmd *cobra.Command, err error) error {
	switch {
	case strings.Contains(cmd.Use, "TRACE"):
		return errors.New("TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json")
	case cmd.Name() == "decrypt":
		return errors.New("CAPTURE: want a .pcap or .pcapng file of tcpdump, dumpcap or Wireshark")
	case strings.Contains(cmd.Use, "CAPTURE"):
		return errors.New("CAPTURE: want a file of uplink ds --capture or uplink demo --capture")
	}
	return err
}

// oneArg is the argument check of commands with one argument.
func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%q: want one file, this is the second", args[1])
	}
	return cobra.MinimumNArgs(1)(cmd, args)
}

// noCommand is the argument check of the root command.
func noCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// newHelpCommand returns the command help. Unlike cobra's, it fails for an unknown command.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			_, rest, _ := root.Find(args)
			return noCommand(root, rest)
		}),
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, _, _ := root.Find(args)
			cmd.InitDefaultHelpFlag() // as Execute does for a command that it runs
			return cmd.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) (names []string, _ cobra.ShellCompDirective) {
			for _, sub := range root.Commands() {
				if len(args) == 0 && sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), prefix) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// noArgs is the argument check of commands without arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q: want flags only", args[0])
}

// wanted describes the values of flags by type, or by name if the type has none.
var wanted = map[string]string{
	"duration": "a number and its unit, such as 80ms, 30s or 10m", "int": "a whole number", "uint": "a whole number, not below 0",
	"uint16": "a whole number, 0 to 65535", "uint64": "a whole number, not below 0", "log-level": "debug, info, warn or error", "float64": "a number", "float64Slice": "numbers with commas between them",
	"bool": "true or false",
}

// flagError adds the most similar flag or the wanted value to an error.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if near := nearest(cmd.Flags(), unknown.GetSpecifiedName()); near != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	case errors.As(err, &invalid):
		err = fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
		if want := wanted[cmp.Or(invalid.GetFlag().Value.Type(), invalid.GetFlag().Name)]; want != "" {
			err = fmt.Errorf("--%s %s: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return usageError{err}
}

// checkFiles returns an error if a flag for a file is set to the empty string, for example by an
// unset shell variable.
func checkFiles(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := fileFlags[f.Name]; ok && f.Value.String() == "" {
			err = usageError{fmt.Errorf("--%s: the name of the file is empty", f.Name)}
		}
	})
	return err
}

// nearest returns the flag with the name most similar to name; "" if none is similar.
func nearest(flags *pflag.FlagSet, name string) (best string) {
	least := 3 // a few typing errors at most
	flags.VisitAll(func(f *pflag.Flag) {
		d := edits(name, f.Name)
		if len(name) > 2 && strings.HasPrefix(f.Name, name) {
			d = 1
		}
		if d < least && d < len(f.Name)-1 {
			best, least = f.Name, d
		}
	})
	return best
}

// edits returns the number of letters to insert, delete or replace to turn a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // edits from the letters of a so far
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// checkAddress checks that a flag has a host and a port.
func checkAddress(flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if _, invalid := strconv.ParseUint(port, 10, 16); err != nil || invalid != nil {
		return fmt.Errorf("--%s %q: want HOST:PORT, such as 127.0.0.1:7777", flag, addr)
	}
	return nil
}

// checkMetrics checks --metrics, which may be empty.
func checkMetrics(addr string) error {
	if addr == "" {
		return nil
	}
	return checkAddress("metrics", addr)
}

// checkServer checks that a flag contains the host and the port of a server.
func checkServer(flag, addr string) error {
	err := checkAddress(flag, addr)
	if _, port, _ := net.SplitHostPort(addr); err == nil && port == "0" {
		return fmt.Errorf("--%s %q: want the port of the server, not 0", flag, addr)
	}
	return err
}

// writeJSON writes a single element as an object, and several as an array.
func writeJSON[T any](w io.Writer, all []T) error {
	if len(all) == 1 {
		return encodeJSON(w, all[0])
	}
	return encodeJSON(w, all)
}
