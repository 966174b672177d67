package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

func TestDSErrors(t *testing.T) {
	schema := trace.SchemaPath(slice(t, sample.RocketLeague(), 1, nil).Name)
	same := trace.SchemaPath(slice(t, sample.Portal2(), 1, nil).Name)
	_, busy := startDS(t, "--schema", schema)
	keys, dir := keygen(t), t.TempDir()
	broken := filepath.Join(dir, "broken.schema.json")
	must(t, os.WriteFile(broken, []byte("{\n  \"rpc\": ,\n}"), 0o600))
	record := filepath.Join(dir, "out.csv")
	const help = "hint: uplink ds --help\n"
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"", 2, []string{"required flag(s) \"schema\" not set\n" + help}},
		{"--listen " + busy + " --schema " + schema + " --record " + record, 1, []string{"uplink: ds: ", busy, "\nhint: choose another address with --listen; port 0: any free one\n"}},
		{"--listen 192.0.2.1:0 --schema " + schema, 1, []string{"192.0.2.1"}},
		{"--listen 0.0.0.0:0 --schema " + schema, 1, []string{"loopback", "\nhint: uplink keygen -o ds.key writes one, for --key ds.key; for tests, --insecure at both ends needs none\n"}},
		{"--listen 127.0.0.1:0 --schema " + dir + "/none.schema.json", 1, []string{"uplink: trace: schema file: open " + dir + "/none.schema.json: no such file"}},
		{"--listen 127.0.0.1:0 --schema " + broken, 1, []string{"broken.schema.json: line 2, column "}},
		{"--listen 127.0.0.1:0 --schema " + schema + " --schema " + same, 1, []string{"uplink: --schema " + same + ": ds: ServerMove is handled already\n"}},
		{"--record " + record + " --schema " + schema + " --schema " + same, 2, []string{"uplink: --record: a file holds the frames of one RPC, but --schema is there 2 times; ", help}},
		{"--listen 127.0.0.1:0 --record " + dir + "/no/out.csv --schema " + schema, 1, []string{dir + "/no/out.csv: no such file"}},
		{"--listen 127.0.0.1:0 --metrics nowhere --record " + record + " --schema " + schema, 1, []string{"address nowhere: missing port", "choose another address with --metrics\n"}},
		{"--http-token 0123456789abcdef --schema " + schema, 2, []string{"uplink: --http-token: there is no HTTP server; add --metrics 127.0.0.1:9464, say\n" + help}},
		{"--metrics 127.0.0.1:0 --http-token short --schema " + schema, 2, []string{"uplink: --http-token: want 16 characters or more\n" + help}},
		{"--listen 127.0.0.1:0 --key " + dir + "/none.key --schema " + schema, 1, []string{"uplink: --key: open " + dir + "/none.key: no such file", "\nhint: want the file that uplink keygen -o made; "}},
		{"--listen 127.0.0.1:0 --key " + keys + ".issuer --schema " + schema, 1, []string{"uplink: --key " + keys + ".issuer: ", "this is an issuer's key\nhint: want the file that uplink keygen -o made; "}},
		{"--listen 0.0.0.0:0 --key " + keys + " --schema " + schema, 2, []string{"uplink: --listen 0.0.0.0:0: that is each address of the machine, but tokens name the one that clients dial; say which with --addr\n" + help}},
		{"--listen :7777 --key " + keys + " --schema " + schema, 2, []string{"uplink: --listen :7777: that is each address of the machine, ", help}},
		{"--addr game.example:7777 --schema " + schema, 2, []string{"uplink: --addr \"game.example:7777\": want an IP address and port such as 203.0.113.7:7777 or [2001:db8::7]:7777\n" + help}},
		{"--suite none --schema " + schema, 2, []string{"uplink: --suite none: it protects nothing; for measurements --insecure allows it\n" + help}},
		{"--ack-hz 0 --schema " + schema, 2, []string{"uplink: --ack-hz 0: want 1 to 1000 acks a second\n" + help}},
		{"--max-players 0 --schema " + schema, 2, []string{"uplink: --max-players 0: want 1 or more\n" + help}},
		{"--shards 0 --schema " + schema, 2, []string{"uplink: --shards 0: want 1 to ", help}},
		{"--shards 10000 --schema " + schema, 2, []string{"uplink: --shards 10000: want 1 to ", help}},
		{"--report 1ms --schema " + schema, 2, []string{"uplink: --report 1ms: want 0s, which is never, or at least 100ms\n" + help}},
		{"--json --schema " + schema, 2, []string{"uplink: --json: it is how --report writes; add --report 1s, say\n" + help}},
		{"--debug --schema " + schema, 2, []string{"uplink: --debug: it is served where --metrics is; add --metrics 127.0.0.1:9464, say\n" + help}},
		{"--log-format xml --schema " + schema, 2, []string{"uplink: invalid argument \"xml\" for \"--log-format\" flag: want text or json\n" + help}},
		{"--log-level loud --schema " + schema, 2, []string{"uplink: invalid argument \"loud\" for \"--log-level\" flag: ", help}},
		{"--ring 300 --schema " + schema, 2, []string{"uplink: --ring 300: want 2 to 256 frames\n" + help}},
	} {
		code, stdout, stderr := uplink(t, append([]string{"ds"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" {
			t.Errorf("uplink ds %s: code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("uplink ds %s: no %q in\n%s", c.args, want, stderr)
			}
		}
	}
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("a server that never listened began a record: %v", err)
	}
}
