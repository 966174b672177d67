//go:build unix

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/token"
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
	removed, err := loadKey(old, slog.New(slog.DiscardHandler), token.ParseKey)
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

// TestReadableSecrets loads keys and secrets that everybody may read: each is warned about, with
// what to do. A group may read them, as it does files that systemd and Kubernetes hand to a
// service.
func TestReadableSecrets(t *testing.T) {
	key, secret := keygen(t), filepath.Join(t.TempDir(), "fleet.secret")
	must(t, os.WriteFile(secret, []byte("a secret of servers\n"), 0o600))
	schema := trace.SchemaPath(slice(t, sample.Portal2(), 1, nil).Name)
	args := []string{
		"--schema", schema, "--key", key, "--fleet", "http://127.0.0.1:1/", "--fleet-name", "a", "--fleet-secret", secret,
		"--listen", "127.0.0.1:0", "--drain-timeout", "1ms",
	}
	for _, c := range []struct {
		mode     os.FileMode
		warnings int
	}{{0o400, 0}, {0o440, 0}, {0o644, 1}, {0o602, 1}} {
		for _, path := range []string{key, key + issuerSuffix, secret} {
			must(t, os.Chmod(path, c.mode))
		}
		server := start(t, append([]string{"ds"}, args...)...)
		server.await(&server.stderr, `msg=listening`)
		server.interrupt()
		server.wait()
		_, _, issued := uplink(t, "token", "--key", key+issuerSuffix, "--client", "1", "--server", "127.0.0.1:1")
		for text, files := range map[string][]string{server.stderr.String(): {key, secret}, issued: {key + issuerSuffix}} {
			for _, path := range files {
				want := `level=WARN msg="secret readable by others" file=` + path + ` hint="chmod 600 ` + path + `;`
				if strings.Count(text, want) != c.warnings {
					t.Errorf("mode %v: not %d warnings of %s in\n%s", c.mode, c.warnings, path, text)
				}
			}
		}
	}
}
