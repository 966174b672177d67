package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
)

// progressAfter is the time until progress is shown.
const progressAfter = 2 * time.Second

// line is a status line on a terminal. If the output is no terminal, it shows nothing. Text written
// to it appears above the line. It is safe for concurrent use.
type line struct {
	w    io.Writer
	live bool // w is a terminal

	mu    sync.Mutex
	shown bool
}

func newLine(w io.Writer) *line { return &line{w: w, live: isTerminal(w)} }

// show replaces the line. text has at most 80 columns.
func (l *line) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live {
		_, _ = fmt.Fprint(l.w, "\r\x1b[K"+text)
		l.shown = true
	}
}

// clear removes the line.
func (l *line) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *line) erase() {
	if l.shown {
		_, _ = fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}

// Write implements io.Writer, for logs.
func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.w.Write(b)
}

// tick shows text each second, after progressAfter. The returned function removes the line.
func (l *line) tick(text func(elapsed time.Duration) string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var showing sync.WaitGroup
	showing.Go(func() {
		elapsed := time.Duration(0)
		for range sleep.Every(ctx, time.Second) {
			if elapsed += time.Second; elapsed >= progressAfter {
				l.show(text(elapsed))
			}
		}
	})
	return func() {
		cancel()
		showing.Wait()
		l.clear()
	}
}

// progress shows a percentage, after progressAfter.
type progress struct {
	*line
	start time.Time
}

func newProgress(w io.Writer) *progress { return &progress{line: newLine(w), start: time.Now()} }

func (p *progress) show(what string, done float64) {
	if time.Since(p.start) >= progressAfter {
		p.line.show(fmt.Sprintf("%s %.0f %%", what, 100*done))
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
