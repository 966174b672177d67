package inspect

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/table"
)

// Summary describes a file, or the part of it that could be read.
type Summary struct {
	Start   time.Time `json:"start"`
	Index   int       `json:"index"` // index of the file in its series
	Seconds float64   `json:"seconds"`
	Records int       `json:"records"`
	Bytes   int64     `json:"bytes"`
	// Whole reports whether the file was read up to its end mark. Continues reports whether another
	// file follows.
	Whole     bool `json:"whole"`
	Continues bool `json:"continues"`
	// Lost is the number of records that the server could not write in time.
	Lost      uint64            `json:"lost"`
	Sessions  []*Session        `json:"sessions"`
	RPCs      []*RPC            `json:"rpcs"`
	Drops     map[string]uint64 `json:"drops"`     // drops that belong to no RPC
	Transport map[string]uint64 `json:"transport"` // datagrams of no session, or of no use to it
	Check     Check             `json:"check"`
	Problems  []string          `json:"problems,omitempty"`

	byPlayer map[uint64]*Session
}

// Session describes one session of a player.
type Session struct {
	Player           uint64  `json:"player"`
	Client           uint64  `json:"client,string"` // JSON has no integers of 64 bits
	ID               uint64  `json:"session,string"`
	Addr             string  `json:"addr"`
	Suite            string  `json:"suite"`
	Before           bool    `json:"began_before"`
	Closed           bool    `json:"closed"`
	Cause            string  `json:"cause,omitempty"`
	From             float64 `json:"from"`
	To               float64 `json:"to"`
	Received         uint64  `json:"received"`
	ReceivedBytes    uint64  `json:"received_bytes"`
	Sent             uint64  `json:"sent"`
	SentBytes        uint64  `json:"sent_bytes"`
	ReceivedMessages uint64  `json:"received_messages"`
	SentMessages     uint64  `json:"sent_messages"`
	Frames           uint64  `json:"frames"`
	Drops            uint64  `json:"drops"`
}

// RPC describes one RPC over one channel with one codec, for all players.
type RPC struct {
	Name     string `json:"name"`
	Reliable bool   `json:"reliable"`
	Codec    string `json:"codec"`
	Payloads uint64 `json:"payloads"`
	Bytes    uint64 `json:"bytes"`
	// Stats counts frames that were decoded again, Undecoded all other frames.
	Stats     Stats             `json:"stats"`
	Undecoded uint64            `json:"undecoded"`
	Late      uint64            `json:"late"`
	Drops     map[string]uint64 `json:"drops"`
	Withheld  map[string]uint64 `json:"withheld"`
}

// Check counts payloads by the result of decoding them again.
type Check struct {
	Same   uint64 `json:"same"`
	Differ uint64 `json:"differ"`
	// Before counts payloads whose baselines are in an earlier file. AfterLoss counts payloads that
	// cannot be decoded because records were lost, and Broken payloads of streams without a
	// decoder.
	Before    uint64 `json:"before"`
	AfterLoss uint64 `json:"after_loss"`
	Broken    uint64 `json:"broken"`
	// First describes the first difference. FirstRecord is the number of its record.
	First       string `json:"first,omitempty"`
	FirstRecord int    `json:"first_record,omitempty"`
}

const maxProblems = 20

type rpcKey struct {
	name     string
	reliable bool
	codec    rpcdelta.Codec
}

func (x *inspection) rpc(s *stream) *RPC {
	key := rpcKey{s.name, s.cfg.Reliable, s.cfg.Codec}
	r := x.rpcs[key]
	if r == nil {
		x.limits.keep(rpcSize + len(s.name))
		r = &RPC{Name: s.name, Reliable: s.cfg.Reliable, Codec: s.cfg.Codec.String(), Drops: map[string]uint64{}, Withheld: map[string]uint64{}}
		x.rpcs[key] = r
	}
	return r
}

