package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/table"
)

// printer writes observations as tables, each in the place of the one before it
// on a terminal.
type printer struct {
	w     io.Writer
	live  bool
	json  bool
	lines int // of the last table
}

func newPrinter(w io.Writer, o *Options) *printer { return &printer{w: w, live: o.Live, json: o.JSON} }

// headings are short: a row has to fit a terminal of 80 columns, or drawing it
// again in its place would not work.
var headings = [][]string{
	{"", "", "kbit/s", "", "", "", "", "", "round"},
	{"RPC", "calls/s", "full", "sent", "ratio", "wire", "delivered", "intra", "trip"},
}

func (t *printer) draw(o observation, elapsed time.Duration) {
	if t.json {
		t.writeLine(o, elapsed, false)
		return
	}
	rows := headings[:len(headings):len(headings)]
	for i := range o.rows {
		rows = append(rows, o.rows[i].cells(elapsed))
	}
	total := o.total()
	rows = append(rows, total.cells(elapsed))
	var b strings.Builder
	if t.live && t.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", t.lines) // up, and clear from there
	}
	b.WriteByte('\n')
	table.Write(&b, rows)
	kbit := func(bits float64) float64 { return kbits(bits, elapsed) }
	fmt.Fprintf(&b, "wire: %.1f sent, %.1f datagram headers, %.1f seals, %.1f UDP and IP\n",
		kbit(total.coded()), kbit(total.datagram()), kbit(total.seals()), kbit(total.ip()))
	fmt.Fprintf(&b, "acks down, with their datagrams: %.1f, of which %.1f seals\n", kbit(o.ackBits()), kbit(float64(8*o.acks.AEADBytes)))
	t.lines = strings.Count(b.String(), "\n")
	_, _ = io.WriteString(t.w, b.String()) // a terminal that is gone is no reason to stop
}

func (r *row) cells(elapsed time.Duration) []string {
	kbit := func(bits float64) string { return fmt.Sprintf("%.1f", kbits(bits, elapsed)) }
	return []string{
		r.rpc,
		fmt.Sprintf("%.0f", float64(r.sent.Frames())/elapsed.Seconds()),
		kbit(r.full()),
		kbit(r.coded()),
		ratio(r.coded(), r.full()),
		kbit(r.coded() + r.around()),
		fmt.Sprintf("%.1f %%", 100*r.share()),
		fmt.Sprint(r.noDeltas()),
		fmt.Sprintf("%d ms", r.rtt.Milliseconds()),
	}
}

func kbits(bits float64, elapsed time.Duration) float64 { return bits / 1000 / elapsed.Seconds() }

func ratio(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", part/whole)
}

// summary writes what the whole run came to.
func (t *printer) summary(o observation, elapsed time.Duration) {
	if t.json {
		t.writeLine(o, elapsed, true)
		return
	}
	fmt.Fprintf(t.w, "\nIn %.1f s:\n", elapsed.Seconds())
	t.lines = 0
	t.draw(o, elapsed)
	total := o.total()
	n := float64(max(1, total.sent.Frames()))
	fmt.Fprintf(t.w, "A call takes %.0f bits in full and %.0f as sent, with its header; on the wire, with\n%.0f of datagram, %.0f of seal and %.0f of UDP and IP, %.0f and %.0f.\nFrames rebuilt: %d.\n",
		total.full()/n, total.coded()/n, total.datagram()/n, total.seals()/n, total.ip()/n,
		(total.full()+total.around())/n, (total.coded()+total.around())/n, total.delivered)
}
