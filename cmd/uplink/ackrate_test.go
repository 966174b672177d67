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
	if want := "; codec adaptive; encrypted with gcm, 16 bytes per datagram; up and acks are wire bits, "; !strings.Contains(stdout, want) {
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

func TestAckRateErrors(t *testing.T) {
	const hint = "hint: uplink ackrate --help\n"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"a.csv --ack-hz 10,5", 2, "uplink: --ack-hz 10,5: want ascending rates\n" + hint},
		{"a.csv --ack-hz 0,5", 2, "uplink: --ack-hz 0: want more than 0 and at most 1000 acks a second\n" + hint},
		{"a.csv --ack-hz 10 --svg a.svg", 2, "uplink: --svg: a curve needs at least two rates, see --ack-hz\n" + hint},
		{"a.csv --codec zip", 2, "uplink: --codec \"zip\": want some of paper, rle, adaptive\n" + hint},
		{"a.csv --loss 3", 2, "uplink: invalid argument \"3\" for \"--loss\" flag: want 0 to 1, or a percentage such as 5%\n" + hint},
		{rocketLeague + " --ack-hz 30,60 --svg " + t.TempDir() + "/no/a.svg", 1, "no/a.svg: no such file or directory\n"},
	} {
		code, stdout, stderr := uplink(t, append([]string{"ackrate"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.HasSuffix(stderr, c.want) || stdout != "" {
			t.Errorf("uplink ackrate %s: code %d, want %d\ngot  %swant %s%s", c.args, code, c.code, stderr, c.want, stdout)
		}
	}
}