func (s *Summary) finish(x *inspection) {
	for _, n := range slices.Sorted(maps.Keys(s.byPlayer)) {
		p := s.byPlayer[n]
		if !p.Closed {
			p.To = s.Seconds
		}
		if x.options.Player == 0 || x.options.Player == n {
			s.Sessions = append(s.Sessions, p)
		}
	}
	s.RPCs = slices.SortedFunc(maps.Values(x.rpcs), func(a, b *RPC) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Codec, b.Codec), cmp.Compare(b.channel(), a.channel()))
	})
}

func (r *RPC) channel() string {
	if r.Reliable {
		return "reliable"
	}
	return "unreliable"
}

// Stats is [rpcdelta.Stats] with names in JSON like the other fields.
type Stats struct{ rpcdelta.Stats }

// named is [rpcdelta.Stats] with these names.
type named struct {
	Delta       uint64                              `json:"delta"`
	Keyframe    uint64                              `json:"keyframes"`
	Reset       uint64                              `json:"reset"`
	FullBits    uint64                              `json:"full_bits"`
	HeaderBits  uint64                              `json:"header_bits"`
	PayloadBits uint64                              `json:"payload_bits"`
	BaselineAge [len(rpcdelta.AgeBounds) + 1]uint64 `json:"baseline_age"`
	AgeSum      uint64                              `json:"age_sum"`
	Redundant   uint64                              `json:"redundant"`
}

// MarshalJSON implements json.Marshaler.
func (s Stats) MarshalJSON() ([]byte, error) { return json.Marshal(named(s.Stats)) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Stats) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*named)(&s.Stats)) }

const maxSessions = 50

// Write writes the summary as text.
func (s *Summary) Write(w io.Writer) error {
	var b strings.Builder
	ending := "whole, the last"
	switch {
	case !s.Whole:
		ending = "not read to its end"
	case s.Continues:
		ending = "whole, the next one goes on"
	}
	fmt.Fprintf(&b, "Begins %s, lasts %.3f s: %d records, %d bytes; file %d of its series, %s.\n",
		s.Start.Format("2006-01-02 15:04:05.000 UTC"), s.Seconds, s.Records, s.Bytes, s.Index, ending)
	if s.Lost != 0 {
		fmt.Fprintf(&b, "%d records were lost: the server could not write as fast.\n", s.Lost)
	}
	s.writeSessions(&b)
	s.writeRPCs(&b)
	writeCounts(&b, "Dropped, of no RPC", s.Drops)
	writeCounts(&b, "Datagrams of no session, or of no use to it, since the server began", s.Transport)
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "Problem: %s\n", p)
	}
	b.WriteString("\n")
	s.Check.write(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Summary) writeSessions(b *strings.Builder) {
	if len(s.Sessions) == 0 {
		b.WriteString("\nNo sessions.\n")
		return
	}
	rows := [][]string{{"player", "client", "address", "from s", "to s", "got", "bytes", "sent", "bytes", "messages", "frames", "drops", "end"}}
	for _, p := range s.Sessions[:min(len(s.Sessions), maxSessions)] {
		from, end := fmt.Sprintf("%.3f", p.From), p.Cause
		if p.Before {
			from = "before"
		}
		if !p.Closed {
			end = "open"
		}
		rows = append(rows, table.Row("%d|%d|%s|%s|%.3f|%d|%d|%d|%d|%d|%d|%d|%s",
			p.Player, p.Client, p.Addr, from, p.To, p.Received, p.ReceivedBytes, p.Sent, p.SentBytes,
			p.ReceivedMessages+p.SentMessages, p.Frames, p.Drops, end))
	}
	b.WriteString("\n")
	table.Write(b, rows)
	if more := len(s.Sessions) - maxSessions; more > 0 {
		fmt.Fprintf(b, "and %d more; --json has all\n", more)
	}
}

