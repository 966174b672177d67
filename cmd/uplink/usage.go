package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError says that the command line makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usageArgs marks the errors of a check of arguments, and says what is wanted where there is none.
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

// missing says which file is wanted where none is named.
func missing(cmd *cobra.Command, err error) error {
	switch {
	case strings.Contains(cmd.Use, "TRACE"):
		return errors.New("TRACE: which recording? want a .csv or .csv.gz file, with its .schema.json beside it")
	case cmd.Name() == "decrypt":
		return errors.New("CAPTURE: which capture? want a .pcap or .pcapng file of tcpdump, dumpcap or Wireshark")
	case strings.Contains(cmd.Use, "CAPTURE"):
		return errors.New("CAPTURE: which capture? want a file that uplink ds --capture or uplink demo --capture wrote")
	}
	return err
}

// noCommand is the check of arguments of the root: there are commands only.
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

// noArgs is that of commands that have flags only.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q: flags are all that this takes", args[0])
}

// wanted is what flags of Go's types take.
var wanted = map[string]string{
	"duration": "a number and its unit, such as 80ms, 30s or 10m", "int": "a whole number", "uint": "a whole number, not below 0",
	"uint64": "a whole number, not below 0", "float64": "a number", "float64Slice": "numbers with commas between them",
}

// flagError says what was meant, perhaps.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if near := nearest(cmd.Flags(), unknown.GetSpecifiedName()); near != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	case errors.As(err, &invalid):
		if want := wanted[invalid.GetFlag().Value.Type()]; want != "" {
			err = fmt.Errorf("--%s %s: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return usageError{err}
}

// nearest is the flag whose name looks most like one that there is not; "" if none does.
func nearest(flags *pflag.FlagSet, name string) (best string) {
	least := 3 // more than a slip or two
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

// edits is how many letters have to be added, left out or changed to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // from the letters of a so far
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
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("--%s %q: want HOST:PORT, such as 127.0.0.1:7777", flag, addr)
	}
	return nil
}
