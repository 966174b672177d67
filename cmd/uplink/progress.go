package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressAfter is how long the user waits before a line says how far things are.
const progressAfter = 2 * time.Second

// progress shows one changing line on a terminal, and nothing elsewhere.
type progress struct {
	w     io.Writer
	start time.Time
	shown bool
}

func newProgress(w io.Writer) *progress {
	if isTerminal(w) {
		return &progress{w: w, start: time.Now()}
	}
	return &progress{}
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

func (p *progress) show(what string, done float64) {
	if p.w == nil || time.Since(p.start) < progressAfter {
		return
	}
	_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s %.0f %%", what, 100*done)
	p.shown = true
}

// clear takes the line away.
func (p *progress) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
