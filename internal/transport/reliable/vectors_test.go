package reliable

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// traceSegment is a segment of a datagram, without its conversation and data.
type traceSegment struct {
	Command  uint8  `json:"cmd"`
	Fragment uint8  `json:"frg"`
	Window   uint16 `json:"wnd"`
	Time     uint32 `json:"ts"`
	Number   uint32 `json:"sn"`
	Unacked  uint32 `json:"una"`
	Length   int    `json:"len"`
}

// traceEvent is an event of a trace: message, datagram, lost datagram or delivery. End is 0 or 1:
// the sender, or the receiver of a delivery.
type traceEvent struct {
	At       int64          `json:"at_ms"`
	Event    string         `json:"event"`
	End      int            `json:"end"`
	Message  string         `json:"message,omitempty"`
	Segments []traceSegment `json:"segments,omitempty"`
	Bytes    string         `json:"bytes,omitempty"`
}

// trace is two ends, 30 ms apart, and what they do.
type trace struct {
	t      *testing.T
	start  time.Time
	base   *uint32 // KCP's clock at the start
	ends   [2]Channel
	flying [2][]inFlight
	sent   [2]int
	lost   [2]map[int]bool // datagrams of each end, counted from 0
	events []traceEvent
}

func (tr *trace) ms() int64 { return time.Since(tr.start).Milliseconds() }

// output records a datagram. Its timestamps count from the start of the trace.
func (tr *trace) output(end int, b []byte) {
	e := traceEvent{At: tr.ms(), Event: "datagram", End: end}
	shown := bytes.Clone(b)
	for s := range segmentsOf(shown) {
		if tr.base == nil { // the first segment is a push
			base := timestamp(s) - uint32(tr.ms())
			tr.base = &base
		}
		put(s[offTime:], timestamp(s)-*tr.base)
		e.Segments = append(e.Segments, traceSegment{s[offCommand], s[offFragment], binary.LittleEndian.Uint16(s[offWindow:]), timestamp(s), number(s), unacked(s), length(s)})
	}
	e.Bytes = hex.EncodeToString(shown)
	if tr.lost[end][tr.sent[end]] {
		e.Event = "lost"
	} else {
		tr.flying[1-end] = append(tr.flying[1-end], inFlight{time.Now().Add(30 * time.Millisecond), bytes.Clone(b)})
	}
	tr.sent[end]++
	tr.events = append(tr.events, e)
}

// run lets time pass, in steps of a millisecond.
func (tr *trace) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		now := time.Now()
		for i := range tr.ends {
			for len(tr.flying[i]) > 0 && !tr.flying[i][0].at.After(now) {
				body := tr.flying[i][0].body
				tr.flying[i] = tr.flying[i][1:]
				check.Must(tr.t, tr.ends[i].Input(now, body))
				for m, ok, err := tr.ends[i].Receive(now, nil); ok; m, ok, err = tr.ends[i].Receive(now, nil) {
					check.Must(tr.t, err)
					tr.events = append(tr.events, traceEvent{At: tr.ms(), Event: "delivery", End: i, Message: shorten(m)})
				}
			}
			tr.ends[i].Advance(now)
		}
	}
}

// shorten returns a message as text: large ones consist of one letter.
func shorten(m []byte) string {
	if len(m) < 100 {
		return string(m)
	}
	return fmt.Sprintf("%c * %d", m[0], len(m))
}

func (tr *trace) send(end int, m string) {
	tr.events = append(tr.events, traceEvent{At: tr.ms(), Event: "message", End: end, Message: shorten([]byte(m))})
	check.Must(tr.t, tr.ends[end].Send(time.Now(), []byte(m)))
}

// TestVectors writes or compares kcp.json: messages in both directions, some in one segment, lost
// data and lost acknowledgments, and a message after both ends have freed their state.
func TestVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trace{t: t, start: time.Now(), lost: [2]map[int]bool{{1: true, 4: true}, {3: true}}}
		for i := range tr.ends {
			tr.ends[i] = New(Config{Conv: 0x77665544, MTU: testMTU, Overhead: testOverhead, Patience: 15 * time.Second, Output: func(_ time.Time, b []byte) { tr.output(i, b) }})
		}
		tr.run(5 * time.Millisecond)
		tr.send(0, "first")
		tr.run(20 * time.Millisecond)
		tr.send(0, "lost, and sent again")
		tr.send(1, "from the other end")
		tr.run(200 * time.Millisecond)
		tr.send(0, strings.Repeat("a", 3000))
		tr.send(0, "after it")
		tr.run(400 * time.Millisecond)
		tr.send(1, strings.Repeat("b", 1149))
		for _, m := range []string{"c", "small messages", "share a segment", strings.Repeat("d", 128), strings.Repeat("e", 129)} {
			tr.send(1, m)
		}
		tr.run(5 * time.Second)
		for i := range tr.ends {
			if tr.ends[i].kcp != nil {
				t.Errorf("end %d has not freed its state", i)
			}
		}
		tr.send(1, "numbers continue")
		tr.run(time.Second)
		var messages, deliveries [2][]string
		lost := 0
		for _, e := range tr.events {
			switch e.Event {
			case "message":
				messages[1-e.End] = append(messages[1-e.End], e.Message)
			case "delivery":
				deliveries[e.End] = append(deliveries[e.End], e.Message)
			case "lost":
				lost++
			}
		}
		for i := range messages {
			if strings.Join(messages[i], "|") != strings.Join(deliveries[i], "|") || lost != 3 {
				t.Errorf("end %d received %q of %q; %d datagrams were lost", i, deliveries[i], messages[i], lost)
			}
		}
		vectors.Check(t, "testdata/vectors/kcp.json", vectors.Section{Name: "events", Value: tr.events})
	})
}
