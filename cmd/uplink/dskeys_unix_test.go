//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestKeyFiles replaces the key files of a running server, which has two. Tokens of both keys are
// accepted, and those of a key that is gone are refused with an error that names it.
func TestKeyFiles(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 5, nil)
	old, next := keygen(t), keygen(t)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", next, "--key", old)
	play := func(key, want string) {
		t.Helper()
		code, stdout, stderr := uplink(t, "replay", "--to", addr, "--key", key, source.Name)
		if said := stdout + stderr; !strings.Contains(said, want) {
			t.Errorf("code %d: no %q in %s", code, want, said)
		}
	}
	const played = "5 frames sent: "
	issuer := old + issuerSuffix
	play(issuer, played)
	play(next+issuerSuffix, played)
	removed, err := loadKey(old, token.ParseKey)
	must(t, err)
	last := keygen(t)
	must(t, os.Rename(last, old))
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	server.await(&server.stderr, `msg="keys reloaded" keys="[0-9a-f]{8} [0-9a-f]{8}"`)
	play(issuer, "the server has no key "+removed.ID().String()+"\nhint: ")
	play(last+issuerSuffix, played)
	must(t, os.WriteFile(old, []byte("no key\n"), 0o600))
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	server.await(&server.stderr, `msg="keys not reloaded" error=`)
	play(last+issuerSuffix, played)
}