func (s *Summary) writeRPCs(b *strings.Builder) {
	if len(s.RPCs) == 0 {
		return
	}
	rows := [][]string{{"RPC", "channel", "codec", "payloads", "frames", "full", "header", "payload", "age", "keyframes", "reset", "late", "not decoded"}}
	for _, r := range s.RPCs {
		st := &r.Stats
		n := math.Max(1, float64(st.Frames()))
		rows = append(rows, table.Row("%s|%s|%s|%d|%d|%.1f|%.1f|%.1f|%.1f|%d|%d|%d|%d",
			r.Name, r.channel(), r.Codec, r.Payloads, st.Frames(),
			float64(st.FullBits)/n, float64(st.HeaderBits)/n, float64(st.PayloadBits)/n,
			float64(st.AgeSum)/math.Max(1, float64(st.Delta)), st.Keyframe, st.Reset, r.Late, r.Undecoded))
	}
	b.WriteString("\n")
	table.Write(b, rows)
	b.WriteString("full, header and payload in bits a frame; age of the baseline in frames\n")
	for _, r := range s.RPCs {
		writeCounts(b, "Dropped of "+r.Name, r.Drops)
		writeCounts(b, "Decoded of "+r.Name+", but not given to the game", r.Withheld)
	}
}

func writeCounts(b *strings.Builder, what string, counts map[string]uint64) {
	if len(counts) == 0 {
		return
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, counts[reason]))
	}
	fmt.Fprintf(b, "%s: %s.\n", what, strings.Join(parts, ", "))
}

func (c *Check) write(b *strings.Builder) {
	fmt.Fprintf(b, "Decoded again: %d payloads came to the same as at the server, %d did not.\n", c.Same, c.Differ)
	if c.First != "" {
		fmt.Fprintf(b, "The first, at record %d: %s.\n", c.FirstRecord, c.First)
	}
	for _, x := range []struct {
		n    uint64
		text string
	}{
		{c.Before, "refer to what is in an earlier file"}, {c.AfterLoss, "come after lost records, before a reset of their streams"}, {c.Broken, "have no decoder"},
	} {
		if x.n != 0 {
			fmt.Fprintf(b, "%d payloads could not be: they %s.\n", x.n, x.text)
		}
	}
}

// Write writes the explanation as text.
func (e *Explained) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Record %d, at %.6f s: %s\n", e.Record, e.Seconds, e.Title)
	for i := 0; i < len(e.body); i += 32 {
		fmt.Fprintf(&b, "  %04x  % x\n", i, e.body[i:min(i+32, len(e.body))])
	}
	if len(e.Lines) > 0 {
		b.WriteString("\n   byte.bit     bits\n")
	}
	for _, l := range e.Lines {
		at, bits := "", ""
		if l.Bit != noBit {
			at = fmt.Sprintf("%d.%d", l.Bit/8, l.Bit%8)
		}
		if l.What != "" && (l.Bits != 0 || l.Bit != noBit) {
			bits = strconv.FormatFloat(math.Round(100*l.Bits)/100, 'f', -1, 64)
		}
		text := strings.Repeat("  ", l.Depth)
		switch {
		case l.What == "":
			text += "- " + l.Value
		case l.Value == "":
			text += l.What
		default:
			text += l.What + ": " + l.Value
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%11s %8s  %s", at, bits, text), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Header is the header row of CSV output.
var Header = []string{
	"record", "seconds", "player", "rpc", "seq", "kind", "baseline_age", "redundant", "late", "full_bits", "header_bits", "payload_bits", "drop", "check",
}

// WriteCSV writes a row.
func (r *Row) WriteCSV(w *csv.Writer) error {
	return w.Write(table.Row("%d|%.6f|%d|%s|%d|%s|%d|%d|%t|%d|%d|%d|%s|%s",
		r.Record, r.Seconds, r.Player, r.RPC, r.Seq, r.Kind, r.BaselineAge, r.Redundant, r.Late, r.FullBits, r.HeaderBits, r.PayloadBits, r.Drop, r.Check))
}
