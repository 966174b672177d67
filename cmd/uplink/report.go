package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// usageError says that the command line makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// hintedError is an error and what to do about it.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

// usageArgs marks the errors of a check of arguments.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// report prints an error once, with a hint where there is one, and gives the exit code.
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
	if !errors.As(err, &usage) && cmd.ValidateRequiredFlags() == nil {
		return 1
	}
	_, _ = fmt.Fprintf(w, "hint: %s --help\n", cmd.CommandPath())
	return 2
}
