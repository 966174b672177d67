package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// failure is a command line that fails with an exit code. want contains parts of standard error, in
// order and separated by an ellipsis. Exit code 2 also wants a hint to the command's help.
type failure struct {
	args string
	code int
	want string
}

// checkFailures runs the command lines, each after the words of command.
func checkFailures(t *testing.T, command string, table []failure) {
	t.Helper()
	for _, c := range table {
		args := strings.Fields(command + " " + c.args)
		code, stdout, stderr := uplink(t, args...)
		rest, ok := stderr, code == c.code && stdout == "" && (strings.HasPrefix(stderr, "uplink: ") || strings.HasPrefix(stderr, "time="))
		for part := range strings.SplitSeq(c.want, "...") {
			i := strings.Index(rest, part)
			ok = ok && i >= 0
			rest = rest[max(i, 0)+min(len(part), len(rest)-max(i, 0)):]
		}
		if command != "" && c.code == 2 {
			ok = ok && strings.HasSuffix(stderr, "\nhint: uplink "+args[0]+" --help\n")
		}
		if !ok {
			t.Errorf("uplink %s: code %d, want %d\ngot  %swant %s\n%s", strings.Join(args, " "), code, c.code, stderr, c.want, stdout)
		}
	}
}

// writeFiles writes files into a new directory and returns its path.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const (
	wantTrace = "uplink: TRACE: want a .csv or .csv.gz file, with its schema in NAME.schema.json\n"
	wantShare = ": want 0 to 1, or a percentage such as 5%\n"
	notPlain  = "uplink: --suite none: it does not encrypt; --insecure permits it, for measurements\n"

	oneScalar = `{"rpc": "Move", "rate_hz": 60, "fields": [{"name": "X", "kind": "scalar", "columns": ["x"], "resolution": 1}]}`
)

// TestCommonErrors tests errors that several commands share.
func TestCommonErrors(t *testing.T) {
	moves := slice(t, sample.Portal2(), 10, nil).Name
	parent, schema := filepath.Dir(moves), trace.SchemaPath(moves)
	dir := writeFiles(t, map[string]string{
		"lonely.csv": "x\n1\n", "broken.csv.gz": "x\n1\n", "ragged.csv": "x,y\n1,2\n3\n", "ragged.schema.json": oneScalar,
	})
	lonely, ragged := dir+"/lonely.csv", dir+"/ragged.csv"
	checkFailures(t, "", []failure{
		// Names of commands and flags.
		{"dmeo", 2, `unknown command "dmeo"; did you mean demo?` + "\nhint: uplink --help\n"},
		{"help dmeo", 2, `unknown command "dmeo"; did you mean demo?` + "\nhint: uplink help --help\n"},
		{"server", 2, `unknown command "server"` + "\nhint: uplink --help\n"},
		{"--verbose", 2, "unknown flag: --verbose\nhint: uplink --help\n"},
		{"bench --rt 80ms " + moves, 2, "unknown flag: --rt; did you mean --rtt?"},
		{"bench --json=maybe " + moves, 2, "uplink: --json maybe: want true or false"},
		{"ds --schemas " + schema, 2, "unknown flag: --schemas; did you mean --schema?"},
		{"bots --player 3 " + moves, 2, "unknown flag: --player; did you mean --players?"},
		{"completion", 2, "want one shell of bash, zsh, fish, powershell"},
		{"completion tcsh", 2, "uplink: completion: want one shell of bash, zsh, fish, powershell\nhint: uplink completion --help\n"},
		// Values.
		{"demo --rtt 80", 2, "--rtt 80: want a number and its unit, such as 80ms, 30s or 10m"},
		{"demo --for soon", 2, "--for soon: want a number and its unit"},
		{"demo --clients 1.5", 2, "--clients 1.5: want a whole number"},
		{"bench --ack-hz ten " + moves, 2, "--ack-hz ten: want a number"},
		{"bench --codec Adaptive " + moves, 2, "want some of paper, rle, adaptive"},
		{"replay --suite aes " + moves, 2, "want gcm, chacha, compact, chacha-compact or none"},
		// Addresses.
		{"replay --to localhost " + moves, 2, `--to "localhost": want HOST:PORT, such as 127.0.0.1:7777`},
		{"bots --to 7777 " + moves, 2, `--to "7777": want HOST:PORT`},
		{"ds --listen 7777 --schema " + schema, 2, `--listen "7777": want HOST:PORT`},
		{"ds --listen 127.0.0.1:0 --metrics 127.0.0.1:99999 --schema " + schema, 2, `--metrics "127.0.0.1:99999": want HOST:PORT`},
		// Files.
		{"inspect", 2, "CAPTURE: want a file of uplink ds --capture"},
		{"replay-capture --self", 2, "CAPTURE: want a file of uplink ds --capture"},
		{"decrypt", 2, "CAPTURE: want a .pcap or .pcapng file"},
		{"replay " + moves + " " + moves, 2, "want one file, this is the second\nhint: uplink replay --help"},
		{"ds " + schema + " --schema " + schema, 2, `": want flags only`},
		{"bench none.csv", 1, "uplink: trace: open none.csv: no such file or directory\n"},
		{"bench " + parent, 1, "is a directory\nhint: want the traces in it: " + parent + "/*.csv.gz"},
		{"bench " + schema, 1, "is not a trace\nhint: this is a schema file; want its .csv or .csv.gz"},
		{"bench " + lonely, 1, "lonely.schema.json: no such file or directory\nhint: a trace needs a schema in NAME.schema.json, or in the file of --schema\n"},
		{"bench " + dir + "/none.csv --schema " + dir + "/ragged.schema.json", 1, "uplink: trace: open " + dir + "/none.csv: no such file or directory\n"},
		{"bench " + ragged, 1, "uplink: trace: " + ragged + ": row 2 (line 3): 1 cells, want 2 as in the header\n"},
		{"bench --schema " + schema + " " + dir + "/broken.csv.gz", 1, "not a gzip file, which its name says it is"},
		{"bench --schema " + schema + " " + lonely, 1, `the header has "x"`},
		{"ds --listen 127.0.0.1:0 --schema " + moves, 1, "hint: this is a trace; its schema is in " + schema},
		{"bench --schema " + moves + " " + moves, 1, "hint: this is a trace; its schema is in " + schema},
		{"bench --prior " + moves + " " + moves, 1, "hint: uplink train TRACE... -o FILE writes a prior"},
		{"bench --distance 3 --fields --svg " + dir + "/no/fields.svg " + moves, 1, "--svg: open " + dir + "/no/fields.svg: no such file"},
	})
}

