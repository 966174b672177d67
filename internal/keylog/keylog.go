// Package keylog writes and parses files with the secrets of sessions, for debugging, and decrypts
// recorded datagrams with them: Transport.KeyLog of both endpoints writes, [Parse] parses, and an
// [Opener] decrypts.
//
// A key log has one line for each session. A person who has that line can read and forge all
// datagrams of the session.
package keylog

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
)

// label is the first word of each line. Lines with another label belong to other protocols.
const label = "UPLINK_SESSION_1"

// Session contains the secrets of a session.
type Session struct {
	// ID is the session's id, not 0.
	ID uint64
	// Suite is the cipher suite of the session, a transport.Suite.
	Suite seal.Suite
	// ToServer and ToClient are the secrets of the first epoch of each direction, from which those
	// of all later ones follow.
	ToServer, ToClient [32]byte
}

// Append appends the session as a line: the label, the id in 16 hexadecimal digits, the suite's
// name, and the two secrets in 64 digits each, with a space between any two of them and a newline
// at the end.
func (s *Session) Append(dst []byte) []byte {
	dst = fmt.Appendf(dst, "%s %016x %s ", label, s.ID, s.Suite)
	dst = append(hex.AppendEncode(dst, s.ToServer[:]), ' ')
	return append(hex.AppendEncode(dst, s.ToClient[:]), '\n')
}

// parseLine reads the fields of a line, label included.
func parseLine(fields [][]byte) (s Session, err error) {
	if len(fields) != 5 {
		return s, fmt.Errorf("%d words, want 5", len(fields))
	}
	if len(fields[1]) != 16 {
		return s, fmt.Errorf("the id has %d digits, want 16", len(fields[1]))
	}
	if s.ID, err = strconv.ParseUint(string(fields[1]), 16, 64); err != nil || s.ID == 0 {
		return s, fmt.Errorf("the id %q is none", fields[1])
	}
	if s.Suite, err = seal.ParseSuite(string(fields[2])); err != nil {
		return s, fmt.Errorf("there is no suite %q", fields[2])
	}
	for i, secret := range []*[32]byte{&s.ToServer, &s.ToClient} {
		if n := len(fields[3+i]); n != hex.EncodedLen(len(secret)) {
			return s, fmt.Errorf("secret %d has %d digits, want %d", i+1, n, hex.EncodedLen(len(secret)))
		}
		if _, err := hex.Decode(secret[:], bytes.ToLower(fields[3+i])); err != nil {
			return s, fmt.Errorf("secret %d is not hexadecimal", i+1)
		}
	}
	return s, nil
}

const (
	maxLine     = 4096
	maxSessions = 1 << 16
)

// Parse reads a key log. Empty lines, those that begin with '#', and those with another label are
// skipped, so that a file may contain keys of other protocols; of several lines for one session the
// last one counts. Parse stops at an invalid line, at a line of more than 4,096 bytes, and after
// 65,536 sessions if there are more. The error then contains the number of the line, and the
// sessions before that line are returned with it.
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
