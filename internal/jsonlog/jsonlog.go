// Package jsonlog is the format of JSON log records of the programs.
package jsonlog

import (
	"io"
	"log/slog"
	"strconv"
)

// New returns a handler that writes a JSON object per record. Ids of players and clients, which
// have 64 bits, are strings, since most readers of JSON round larger numbers than 2^53. Durations
// are in seconds, and the unit is at the end of their keys: after_seconds.
func New(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: replace})
}

func replace(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); {
	case v.Kind() == slog.KindUint64 && (a.Key == "player" || a.Key == "client"):
		return slog.String(a.Key, strconv.FormatUint(v.Uint64(), 10))
	case v.Kind() == slog.KindDuration:
		return slog.Float64(a.Key+"_seconds", v.Duration().Seconds())
	}
	return a
}