// TestMeasuringErrors tests the errors of commands that read traces.
func TestMeasuringErrors(t *testing.T) {
	computes(t)
	checkFailures(t, "analyze", []failure{
		{"", 2, wantTrace},
		{"a.csv --distance 0", 2, "uplink: --distance 0: want at least 1 frame\n"},
		{"a.csv --distance 3 --loss 5%", 2, "uplink: --loss: there is no link with --distance; leave one of them out\n"},
		{"a.csv --json --html x.html", 2, "uplink: --json and --html: choose one\n"},
		{"a.csv --losses 1", 2, "uplink: --losses: it needs --what-if\n"},
		{"a.csv --what-if --loss 5%", 2, "uplink: --loss: with --what-if it is --losses\n"},
		{"a.csv --what-if --losses 5", 2, "uplink: --losses \"5\": want 0 to 1, or a percentage such as 5%\n"},
		{"a.csv --what-if --redundancies 99", 2, "uplink: --redundancies \"99\": want auto, off or 1 to 15 redundant frames\n"},
		{"a.csv --what-if --distance 3", 2, "uplink: --distance: --what-if needs a link; leave one of them out\n"},
		{"a.csv --what-if --html x.html", 2, "uplink: --html: --what-if writes a table or --json\n"},
		{"a.csv --what-if --resolutions 0", 2, "uplink: --resolutions 0: want factors of 1/65536 to 65536\n"},
		{"--what-if --errors Nothing " + rocketLeague, 1, "uplink: --errors Nothing: "},
		{"--what-if --rates 29 " + rocketLeague, 1, "uplink: --rates 29: "},
		{"none.csv", 1, "uplink: trace: open none.csv: no such file or directory\n"},
	})
	checkFailures(t, "bench", []failure{
		{"", 2, wantTrace},
		{"a.csv --prior=", 2, "uplink: --prior: the name of the file is empty\n"},
		{"a.csv --json=x", 2, "uplink: --json x: want true or false\n"},
		{"a.csv --loss 5", 2, "uplink: --loss 5" + wantShare},
		{"a.csv --loss x%", 2, "uplink: --loss x%" + wantShare},
		{"a.csv --ack-hz -1", 2, "uplink: --ack-hz -1: want 0 to 1000 acks a second\n"},
		{"a.csv --rtt -5ms", 2, "uplink: --rtt -5ms: want 0s to 1m0s\n"},
		{"a.csv --svg x.svg", 2, "uplink: --svg: it needs --fields\n"},
		{"a.csv --fields --seeds 2", 2, "uplink: --fields: leave out --seeds, --frames and --warmup\n"},
		{"a.csv --fields --codec rle", 2, "uplink: --fields: it needs adaptive among --codec\n"},
		{"a.csv --seeds 0 --frames -1", 2, "uplink: --frames -1: want 0 to 1000000000\n"},
		{"a.csv --distance 0", 2, "uplink: --distance 0: want at least 1 frame\n"},
		{"a.csv --distance -1", 2, "uplink: --distance -1: want 1 to 255 frames\n"},
		{"a.csv --distance 6 --loss 1%", 2, "uplink: --loss: there is no link with --distance; leave one of them out\n"},
		{"a.csv --distance 6 --downlink 30", 2, "uplink: --downlink: there is no link with --distance; leave one of them out\n"},
		{"a.csv --downlink -1", 2, "uplink: --downlink -1: want 0 to 1000 datagrams a second\n"},
		{"a.csv --preset fast", 2, "no preset \"fast\": want all or some of low-latency, balanced, low-bandwidth\n"},
		{"a.csv --preset all --suite gcm", 2, "uplink: --suite: leave it out with --preset, which sets it for adaptive\n"},
		{"a.csv --preset all --send-every 2", 2, "uplink: --preset: leave out --send-every, which it sets, and --distance\n"},
		{"a.csv --preset all --codec rle", 2, "uplink: --preset: it needs adaptive among --codec\n"},
	})
	checkFailures(t, "tune", []failure{
		{"--error A=1", 2, wantTrace},
		{"a.csv", 2, "uplink: --error: want maximum errors of fields, such as Location=1cm\n"},
		{"a.csv --error Location", 2, "uplink: --error \"Location\": want Field=0.01, or with a unit Field=1cm\n"},
		{"a.csv --error A=1,A=2", 2, "uplink: --error: A is named twice\n"},
		{"a.csv --error A=1 --unit A=x", 2, "uplink: --unit A=x: there are cm, "},
		{"a.csv --error A=1 --delivery 3", 2, "uplink: --delivery 3: want "},
		{"a.csv --error A=1 --loss 2", 2, "uplink: --loss 2: want"},
		{"none.csv --error A=1", 1, "uplink: trace: open none.csv: no such file or directory\n"},
		{"--error Nothing=1 " + rocketLeague, 1, "uplink: --error Nothing: ServerMove has no such field; there are Velocity, Location, "},
		{"--error Throttle=1 " + rocketLeague, 1, "uplink: --error Throttle: a uint is not rounded"},
		{"--error Location=1deg " + rocketLeague, 1, "uplink: --error Location: deg is one of angle, but Location has one of length"},
		{"--error Location=1 -o " + os.DevNull + "/x " + rocketLeague, 1, "uplink: --output: "},
	})
}

