package jsonlog

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
)

// TestRecord writes the largest id, a duration and other values.
func TestRecord(t *testing.T) {
	var text strings.Builder
	slog.New(New(&text, slog.LevelInfo)).Info("drained", "player", uint64(math.MaxUint64), "client", uint64(7),
		"after", 691687562*time.Nanosecond, "seq", uint64(8), "addr", "127.0.0.1:1")
	const want = `"msg":"drained","player":"18446744073709551615","client":"7","after_seconds":0.691687562,"seq":8,"addr":"127.0.0.1:1"}` + "\n"
	if !strings.HasSuffix(text.String(), want) {
		t.Errorf("got %s, want %s", text.String(), want)
	}
}
