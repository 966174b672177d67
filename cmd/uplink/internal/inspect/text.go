package inspect

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/lab/table"
)

// maxSessions is how many the text lists.
const maxSessions = 50

// Write writes the summary as text.
func (s *Summary) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Begins %s, lasts %.3f s: %d records, %d bytes; file %d of its row, %s.\n",
		s.Start.Format("2006-01-02 15:04:05.000 UTC"), s.Seconds, s.Records, s.Bytes, s.Index, s.ending())
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

func (s *Summary) ending() string {
	switch {
	case !s.Whole:
		return "not read to its end"
	case s.Continues:
		return "whole, the next one goes on"
	}
	return "whole, the last"
}

func (s *Summary) writeSessions(b *strings.Builder) {
	if len(s.Sessions) == 0 {
		b.WriteString("\nNo sessions.\n")
		return
	}
	rows := [][]string{{"player", "client", "address", "from s", "to s", "got", "bytes", "sent", "bytes", "messages", "frames", "drops", "end"}}
	for _, p := range s.Sessions[:min(len(s.Sessions), maxSessions)] {
		from := fmt.Sprintf("%.3f", p.From)
		if p.Before {
			from = "before"
		}
		end := p.Cause
		if !p.Closed {
			end = "open"
		}
		rows = append(rows, []string{
			fmt.Sprint(p.Player), fmt.Sprint(p.Client), p.Addr, from, fmt.Sprintf("%.3f", p.To), fmt.Sprint(p.Received), fmt.Sprint(p.ReceivedBytes),
			fmt.Sprint(p.Sent), fmt.Sprint(p.SentBytes), fmt.Sprint(p.ReceivedMessages + p.SentMessages), fmt.Sprint(p.Frames), fmt.Sprint(p.Drops), end,
		})
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
	rows := [][]string{{"RPC", "channel", "codec", "payloads", "frames", "full", "header", "payload", "age", "intra", "reset", "late", "not decoded"}}
	for _, r := range s.RPCs {
		st := &r.Stats
		n := math.Max(1, float64(st.Frames()))
		channel := "unreliable"
		if r.Reliable {
			channel = "reliable"
		}
		rows = append(rows, []string{
			r.Name, channel, r.Codec, fmt.Sprint(r.Payloads), fmt.Sprint(st.Frames()), fmt.Sprintf("%.1f", float64(st.FullBits)/n),
			fmt.Sprintf("%.1f", float64(st.HeaderBits)/n), fmt.Sprintf("%.1f", float64(st.PayloadBits)/n),
			fmt.Sprintf("%.1f", float64(st.AgeSum)/math.Max(1, float64(st.Delta))), fmt.Sprint(st.Keyframe), fmt.Sprint(st.Reset), fmt.Sprint(r.Late), fmt.Sprint(r.Undecoded),
		})
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
		{c.Before, "refer to what is in an earlier file"}, {c.AfterLoss, "come after lost records, before their streams start anew"}, {c.Broken, "have no decoder"},
	} {
		if x.n != 0 {
			fmt.Fprintf(b, "%d payloads could not be: they %s.\n", x.n, x.text)
		}
	}
}

// Write writes it as text.
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

// Header is the first row of rows as CSV.
var Header = []string{
	"record", "seconds", "player", "rpc", "seq", "kind", "baseline_age", "older", "late", "full_bits", "header_bits", "payload_bits", "drop", "check",
}

// WriteCSV writes a row.
func (r *Row) WriteCSV(w *csv.Writer) error {
	return w.Write([]string{
		strconv.Itoa(r.Record), fmt.Sprintf("%.6f", r.Seconds), strconv.FormatUint(r.Player, 10), r.RPC, strconv.FormatUint(r.Seq, 10), r.Kind,
		strconv.Itoa(r.BaselineAge), strconv.Itoa(r.Older), strconv.FormatBool(r.Late), strconv.Itoa(r.FullBits), strconv.Itoa(r.HeaderBits), strconv.Itoa(r.PayloadBits), r.Drop, r.Check,
	})
}