// TestPriorErrors tests the errors of training and of priors.
func TestPriorErrors(t *testing.T) {
	dir := writeFiles(t, map[string]string{"broken.prior": "no prior"})
	checkFailures(t, "train", []failure{
		{"", 2, wantTrace},
		{"a.csv", 2, "uplink: --output: name the file for the prior\n"},
		{"a.csv --leave-one-out", 2, "uplink: --leave-one-out: want at least two traces\n"},
		{"a.csv b.csv --leave-one-out --halves", 2, "uplink: --leave-one-out and --halves: choose one\n"},
		{"a.csv --halves -o x", 2, "uplink: --output: nothing is written with --leave-one-out or --halves; leave one of them out\n"},
		{"a.csv --halves --generic", 2, "uplink: --generic: --leave-one-out and --halves include it; leave it out\n"},
		{"a.csv --halves --distance 0", 2, "uplink: --distance 0: want at least 1 frame\n"},
		{"a.csv --halves --distance 64", 2, "uplink: --distance 64: want less than --ring 64\n"},
		{"a.csv -o x --distance 3", 2, "uplink: --distance: it needs --leave-one-out or --halves\n"},
		{"-o " + dir + " " + portal2, 1, "uplink: --output: open " + dir + ": is a directory\n"},
	})
	broken := dir + "/broken.prior"
	notPrior := "uplink: --prior " + broken + ": prior: not a usable prior: ...\nhint: uplink train TRACE... -o FILE writes a prior\n"
	prior, _ := trainOn(t, slice(t, sample.Portal2(), 100, nil).Name)
	const otherCodec = "--prior: only --codec adaptive uses a prior\n"
	checkFailures(t, "", []failure{
		{"bench --prior " + broken + " " + portal2, 1, notPrior},
		{"bench --prior " + dir + "/none " + portal2, 1, "uplink: --prior: open " + dir + "/none: no such file or directory\n"},
		{"replay --codec adaptive --prior " + broken + " " + portal2, 1, notPrior},
		{"ds --schema x --prior " + broken, 1, notPrior},
		{"bench --codec rle --prior " + prior + " " + portal2, 2, "--prior: only --codec adaptive "},
		{"replay --codec rle --prior " + prior + " " + portal2, 2, otherCodec},
	})
}

