package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestKeyedServer plays with keys and a token, which admits nobody twice.
func TestKeyedServer(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 40, nil)
	key := keygen(t)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", key, "--suite", "compact")
	code, text, stderr := uplink(t, "token", "--key", key+issuerSuffix, "--client", "42", "--server", addr)
	if code != 0 {
		t.Fatal(stderr)
	}
	file := filepath.Join(t.TempDir(), "token.txt")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	play := func(args ...string) (int, string) {
		code, stdout, stderr := uplink(t, append([]string{"replay", "--to", addr, "--suite", "compact", source.Name}, args...)...)
		return code, stdout + stderr
	}
	if code, said := play("--token", "@"+file); code != 0 || !strings.HasPrefix(said, "40 frames sent: ") {
		t.Fatalf("code %d: %s", code, said)
	}
	server.await(&server.stderr, `msg="player connected" player=\d+ client=42 `)
	for args, want := range map[string]string{
		"--token " + strings.TrimSpace(text): "has been used, get a new one for each connection\nhint: a token starts one session: issue another one, or use --key\n",
		"--wait 1s":                          "\nhint: the server has another key: --key must be the file .issuer ",
	} {
		if code, said := play(strings.Fields(args)...); code != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: code %d, no %q in %s", args, code, want, said)
		}
	}
	if code, said := play("--key", key+issuerSuffix); code != 0 || !strings.HasPrefix(said, "40 frames sent: ") {
		t.Errorf("code %d: %s", code, said)
	}
}

// TestAddr checks a server whose public address differs from its listen address.
func TestAddr(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 5, nil)
	key := keygen(t)
	_, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", key, "--addr", "203.0.113.7:7777")
	for server, want := range map[string]string{
		"203.0.113.7:7777": "5 frames sent: ",
		"203.0.113.8:7777": "\nhint: the token must name an address of the server's --addr, by default the one on which it listens\n",
	} {
		_, text, _ := uplink(t, "token", "--key", key+issuerSuffix, "--client", "1", "--server", server)
		if _, stdout, stderr := uplink(t, "replay", "--to", addr, "--token", strings.TrimSpace(text), source.Name); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%s: no %q in %s%s", server, want, stdout, stderr)
		}
	}
}

// TestRenew restarts a server, which takes no token that was issued before.
func TestRenew(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 20, nil)
	key := keygen(t)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", key)
	client := start(t, "replay", "--to", addr, "--key", key+issuerSuffix, "--loop", source.Name)
	who := server.await(&server.stderr, `msg="player connected" player=\d+ (client=\d+) `)[1]
	server.await(&server.stderr, `msg="rpc bound" `) // so it has joined at the client's end, too
	server.interrupt()
	server.wait()
	again := start(t, "ds", "--listen", addr, "--schema", trace.SchemaPath(source.Name), "--key", key)
	again.await(&again.stderr, `msg="player connected" player=\d+ `+who+` `)
	client.interrupt()
	if code := client.wait(); code != 0 {
		t.Errorf("code %d: %s", code, client.stderr.String())
	}
}
