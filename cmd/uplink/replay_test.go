package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// slice writes the first frames of a trace to a file of its own, to be played faster than it was
// recorded, with its schema beside it.
func slice(t *testing.T, full *trace.Trace, frames int, change func([]schema.Field)) *trace.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slice.csv")
	fields := slices.Clone(full.Schema.Fields())
	if change != nil {
		change(fields)
	}
	move, err := schema.New(full.Schema.RPC(), 500, fields)
	must(t, err)
	must(t, trace.WriteSchema(trace.SchemaPath(path), move))
	w, err := trace.Create(path, move)
	must(t, err)
	for i := range frames {
		must(t, w.Write(&full.Frames[i]))
	}
	must(t, w.Close())
	return &trace.Trace{Name: path, Schema: move, Frames: full.Frames[:frames]}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startDS starts a server on a free port and gives its address.
func startDS(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	p := start(t, append([]string{"ds", "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.await(&p.stderr, `msg=listening addr=(\S+)\n`)[1]
}

// TestRecord replays traces to a recording server: the delivered frames equal the sent ones.
func TestRecord(t *testing.T) {
	for _, c := range []struct {
		name     string
		full     *trace.Trace
		args     []string
		lossless bool
	}{
		{"loss", sample.RocketLeague(), []string{"--rtt", "20ms", "--loss", "25%", "--codec", "rle"}, false},
		{"reordering", sample.Portal2(), []string{"--jitter", "10ms", "--loss", "0.05", "--ring", "8"}, false},
		{"perfect", sample.Portal2(), nil, true},
		{"reliable", sample.RocketLeague(), []string{"--reliable", "--rtt", "4ms", "--loss", "10%"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := slice(t, c.full, 150, nil)
			out := filepath.Join(t.TempDir(), "out.csv.gz")
			server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--record", out, "--ack-hz", "100")
			client := start(t, append([]string{"replay", "--to", addr, source.Name}, c.args...)...)
			if code := client.wait(); code != 0 || !strings.HasPrefix(client.stdout.String(), "150 frames sent: ") {
				t.Fatalf("code %d: %s%s", code, client.stdout.String(), client.stderr.String())
			}
			server.await(&server.stderr, `msg="player disconnected" `) // it read all that came before
			server.interrupt()
			if code := server.wait(); code != 0 {
				t.Fatalf("code %d: %s", code, server.stderr.String())
			}
			rows := checkRecord(t, out, source)
			if total := fmt.Sprintf(": %d frames delivered, ", rows); !strings.Contains(server.stdout.String(), total) {
				t.Errorf("no %q in %s", total, server.stdout.String())
			}
			if c.lossless && rows != 150 {
				t.Errorf("%d frames of 150 were delivered", rows)
			}
		})
	}
}

// checkRecord loads a recording by its schema file, and compares it with the trace that was sent.
func checkRecord(t *testing.T, path string, source *trace.Trace) (rows int) {
	t.Helper()
	got, err := trace.Load(path, nil)
	must(t, err)
	if got.Schema.Fingerprint() != source.Schema.Fingerprint() || got.Schema.RateHz() != source.Schema.RateHz() {
		t.Errorf("the record's schema is another one: %v", got.Schema.Fields())
	}
	next := 0
	for i, extra := range extraColumns(t, path, source.Schema) {
		n, missed := extra[0], extra[1]
		if n < next || missed != n-next {
			t.Fatalf("frame %d comes when %d is next, and misses %d", n, next, missed)
		}
		next = n + 1
		if !got.Frames[i].Equal(&source.Frames[n]) {
			t.Errorf("row %d is not frame %d: %v, want %v", i, n, got.Frames[i], source.Frames[n])
		}
	}
	return len(got.Frames)
}

// extraColumns reads sequence and missed of each row. A trace of another schema reads any columns.
func extraColumns(t *testing.T, path string, recorded *schema.Schema) (rows [][2]int) {
	t.Helper()
	extra, err := schema.New("Extra", recorded.RateHz(), []schema.Field{
		{Name: "Sequence", Kind: schema.KindUint, Width: 32, Columns: []string{"sequence"}},
		{Name: "Missed", Kind: schema.KindUint, Width: 32, Columns: []string{"missed"}},
	})
	must(t, err)
	r, err := trace.Load(path, extra)
	must(t, err)
	for i := range r.Frames {
		rows = append(rows, [2]int{int(extra.Uint(&r.Frames[i], 0, 0)), int(extra.Uint(&r.Frames[i], 1, 0))})
	}
	return rows
}

// TestRecordColumns reads the record as any other program would.
func TestRecordColumns(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 20, nil)
	out := filepath.Join(t.TempDir(), "out.csv")
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--record", out, "--capture", filepath.Join(t.TempDir(), "out.uplink"), "--metrics", "127.0.0.1:0")
	if code, _, stderr := uplink(t, "replay", "--to", addr, source.Name); code != 0 {
		t.Fatal(stderr)
	}
	url := server.await(&server.stderr, `msg=metrics url=(\S+)\n`)[1]
	text := get(t, url)
	for _, want := range []string{"\nuplink_ds_datagrams_total{", "\nuplink_ds_file_lost_total{file=\"record\"} 0\n", "\nuplink_ds_file_lost_total{file=\"capture\"} 0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	server.await(&server.stderr, `msg="player disconnected" `)
	server.interrupt()
	server.wait()
	f, err := os.Open(out)
	must(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	must(t, err)
	if want := []string{"player", "sequence", "missed", "received_s"}; !slices.Equal(rows[0][:4], want) {
		t.Errorf("columns %v, want %v", rows[0][:4], want)
	}
	for i, row := range rows[1:] {
		if _, err := strconv.ParseUint(row[0], 10, 64); err != nil || row[0] != rows[1][0] || row[1] != strconv.Itoa(i) {
			t.Errorf("row %d: %v", i, row)
		}
	}
}

// TestReplayLoop plays again and again until Ctrl-C.
func TestReplayLoop(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 20, nil)
	out := filepath.Join(t.TempDir(), "out.csv")
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--record", out, "--report", "100ms")
	client := start(t, "replay", "--to", addr, "--loop", source.Name)
	server.await(&server.stdout, ` 1 players, [1-9]`) // the client knows that it is bound: it plays
	client.interrupt()
	if code := client.wait(); code != 0 || !strings.Contains(client.stdout.String(), " frames sent: ") {
		t.Errorf("code %d: %s%s", code, client.stdout.String(), client.stderr.String())
	}
}

// TestReplaySkipped verifies that a reliable replay fails if it skipped frames.
func TestReplaySkipped(t *testing.T) {
	st := sent{RPC: "Move", Frames: 680}
	must(t, st.complete())
	st.Skipped = 820
	const want = "uplink: --reliable: 820 of 1500 frames of Move were skipped\nhint: the link delivers less than the trace has"
	var out strings.Builder
	if code := report(&out, newReplayCommand(), st.complete()); code == 0 || !strings.HasPrefix(out.String(), want) {
		t.Errorf("code %d: %s", code, &out)
	}
}