// TestClientErrors tests the errors of commands that connect to a server.
func TestClientErrors(t *testing.T) {
	source, other := slice(t, sample.RocketLeague(), 5, nil), slice(t, sample.Portal2(), 5, nil)
	scalars := slice(t, sample.RocketLeague(), 5, func(f []schema.Field) { f[0].Kind = schema.KindScalar })
	field := source.Schema.Fields()[0].Name
	_, addr := startDS(t, "--suite", "gcm", "--schema", trace.SchemaPath(source.Name))
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	nobody := silent.LocalAddr().String()
	keys, dir := keygen(t), t.TempDir()
	needsToken := "connect token...\nhint: give the file .issuer of uplink keygen as --key, or a token as --token; for tests, a server without --key needs none on loopback, or with --insecure at both ends\n"
	otherSchema := "bind ServerMove: field ... cannot be converted: here ...at the server "
	checkFailures(t, "replay", []failure{
		{"", 2, wantTrace},
		{"--to " + nobody + " --wait 30ms " + source.Name, 1, "uplink: client: dial " + nobody + ": no answer from the server: waited 30ms (--wait)\nhint: is a server there? uplink ds --listen " + nobody + " --schema FILE runs one"},
		{"--to " + addr + " " + scalars.Name, 1, "bind ServerMove: field \"" + field + "\" cannot be converted: here {" + field + " scalar count=3 resolution=...}, at the server {" + field},
		{"--to " + addr + " " + other.Name, 1, otherSchema},
		{"--to 192.0.2.1:7777 " + source.Name, 1, needsToken},
		{"--to nowhere --key " + keys + ".issuer " + source.Name, 2, "uplink: --to \"nowhere\": want HOST:PORT, such as 127.0.0.1:7777\n"},
		{"--to " + addr + " --key " + keys + " " + source.Name, 1, "uplink: --key " + keys + ": ...this is a server's key\nhint: want the file that uplink keygen wrote next to the server key, such as ds.key.issuer\n"},
		{"--to " + addr + " --key " + keys + ".issuer " + source.Name, 1, "issued with another key...\nhint: the server has another key: --key must be the file .issuer that uplink keygen wrote with the server key, or "},
		{"--to " + addr + " --token uplink-token-1.x " + source.Name, 1, "uplink: --token: malformed token or key: ...\nhint: want the whole line that uplink token prints, or @ and the name of a file with it\n"},
		{"--to " + addr + " --token @" + dir + "/none " + source.Name, 1, "uplink: --token: open " + dir + "/none: no such file"},
		{"--to " + addr + " --suite compact " + source.Name, 1, "client: dial " + addr + ": no cipher suite in common: the server permits aes128gcm, the client aes128ctr-hmac8\nhint: use the same --suite at both ends\n"},
		{"--suite none a.csv", 2, notPlain},
		{"--token x --key y a.csv", 2, "uplink: --token: --key issues tokens; leave one of them out\n"},
		{"--to 127.0.0.1:none " + source.Name, 2, "uplink: --to \"127.0.0.1:none\": want HOST:PORT, such as 127.0.0.1:7777\n"},
		{dir + "/none.csv", 1, "none.csv: no such file or directory\n"},
		{"--jitter -1s a.csv", 2, "uplink: --jitter -1s: want 0s to 1m0s\n"},
		{"--ring 1 a.csv", 2, "uplink: --ring 1: want 2 to 256 frames\n"},
		{"--wait 0s a.csv", 2, "uplink: --wait 0s: want more than 0s\n"},
		{"--codec zip a.csv", 2, "uplink: --codec \"zip\": want rle or adaptive\n"},
		{"--log-format yaml a.csv", 2, "want text or json\n"},
	})
	checkFailures(t, "bots", []failure{
		{"", 2, wantTrace},
		{"--players 0 a.csv", 2, "uplink: --players 0: want 1 to 60000\n"},
		{"--rate 0.5 a.csv", 2, "uplink: --rate 0.5: want 1 to 1000 calls a second, or 0 for players who stay idle\n"},
		{"--rate NaN a.csv", 2, "uplink: --rate NaN: want 1 to 1000 calls a second, or 0 for players who stay idle\n"},
		{"--ramp -1s a.csv", 2, "uplink: --ramp -1s: want 0s or more\n"},
		{"--for -1s a.csv", 2, "uplink: --for -1s: want 0s, which is until Ctrl-C, or more\n"},
		{"--rebind-every 1ms a.csv", 2, "uplink: --rebind-every 1ms: want 0s, which is never, or at least 1s\n"},
		{"--key " + source.Name + " a.csv", 1, "uplink: --key ...hint: want the file that uplink keygen wrote "},
		{"--wait 0s a.csv", 2, "uplink: --wait 0s: want more than 0s\n"},
		{"--loss 7 a.csv", 2, "--loss 7" + wantShare},
		{"--burst 0 a.csv", 2, "uplink: --burst 0: want 1 to 1000000 packets\n"},
		{"--codec zip a.csv", 2, "uplink: --codec \"zip\": "},
		{"--redundancy 16 a.csv", 2, "want auto, off or 1 to 15 redundant frames\n"},
		{"--suite none a.csv", 2, notPlain},
		{"--to " + nobody + " --wait 30ms " + source.Name, 1, "no answer from the server: waited 30ms (--wait)\nhint: is a server there? uplink ds --listen " + nobody + " --schema FILE "},
		{"--to 192.0.2.1:7777 " + source.Name, 1, needsToken},
		{"--to " + addr + " " + other.Name, 1, otherSchema},
		{dir + "/none.csv", 1, "none.csv: no such file or directory\n"},
		{"--cpuprofile " + dir + "/no/cpu " + source.Name, 1, "uplink: --cpuprofile: open "},
	})
	checkFailures(t, "soak", []failure{
		{"--players 0", 2, "uplink: --players 0: want 1 to 2000\n"},
		{"--hostile 0", 2, "uplink: --hostile 0: want 1 to 200\n"},
		{"--hostile 2 --kinds x", 2, "uplink: --kinds x: want some of refused-binds,"},
		{"--hostile 2 --for 1ms", 2, "uplink: --for 1ms: want at least 1s\n"},
		{"--hostile 2 --players 300", 2, "uplink: --players 300: want 1 to 200 with --hostile\n"},
		{"--fleet 2", 2, "uplink: --fleet 2: want 3 to 16\n"},
		{"--fleet 4 --players 0", 2, "uplink: --players 0: want 1 to 10000\n"},
		{"--fleet 4 --handovers 201", 2, "uplink: --handovers 201: want 0 to --players\n"},
		{"--fleet 4 --for 1s", 2, "uplink: --for 1s: want at least 5s\n"},
		{"--fleet 4 --rate 0", 2, "uplink: --rate 0: want 1 to 240\n"},
		{"--phase 1s", 2, "uplink: --phase 1s: want at least 3s\n"},
		{"--for 1m --phase 10s", 2, "uplink: --for 1m0s: want at least 2m0s, which is two rounds of 6 phases\n"},
		{source.Name + " " + other.Name, 1, "its schema differs from that of"},
	})
}

