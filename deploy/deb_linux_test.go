package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

// TestPackage packs the programs for Debian, installs the package into a directory, and removes it:
// the programs, units and man pages come and go, and files of operators in /etc/uplink stay.
func TestPackage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it needs root, to install a package")
	}
	dpkg, dist, root := tool.Find(t, "dpkg"), t.TempDir(), t.TempDir()
	run := func(dir, name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "VERSION=1.2.3", "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	arch := runtime.GOARCH
	uplink := filepath.Join(dist, "uplink-linux-"+arch)
	run("..", "go", "build", "-o", uplink, "./cmd/uplink")
	run("../fleet/natsstore", "go", "build", "-o", filepath.Join(dist, "uplink-nats-linux-"+arch), "./cmd/uplink-nats")
	for _, dir := range []string{
		filepath.Join(dist, "man"), filepath.Join(dist, "completions"),
		filepath.Join(root, "var/lib/dpkg/info"), filepath.Join(root, "var/lib/dpkg/updates"), filepath.Join(root, "etc/uplink"),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(".", uplink, "man", filepath.Join(dist, "man"))
	for _, shell := range []string{"bash", "zsh", "fish"} {
		write(filepath.Join(dist, "completions", "uplink."+shell), run(".", uplink, "completion", shell))
	}
	write(filepath.Join(root, "var/lib/dpkg/status"), "")
	write(filepath.Join(root, "etc/uplink/ds.env"), "UPLINK_OPTIONS=\n")
	run("..", "release/deb", dist, arch)
	deb := filepath.Join(dist, "uplink_1.2.3_"+arch+".deb")
	run(".", dpkg, "--root="+root, "--log=/dev/null", "--install", deb)
	if got := run(".", filepath.Join(root, "usr/bin/uplink"), "version"); !strings.HasPrefix(got, "uplink ") {
		t.Errorf("the installed program: %s", got)
	}
	installed := []string{
		"usr/bin/uplink", "usr/bin/uplink-nats", "usr/share/man/man1/uplink-ds.1.gz", "usr/lib/systemd/system/uplink-ds@.service",
		"usr/lib/systemd/system/uplink-backend.service", "usr/lib/systemd/system/uplink-nats.service",
	}
	for _, name := range installed {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	run(".", dpkg, "--root="+root, "--log=/dev/null", "--purge", "uplink")
	for _, name := range installed {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "etc/uplink/ds.env")); err != nil {
		t.Error(err)
	}
}
