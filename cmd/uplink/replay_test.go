package main

import (
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// slice writes the first frames of a trace to a file of its own, to be played faster than it was recorded, with its
// schema beside it.
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

// TestRecord plays traces to a server that records them: what it delivered is what was sent.
func TestRecord(t *testing.T) {
	for _, c := range []struct {
		name     string
		full     *trace.Trace
		args     []string
		lossless bool
	}{
		{"loss", sample.RocketLeague(), []string{"--rtt", "20ms", "--loss", "25%"}, false},
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
			server.await(&server.stderr, "msg=\"player disconnected\" ") // it read all that came before
			server.interrupt()
			if code := server.wait(); code != 0 {
				t.Fatalf("code %d: %s", code, server.stderr.String())
			}
			rows := checkRecord(t, out, source)
			if total := fmt.Sprintf(": %d frames delivered, ", rows); !strings.Contains(server.stdout.String(), total) {
				t.Errorf("no %q in %s", total, server.stdout.String())
			}
			if (rows == 150) != c.lossless {
				t.Errorf("%d frames of 150 were delivered", rows)
			}
		})
	}
}

// checkRecord loads a record by the schema beside it, and holds it against the trace that was sent.
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
	server.await(&server.stderr, "msg=\"player disconnected\" ")
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

// TestReplayErrors asks servers for what they do not have.
func TestReplayErrors(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 5, nil)
	finer := slice(t, sample.RocketLeague(), 5, func(f []schema.Field) { f[0].Resolution /= 2 })
	other := slice(t, sample.Portal2(), 5, nil)
	field := source.Schema.Fields()[0].Name
	_, addr := startDS(t, "--schema", trace.SchemaPath(source.Name))
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	nobody := silent.LocalAddr().String()
	keys, dir := keygen(t), t.TempDir()
	const help = "hint: uplink replay --help\n"
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"--to " + nobody + " --wait 30ms " + source.Name, 1, []string{
			"uplink: client: dial " + nobody + ": ", "no answer within 30ms\nhint: is a server there? uplink ds --listen " + nobody + " --schema FILE runs one",
		}},
		{"--to " + addr + " " + finer.Name, 1, []string{"bind ServerMove: field \"" + field + "\" differs: here {" + field + " vec3 resolution=", "}, at the server {" + field}},
		{"--to " + addr + " " + other.Name, 1, []string{"bind ServerMove: field ", " differs: here ", "at the server "}},
		{"--to 192.0.2.1:7777 " + source.Name, 1, []string{"connect token", "\nhint: give the file .issuer of uplink keygen as --key, or a token as --token; for tests, --insecure at both ends needs none\n"}},
		{"--to nowhere --key " + keys + ".issuer " + source.Name, 2, []string{"uplink: --to \"nowhere\": want HOST:PORT, such as 127.0.0.1:7777\nhint: uplink replay --help\n"}},
		{"--to " + addr + " --key " + keys + " " + source.Name, 1, []string{"uplink: --key " + keys + ": ", "this is a server's key\nhint: want the file that uplink keygen wrote next to the server key, such as ds.key.issuer\n"}},
		{"--to " + addr + " --key " + keys + ".issuer " + source.Name, 1, []string{"altered, or made with another key", "\nhint: the server has another key: --key has to be the file .issuer that uplink keygen made with the server's, or "}},
		{"--to " + addr + " --token uplink-token-1.x " + source.Name, 1, []string{"uplink: --token: token: malformed: ", "\nhint: want the whole line that uplink token prints, or @ and the name of a file with it\n"}},
		{"--to " + addr + " --token @" + dir + "/none " + source.Name, 1, []string{"uplink: --token: open " + dir + "/none: no such file"}},
		{"--to " + addr + " --suite compact " + source.Name, 1, []string{"takes none of the suites", "\nhint: use the same --suite at both ends\n"}},
		{"--suite none a.csv", 2, []string{"uplink: --suite none: it protects nothing; for measurements --insecure allows it\n" + help}},
		{"--token x --key y a.csv", 2, []string{"uplink: --token: with --key tokens are made; leave one of them out\n" + help}},
		{"--to 127.0.0.1:none " + source.Name, 1, []string{"127.0.0.1:none"}},
		{dir + "/none.csv", 1, []string{"none.csv: no such file or directory\n"}},
		{"--loss 7 a.csv", 2, []string{"invalid argument \"7\" for \"--loss\" flag: want 0 to 1, or a percentage such as 5%\n" + help}},
		{"--jitter -1s a.csv", 2, []string{"uplink: --jitter -1s: want 0s to 1m0s\n" + help}},
		{"--ring 1 a.csv", 2, []string{"uplink: --ring 1: want 2 to 256 frames\n" + help}},
		{"--wait 0s a.csv", 2, []string{"uplink: --wait 0s: want more than 0s\n" + help}},
		{"--codec zip a.csv", 2, []string{"uplink: --codec \"zip\": ", help}},
		{"", 2, []string{"uplink: TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json\n" + help}},
	} {
		code, stdout, stderr := uplink(t, append([]string{"replay"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" {
			t.Errorf("uplink replay %s: code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("uplink replay %s: no %q in\n%s", c.args, want, stderr)
			}
		}
	}
}