// TestServerErrors tests commands with a server. Without its address none creates a record.
func TestServerErrors(t *testing.T) {
	schema := trace.SchemaPath(slice(t, sample.RocketLeague(), 1, nil).Name)
	same := trace.SchemaPath(slice(t, sample.Portal2(), 1, nil).Name)
	_, busy := startDS(t, "--schema", schema)
	keys, dir := keygen(t), writeFiles(t, map[string]string{"broken.schema.json": "{\n  \"rpc\": ,\n}"})
	record := filepath.Join(dir, "out.csv")
	const (
		allAddresses = ": these are all addresses of the machine, but tokens name the one that clients dial; set it with --addr\n"
		serverKey    = "\nhint: want the file of uplink keygen -o; "
	)
	checkFailures(t, "ds --schema "+schema, []failure{
		{"--listen " + busy + " --record " + record, 1, "uplink: ds: ..." + busy + "...\nhint: choose another address with --listen; port 0: any free one\n"},
		{"--listen 192.0.2.1:0", 1, "192.0.2.1"},
		{"--listen 0.0.0.0:0", 1, "loopback...\nhint: uplink keygen -o ds.key writes one, for --key ds.key; for tests, --insecure at both ends needs none\n"},
		{"--listen 127.0.0.1:0 --schema " + dir + "/none.schema.json", 1, "uplink: trace: schema file: open " + dir + "/none.schema.json: no such file"},
		{"--listen 127.0.0.1:0 --schema " + dir + "/broken.schema.json", 1, "broken.schema.json: line 2, column "},
		{"--listen 127.0.0.1:0 --schema " + same, 1, "uplink: --schema " + same + ": ds: ServerMove is handled already\n"},
		{"--record " + record + " --schema " + same, 2, "uplink: --record: a file contains the frames of one RPC, but there are 2 --schema; "},
		{"--listen 127.0.0.1:0 --record " + dir + "/no/out.csv", 1, dir + "/no/out.csv: no such file"},
		{"--listen 127.0.0.1:0 --metrics nowhere --record " + record, 2, "uplink: --metrics \"nowhere\": want HOST:PORT, such as 127.0.0.1:7777\n"},
		{"--http-token 0123456789abcdef", 2, "uplink: --http-token: it needs --metrics, such as --metrics 127.0.0.1:9464\n"},
		{"--metrics 127.0.0.1:0 --http-token short", 2, "uplink: --http-token: want 16 characters or more\n"},
		{"--listen 127.0.0.1:0 --key " + dir + "/none.key", 1, "uplink: --key: open " + dir + "/none.key: no such file..." + serverKey},
		{"--listen 127.0.0.1:0 --key " + keys + ".issuer", 1, "uplink: --key " + keys + ".issuer: ...this is an issuer's key" + serverKey},
		{"--listen 127.0.0.1:0 --relay-key " + keys, 1, "uplink: --relay-key " + keys + ": want 64 hexadecimal digits\n"},
		{"--listen 0.0.0.0:0 --key " + keys, 2, "uplink: --listen 0.0.0.0:0" + allAddresses},
		{"--listen :7777 --key " + keys, 2, "uplink: --listen :7777" + allAddresses},
		{"--addr game.example:7777", 2, "uplink: --addr \"game.example:7777\": want an IP address and port such as 203.0.113.7:7777 or [2001:db8::7]:7777\n"},
		{"--suite none", 2, notPlain},
		{"--ack-hz 0", 2, "uplink: --ack-hz 0: want 1 to 1000 acks a second\n"},
		{"--max-players 0", 2, "uplink: --max-players 0: want 1 or more\n"},
		{"--shards 0", 2, "uplink: --shards 0: want 1 to "},
		{"--shards 10000", 2, "uplink: --shards 10000: want 1 to "},
		{"--report 1ms", 2, "uplink: --report 1ms: want 0s (never) or at least 100ms\n"},
		{"--json", 2, "uplink: --json: it needs --report, such as --report 1s\n"},
		{"--debug", 2, "uplink: --debug: it needs --metrics, such as --metrics 127.0.0.1:9464\n"},
		{"--log-format xml", 2, "uplink: --log-format xml: want text or json\n"},
		{"--log-level loud", 2, "uplink: --log-level loud: want debug, info, warn or error\n"},
		{"--ring 300", 2, "uplink: --ring 300: want 2 to 256 frames\n"},
		{"--capture x --capture-max 1KB", 2, "want at least 64KB\n"},
		{"--capture x --capture-max many", 2, "want a number of bytes such as "},
		{"--capture x --capture-keep 0", 2, "uplink: --capture-keep 0: want 1 or more\n"},
	})
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("a server that never listened created a record: %v", err)
	}
	checkFailures(t, "ds", []failure{{"", 2, "uplink: --schema: name the schema file of an RPC"}})
	checkFailures(t, "demo", []failure{
		{"--clients 0", 2, "uplink: --clients 0: want 1 to 1000\n"},
		{"--rtt -5ms", 2, "uplink: --rtt -5ms: want 0s to 1m0s\n"},
		{"--jitter 1h", 2, "uplink: --jitter 1h0m0s: want 0s to 1m0s\n"},
		{"--loss 5", 2, "uplink: --loss 5" + wantShare},
		{"--burst 0", 2, "uplink: --burst 0: want 1 to 1000000 packets\n"},
		{"--codec zip", 2, "uplink: --codec \"zip\": want rle or adaptive\n"},
		{"--suite none", 2, notPlain},
		{"--for -1s", 2, "uplink: --for -1s: want 0s, which is until Ctrl-C, or more\n"},
		{"--http-token short", 2, "uplink: --http-token: want 16 characters or more\n"},
		{"--capture-keep 0", 2, "uplink: --capture-keep 0: want 1 or more\n"},
		{"more", 2, "uplink: \"more\": want flags only\n"},
		{"--metrics nowhere --rtt 0s --loss 0 --clients 1", 2, "uplink: --metrics \"nowhere\": want HOST:PORT, such as 127.0.0.1:7777\n"},
	})
}

