package visits

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// journal keeps what a client logs after a time, to explain why it was slow. It is safe for
// concurrent use.
type journal struct {
	mu    sync.Mutex
	begin time.Time // the zero time: nothing is kept
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

// String returns the lines in one line.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "; ")
}
