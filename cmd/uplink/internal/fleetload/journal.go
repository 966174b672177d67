package fleetload

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// journal is a slog.Handler that keeps what a client logs after a time, to explain why it was slow.
type journal struct {
	mu    sync.Mutex
	begin time.Time // the zero time: nothing is kept
	lines []string
}

// maxLines limits the lines of a journal.
const maxLines = 40

// start begins to keep records.
func (j *journal) start(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begin = now
}

// note keeps a line of the caller.
func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.begin.IsZero() && len(j.lines) < maxLines {
		at := time.Since(j.begin).Round(time.Millisecond)
		j.lines = append(j.lines, fmt.Sprintf("%v %s", at, fmt.Sprintf(format, args...)))
	}
}

// String returns the records in one line.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "; ")
}

// Enabled implements slog.Handler.
func (j *journal) Enabled(context.Context, slog.Level) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.begin.IsZero()
}

// Handle implements slog.Handler.
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %s=%v", a.Key, a.Value)
		return true
	})
	j.note("%s", &line)
	return nil
}

// WithAttrs implements slog.Handler. Attributes that are common to records are dropped.
func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(string) slog.Handler { return j }
