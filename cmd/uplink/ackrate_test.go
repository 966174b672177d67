package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestAckRate expects more acks to take more down and less up.
func TestAckRate(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "a.svg")
	code, stdout, stderr := uplink(t, "ackrate", "--ack-hz", "5,10,30", "--svg", svg, rocketLeague)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if want := "; codec adaptive; encrypted with gcm, 16 bytes per datagram; up and acks in wire bits, "; !strings.Contains(stdout, want) {
		t.Errorf("no %q in %s", want, stdout)
	}
	var rows [][]float64
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n")[3:] {
		cells := strings.Fields(line)
		var row []float64
		for _, cell := range cells[len(cells)-3:] {
			v, err := strconv.ParseFloat(cell, 64)
			must(t, err)
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	if len(rows) != 3 || !strings.Contains(stdout, "kbit/s") || !strings.Contains(stdout, "  30 Hz\n") {
		t.Fatal(stdout)
	}
	up, down, sum := rows[0], rows[1], rows[2]
	for i := range up {
		if d := up[i] + down[i] - sum[i]; d < -0.011 || d > 0.011 {
			t.Errorf("%v + %v = %v", up[i], down[i], sum[i])
		}
		if i > 0 && (up[i] >= up[i-1] || down[i] <= down[i-1]) {
			t.Errorf("up %v, down %v", up, down)
		}
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(picture), ">rocketleague_solo_30hz</text>") {
		t.Errorf("%v: %s", err, picture)
	}
}
