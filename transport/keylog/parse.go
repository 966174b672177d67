package keylog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	maxLine     = 4096
	maxSessions = 1 << 16
)

// Parse reads a key log. Empty lines, those that begin with '#', and those with another label are skipped, so that
// keys of other protocols may stand in the same file; of several lines for one session the last one counts. A
// line that is cut off or damaged is an error with its number, and so is one of more than 4,096 bytes, or more
// than 65,536 sessions; the sessions before it are returned with the error.
func Parse(r io.Reader) ([]Session, error) {
	var all []Session
	known := map[uint64]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) == 0 || string(fields[0]) != label {
			continue
		}
		s, err := parseLine(fields)
		if err != nil {
			return all, fmt.Errorf("key log: line %d: %w", n, err)
		}
		if i, ok := known[s.ID]; ok {
			all[i] = s
			continue
		}
		if len(all) == maxSessions {
			return all, fmt.Errorf("key log: line %d: more than %d sessions", n, maxSessions)
		}
		known[s.ID] = len(all)
		all = append(all, s)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return all, fmt.Errorf("key log: line %d: more than %d bytes", n, maxLine)
	case err != nil:
		return all, fmt.Errorf("key log: %w", err)
	}
	return all, nil
}
