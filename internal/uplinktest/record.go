package uplinktest

import (
	"bytes"
	"strings"
	"sync"
)

// Record is a log that can be read while it is written.
type Record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (r *Record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(b)
}

// String returns the text written so far.
func (r *Record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// Count returns the number of occurrences of a text.
func (r *Record) Count(text string) int { return strings.Count(r.String(), text) }

// Lines returns the lines that contain a text.
func (r *Record) Lines(text string) (lines []string) {
	for line := range strings.Lines(r.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
