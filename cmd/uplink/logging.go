package main

import (
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// logFormat is a flag: how log records are written.
type logFormat string

const (
	textLog logFormat = "text"
	jsonLog logFormat = "json"
)

func (l *logFormat) String() string { return string(*l) }

func (l *logFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (l *logFormat) Set(text string) error {
	switch f := logFormat(text); f {
	case textLog, jsonLog:
		*l = f
		return nil
	}
	return errors.New("want text or json")
}

// logging is how a command logs.
type logging struct {
	format logFormat
	level  slog.Level
}

func (l *logging) addFlags(c *cobra.Command) {
	l.format = textLog
	c.Flags().Var(&l.format, "log-format", "how log records are written to standard error: text or json")
	c.Flags().TextVar(&l.level, "log-level", slog.LevelInfo, "least `level` of log records: debug, info, warn or error")
}

func (l *logging) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: l.level}
	if l.format == jsonLog {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
