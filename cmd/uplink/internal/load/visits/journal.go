package visits

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// journal keeps the log lines of a client from a time on, to explain why it was slow. It is safe
// for concurrent use.
type journal struct {
	mu    sync.Mutex
	begin time.Time // zero: keeps nothing
	lines []string
}

// maxLines limits the lines of a journal.
const maxLines = 40

// start begins to keep lines.
func (j *journal) start(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begin = now
}

// Write keeps a line.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.begin.IsZero() && len(j.lines) < maxLines {
		j.lines = append(j.lines, fmt.Sprint(time.Since(j.begin).Round(time.Millisecond), " ", strings.TrimSpace(string(line))))
	}
	return len(line), nil
}

// logger returns a logger that writes to the journal.
func (j *journal) logger() *slog.Logger {
	replace := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: replace}))
}

// String returns all kept lines, joined into one.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "; ")
}