// TestFileErrors tests the errors of commands that read captures and key logs.
func TestFileErrors(t *testing.T) {
	checkFailures(t, "inspect", []failure{
		{"a b", 2, "want one file, this is the second\n"},
		{"a --explain 0", 2, "uplink: --explain 0: records are numbered from 1\n"},
		{"a --csv", 2, "uplink: --csv: it needs --frames\n"},
		{"a --frames --csv --json", 2, "uplink: --csv and --json: choose one\n"},
		{"a --frames --explain 3", 2, "uplink: --explain: leave --frames and --csv out\n"},
		{"a --from 3s --to 2s", 2, "uplink: --to 2s: that is before --from 3s\n"},
		{"a --from -3s", 2, "uplink: --from, --to: want 0s or more\n"},
	})
	checkFailures(t, "replay-capture a", []failure{
		{"", 2, "uplink: --to: want the address of a server, or --self, or --world to show a world\n"},
		{"--self --to 127.0.0.1:1", 2, "uplink: --self: it plays to a server of its own; leave --to out\n"},
		{"--self --world town", 2, "uplink: --world: it sends nothing; leave --to and --self out\n"},
		{"--self --speed 0", 2, "uplink: --speed 0: want more than 0 and at most 1000\n"},
		{"--to 127.0.0.1:1 --token x", 2, "uplink: --token: it admits one client; "},
	})
	dir := writeFiles(t, map[string]string{"empty.txt": "# nothing\n", "bad.txt": "\nUPLINK_SESSION_1 1\n"})
	capture, keys := writeCapture(t, dir)
	t.Setenv(keyLogVariable, "")
	checkFailures(t, "decrypt", []failure{
		{capture, 2, "uplink: --keylog: there is no key log; server and client write one to the file of UPLINK_KEYLOG\n"},
		{capture + " --keylog " + keys + " -o " + capture, 2, "uplink: --output " + capture + ": that is the capture itself\n"},
		{capture + " --keylog " + dir + "/empty.txt", 1, "uplink: --keylog: " + dir + "/empty.txt has no session\nhint: set UPLINK_KEYLOG before the server or the client starts: existing sessions are not written\n"},
		{capture + " --keylog " + dir + "/bad.txt", 1, "uplink: --keylog: " + dir + "/bad.txt: key log: line 2: 2 words, want 5\nhint: remove that line from a copy of the file: the other sessions can still be decrypted\n"},
		{dir + "/none.pcap --keylog " + keys, 1, "no such file"},
	})
}

