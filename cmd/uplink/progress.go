package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressAfter is how long the user waits before a line says how far things are.
const progressAfter = 2 * time.Second

// line is one changing line on a terminal, and nothing elsewhere.
type line struct {
	w     io.Writer // nil if nobody watches
	shown bool
}

func newLine(w io.Writer) *line {
	if isTerminal(w) {
		return &line{w: w}
	}
	return &line{}
}

// show puts text, of one line of 80 columns, in the place of what was there.
func (l *line) show(text string) {
	if l.w != nil {
		_, _ = fmt.Fprint(l.w, "\r\x1b[K"+text)
		l.shown = true
	}
}

// clear takes the line away.
func (l *line) clear() {
	if l.shown {
		_, _ = fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
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
