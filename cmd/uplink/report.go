package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// hintedError is an error and what to do about it.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

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
