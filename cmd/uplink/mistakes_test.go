package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestMistakes makes those that people make: each is answered with what to do next.
func TestMistakes(t *testing.T) {
	moves := slice(t, sample.Portal2(), 10, nil).Name
	dir := filepath.Dir(moves)
	schema := trace.SchemaPath(moves)
	lonely := filepath.Join(t.TempDir(), "lonely.csv")
	must(t, os.WriteFile(lonely, []byte("x\n1\n"), 0o600))
	broken := filepath.Join(t.TempDir(), "broken.csv.gz")
	must(t, os.WriteFile(broken, []byte("x\n1\n"), 0o600))
	for _, c := range []struct {
		args string
		code int
		want string // a part of the answer
	}{
		// Names of commands and flags.
		{"dmeo", 2, `unknown command "dmeo"; did you mean demo?`},
		{"server", 2, `unknown command "server"` + "\nhint: uplink --help"},
		{"bench --rt 80ms " + moves, 2, "unknown flag: --rt; did you mean --rtt?"},
		{"bench --json=maybe " + moves, 2, `invalid argument "maybe" for "--json" flag`},
		{"ds --schemas " + schema, 2, "unknown flag: --schemas; did you mean --schema?"},
		{"bots --player 3 " + moves, 2, "unknown flag: --player; did you mean --players?"},
		{"demo --verbose", 2, "unknown flag: --verbose\nhint: uplink demo --help"},
		{"completion", 2, "for which shell? want one of bash, zsh, fish, powershell"},
		// Values.
		{"demo --rtt 80", 2, "--rtt 80: want a number and its unit, such as 80ms, 30s or 10m"},
		{"demo --for soon", 2, "--for soon: want a number and its unit"},
		{"demo --loss 5", 2, "want 0 to 1, or a percentage such as 5%"},
		{"demo --clients 1.5", 2, "--clients 1.5: want a whole number"},
		{"bench --ack-hz ten " + moves, 2, "--ack-hz ten: want a number"},
		{"bench --codec Adaptive " + moves, 2, "want some of paper, rle, adaptive"},
		{"ackrate --ack-hz 10,x " + moves, 2, "--ack-hz 10,x: want numbers with commas between them"},
		{"replay --codec zip " + moves, 2, "there are rle, adaptive"},
		{"replay --suite aes " + moves, 2, "want gcm, compact or none"},
		{"replay --log-format yaml " + moves, 2, "want text or json"},
		{"bots --redundancy 9 " + moves, 2, "want auto, off or 1 to 7 redundant frames"},
		// Addresses.
		{"replay --to localhost " + moves, 2, `--to "localhost": want HOST:PORT, such as 127.0.0.1:7777`},
		{"bots --to 7777 " + moves, 2, `--to "7777": want HOST:PORT`},
		{"ds --listen 7777 --schema " + schema, 2, `--listen "7777": want HOST:PORT`},
		{"ds --listen 127.0.0.1:0 --metrics 127.0.0.1:99999 --schema " + schema, 1, "choose another address with --metrics"},
		// Files.
		{"bench", 2, "TRACE: which recording? want a .csv or .csv.gz file"},
		{"inspect", 2, "CAPTURE: which capture? want a file that uplink ds --capture"},
		{"replay-capture --self", 2, "CAPTURE: which capture? want a file that uplink ds --capture"},
		{"decrypt", 2, "CAPTURE: which capture? want a .pcap or .pcapng file"},
		{"replay " + moves + " " + moves, 2, "accepts 1 arg(s), received 2\nhint: uplink replay --help"},
		{"ds " + schema + " --schema " + schema, 2, `": flags are all that this takes`},
		{"bench none.csv", 1, "trace: open none.csv: no such file"},
		{"bench " + dir, 1, "is a directory\nhint: want the traces in it: " + dir + "/*.csv.gz"},
		{"bench " + schema, 1, "is no trace\nhint: that is a schema file; name the .csv or .csv.gz"},
		{"bench " + lonely, 1, "hint: a trace needs a schema in NAME.schema.json, or in the file of --schema"},
		{"bench --schema " + schema + " " + broken, 1, "not a gzip file, which its name says it is"},
		{"bench --schema " + schema + " " + lonely, 1, `the header has "x"`},
		{"ds --listen 127.0.0.1:0 --schema " + moves, 1, "hint: this is a trace; its schema is in " + schema},
		{"bench --schema " + moves + " " + moves, 1, "hint: this is a trace; its schema is in " + schema},
		{"bench --prior " + moves + " " + moves, 1, "hint: uplink train TRACE... -o FILE writes a prior"},
		{"bench --distance 3 --fields --svg " + dir + "/no/fields.svg " + moves, 1, "--svg: open " + dir + "/no/fields.svg: no such file"},
		{"train " + moves, 2, "--output: name the file for the prior"},
		{"keygen", 2, "--output: name the file for the key"},
		{"token --client 3 --server 127.0.0.1:7777", 2, "uplink keygen makes one"},
	} {
		code, stdout, stderr := uplink(t, strings.Fields(c.args)...)
		if code != c.code || !strings.HasPrefix(stderr, "uplink: ") && !strings.HasPrefix(stderr, "time=") || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("uplink %s: code %d, want %d and %q in\n%s%s", c.args, code, c.code, c.want, stderr, stdout)
		}
	}
}

// TestHelpHasExamples: each command's help shows how it is called, with flags that it has.
func TestHelpHasExamples(t *testing.T) {
	for _, c := range newRoot(&profiler{}).Commands() {
		if c.Hidden {
			continue
		}
		if c.Example == "" || c.Short == "" || c.Long == "" {
			t.Errorf("%s: no example, or no description", c.Name())
		}
		shown := 0
		for line := range strings.Lines(c.Example) {
			_, args, ok := strings.Cut(line, "uplink "+c.Name())
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q", c.Name(), line)
			}
			if !ok { // what comes before or after
				continue
			}
			shown++
			for _, word := range strings.Fields(args) {
				name, isFlag := strings.CutPrefix(word, "--")
				if name, _, _ = strings.Cut(name, "="); isFlag && c.Flags().Lookup(name) == nil {
					t.Errorf("%s: the example %q has no such flag", c.Name(), line)
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s: no example calls it", c.Name())
		}
	}
}
