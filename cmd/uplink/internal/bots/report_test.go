package bots

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		uplinktest.Must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func good() *Report {
	return &Report{
		Players: PlayerCounts{Asked: 500, Connected: 500},
		Rate:    60, Codec: "adaptive", Link: "none", Seconds: 30.02,
		Frames:    FrameCounts{Sent: 900_120, PerSecond: 29984, Delivered: 900_100, Missed: 0},
		Datagrams: DatagramCounts{Sent: 915_000, Received: 165_000},
		Bits:      FrameBits{Full: 198, Payload: 41.6, Up: 291.2, Down: 54.1},
		RTT:       meter.Summary{Count: 15_000, P50: 1, P90: 1, P99: 2, P999: 3, Max: 7},
		Lateness:  meter.Summary{Count: 900_120, P50: 0.214, P90: 0.631, P99: 1.37, P999: 4.02, Max: 12.6},
		CPU:       CPUUse{Seconds: 11.7, Cores: 0.39, Micros: 13.02},
	}
}

// bad is a run in which all went wrong.
func bad() *Report {
	r := good()
	r.Link = "RTT 80ms, jitter 5ms, loss 5 % in bursts of 3"
	r.Players = PlayerCounts{Asked: 500, Connected: 489, Reconnecting: 3, Failed: 6, Ended: 2, Reconnections: 41}
	r.Frames = FrameCounts{Sent: 700_000, PerSecond: 23_318, Delivered: 690_000, Missed: 2_000, Reconnecting: 812, Skipped: 99_000}
	r.Datagrams = DatagramCounts{Sent: 800_000, Received: 150_000, SendFailed: 7, LostUp: 35_000, LostDown: 8_000}
	r.Lateness = meter.Summary{Count: 799_000, P50: 2.5, P90: 31, P99: 112, P999: 220, Max: 1031}
	r.RTT = meter.Summary{}
	return r
}

func TestReport(t *testing.T) {
	golden(t, "report.golden", good().String())
	golden(t, "trouble.golden", bad().String())
	for name, r := range map[string]*Report{"report.json.golden": good(), "trouble.json.golden": bad()} {
		b, err := json.MarshalIndent(r, "", "  ")
		uplinktest.Must(t, err)
		golden(t, name, string(b)+"\n")
	}
	if good().Starved() || !bad().Starved() {
		t.Error("the wrong one was starved")
	}
}

// TestProgress: the line of the largest run still fits a terminal.
func TestProgress(t *testing.T) {
	p := Progress{
		Elapsed: 125 * time.Second, Connected: 3000, Asked: 3000, PerSecond: 179_998, Delivered: 179_000, Missed: 20,
		Cores: 1.234, RTT: meter.Summary{P99: 2}, Lateness: meter.Summary{P99: 0.41},
	}
	const want = "125 s: 3000/3000 players, 179998/s, 99.99 % came, rtt 2, late 0.41 ms, cpu 1.23"
	if got := p.String(); got != want || len(got) > 79 {
		t.Errorf("%q of %d columns, want %q", got, len(got), want)
	}
	p.Failed = 3
	if got := p.String(); got == want {
		t.Error("failures are not shown")
	}
}