// TestTokenErrors tests the errors of keys and tokens.
func TestTokenErrors(t *testing.T) {
	path, foreign := keygen(t), keygen(t)
	issuer := path + ".issuer"
	long := filepath.Join(t.TempDir(), "long.bin")
	must(t, os.WriteFile(long, make([]byte, 257), 0o600))
	_, text, _ := uplink(t, "token", "--key", issuer, "--client", "1", "--server", "127.0.0.1:7777")
	text = strings.TrimSpace(text)
	checkFailures(t, "keygen", []failure{
		{"", 2, "uplink: --output: name the file for the key\n"},
		{"-o " + path + "/no/ds.key", 1, "uplink: --output: open "},
		{"x", 2, "uplink: \"x\": want flags only\n"},
	})
	const good = " --client 1 --server 127.0.0.1:7777"
	checkFailures(t, "token", []failure{
		{good, 2, "uplink: --key: name the file with the issuer key; uplink keygen creates one\n"},
		{"--key " + issuer + " --server 127.0.0.1:7777", 2, "uplink: --client: want the client id\n"},
		{"--key " + issuer + " --client 1", 2, "uplink: --server: want the address of a server\n"},
		{"--key " + issuer + " --client -1 --server 127.0.0.1:7777", 2, "uplink: --client -1: want a whole number, not below 0\n"},
		{"--key " + issuer + " --client 1 --server example.org:7777", 2, "uplink: --server \"example.org:7777\": want an IP address and port such as 203.0.113.7:7777 or [2001:db8::7]:7777\n"},
		{"--key " + issuer + good + " --for 25h", 2, "uplink: --for 25h0m0s: want 1ms to 24h0m0s\n"},
		{"--key " + issuer + good + " --for 0s", 2, "uplink: --for 0s: want"},
		{"--key " + issuer + " --client 1 --server 0.0.0.0:7777", 1, "uplink: token: issue: claims: Servers[0]: 0.0.0.0:7777 is where a server listens; "},
		{"--key " + issuer + good + strings.Repeat(" --server 127.0.0.1:1", 8), 1, ": Servers: 9 addresses, want 1 to 8\n"},
		{"--key " + issuer + good + " --user-data @" + long, 1, "uplink: --user-data: ...long.bin: longer than 256 bytes\n"},
		{"--key " + issuer + good + " --user-data @" + long + ".none", 1, "uplink: --user-data: open ...: no such file"},
		{"--key " + issuer + good + " --user-data " + strings.Repeat("x", 257), 1, ": UserData: 257 bytes, at most 256\n"},
		{"--key " + path + good, 1, "uplink: --key ...ds.key: malformed token or key: want an issuer's key, ...; this is a server's key\nhint: want the file that uplink keygen wrote next to the server key, such as ds.key.issuer\n"},
		{"--key " + path + ".none" + good, 1, "uplink: --key: open ...: no such file"},
		{"--key " + long + good, 1, ": want an issuer's key, which begins with uplink-issuer-key-1.; this does not\n"},
		{"--show " + text + " --for 1m", 2, "uplink: --for: it is for issuing; leave it or --show out\n"},
		{"--show " + text[:50], 2, "uplink: --show: malformed token or key: a token has at least 164 characters after uplink-token-1., this one 35: was it cut off?\n"},
		{"--show=", 2, "uplink: --show: malformed token or key: want a token, which begins with uplink-token-1.; this is empty\n"},
		{"--show " + text + " --key " + issuer, 1, ": want a server's key, ...; this is an issuer's key\nhint: only the server key decrypts a token; leave --key out to see the rest\n"},
		{"--show " + text + " --key " + foreign, 1, "uplink: --key ...: the token is for the server with public key "},
		{"--show " + damage(t, text) + " --key " + path, 1, "uplink: --key ...ds.key: the connect token was issued with another key than the server's, or altered\n"},
	})
}
