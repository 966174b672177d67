package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// big returns the counts of a thousand clients in one second.
func big() observation {
	return observation{
		rows: []row{
			{rpc: "PortalMove", counts: counts{Sent: rpcdelta.Stats{Delta: 30_000, Keyframe: 400, FullBits: 6_400_000}, Messages: 30_400, Bytes: 600_000, AEADBytes: 30_400 * 16, Delivered: 30_000, Missed: 0}, rtt: 2 * time.Second},
			{rpc: "RocketMove", counts: counts{Sent: rpcdelta.Stats{Delta: 10_000, Reset: 10_000, FullBits: 4_800_000}, Messages: 20_000, Bytes: 700_000, AEADBytes: 20_000 * 8, Delivered: 1000, Missed: 9000}, rtt: 80 * time.Millisecond},
		},
		acks: ds.AckStats{Messages: 10_000, Bytes: 50_000, AEADBytes: 160_000},
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	newPrinter(&b, &Options{}).draw(big(), time.Second)
	const want = `
                      kbit/s                                       key-
RPC         calls/s     full     sent  ratio     wire  delivery  frames      RTT
PortalMove    30400   6400.0   4800.0   0.75  16230.4   100.0 %     400  2000 ms
RocketMove    20000   4800.0   5600.0   1.17  11840.0    10.0 %   10000    80 ms
all           50400  11200.0  10400.0   0.93  28070.4    77.5 %   10400  1040 ms
wire: 10400.0 sent, 1209.6 datagram headers, 5171.2 AEAD, 11289.6 UDP and IP
acks on the downlink, with their datagrams: 4160.0, of which 1280.0 AEAD
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestRedraw: each table ends where the first one did, and leaves nothing else behind.
func TestRedraw(t *testing.T) {
	var b strings.Builder
	live := newPrinter(&b, &Options{Live: true})
	live.draw(big(), time.Second)
	first := b.String()
	live.draw(big(), time.Second)
	lines := strings.Count(first, "\n")
	if want := first + "\x1b[8A\x1b[J" + first; b.String() != want || lines != 8 {
		t.Errorf("%d lines, then %q", lines, strings.TrimPrefix(b.String(), first))
	}
	b.Reset()
	live.summary(big(), time.Second)
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("the summary takes the last table away: %q", b.String())
	}
}

func TestEmpty(t *testing.T) {
	var b strings.Builder
	newPrinter(&b, &Options{}).summary(observation{rows: []row{{rpc: "Move"}}}, time.Second)
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%s in\n%s", bad, b.String())
		}
	}
}
