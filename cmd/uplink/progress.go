package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progressAfter is how long the user waits before a line says how far things are.
const progressAfter = 2 * time.Second

// line is one changing line on a terminal, and nothing elsewhere. What is written to it stays above the line. It is
// safe for concurrent use.
type line struct {
	w    io.Writer
	live bool // somebody watches

	mu    sync.Mutex
	shown bool
}

func newLine(w io.Writer) *line { return &line{w: w, live: isTerminal(w)} }

// show puts text, of one line of 80 columns, in the place of what was there.
func (l *line) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live {
		_, _ = fmt.Fprint(l.w, "\r\x1b[K"+text)
		l.shown = true
	}
}

// clear takes the line away.
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

// tick shows each second, once it takes long, what text gives for the time since. It ends, and the line is taken away,
// with a call of what it returns.
func (l *line) tick(text func(elapsed time.Duration) string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for elapsed := time.Second; ; elapsed += time.Second {
			select {
			case <-done:
				return
			case <-second.C:
			}
			if elapsed >= progressAfter {
				l.show(text(elapsed))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
		l.clear()
	})
}

// progress is a line that says how far something is, once it takes long.
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

// isTerminal says whether somebody watches what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
