package deploy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

const unit = "systemd/uplink-ds.service"

// TestUnit checks the systemd units.
func TestUnit(t *testing.T) {
	analyze := tool.Find(t, "systemd-analyze")
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) < 4 {
		t.Fatalf("%d units: %v", len(units), err)
	}
	for _, unit := range units {
		unit = strings.Replace(unit, "@.", "@0.", 1) // an instance of a template
		if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) != 0 {
			t.Errorf("%s: %v: %s", unit, err, out)
		}
	}
}

// setting returns the value of the only line of the unit that starts with a text.
func setting(t *testing.T, start string) string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, start); ok {
			found = append(found, strings.TrimSpace(value))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines %s in %s", len(found), start, unit)
	}
	return found[0]
}

// nobody is the user and the group that run the service in tests.
const nobody = 65534

// TestUnitCommand runs the command line of the unit as another user, without capabilities, with the
// key that keygen wrote in the folder that LoadCredential makes, and the options that the unit
// suggests. The server serves and writes a capture to its state directory. Without LoadCredential,
// that user cannot read the key.
func TestUnitCommand(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it needs root, to run a program as another user")
	}
	setpriv := tool.Find(t, "setpriv")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	must(os.Chmod(filepath.Dir(dir), 0o711)) // for the other user
	must(os.Chmod(dir, 0o711))
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	run("go", "build", "-o", file("bin/uplink"), "../cmd/uplink")
	run(file("bin/uplink"), "keygen", "-o", file("installed.key"))
	schema, err := os.ReadFile("../testdata/traces/portal2_coop_60hz.schema.json")
	must(err)
	must(os.WriteFile(file("move.schema.json"), schema, 0o644))

	// What systemd does: a copy of the key for the user alone, and a directory of the user.
	credential, _, ok := strings.Cut(setting(t, "LoadCredential="), ":")
	if !ok {
		t.Fatal("LoadCredential has no path")
	}
	key, err := os.ReadFile(file("installed.key"))
	must(err)
	state := file(setting(t, "StateDirectory="))
	for _, d := range []string{file("credentials"), state} {
		must(os.Mkdir(d, 0o700))
		must(os.Chown(d, nobody, nobody))
	}
	copied := filepath.Join(file("credentials"), credential)
	must(os.WriteFile(copied, key, 0o400))
	must(os.Chown(copied, nobody, nobody))
	replace := strings.NewReplacer(
		"$UPLINK_OPTIONS", setting(t, "#   UPLINK_OPTIONS=")+" --capture match.uplink", "%d", file("credentials"), "%S", dir,
		"0.0.0.0:7777", "127.0.0.1:0", "/etc/uplink/move.schema.json", file("move.schema.json"),
	)
	command := replace.Replace(replace.Replace(setting(t, "ExecStart=")))
	start := func(command string) (*exec.Cmd, *bytes.Buffer, *bufio.Scanner) {
		t.Helper()
		args := []string{fmt.Sprint("--reuid=", nobody), fmt.Sprint("--regid=", nobody), "--clear-groups", "--no-new-privs", "--bounding-set=-all"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		c := exec.CommandContext(ctx, setpriv, append(args, strings.Fields(command)...)...)
		c.Dir, c.Env = replace.Replace(setting(t, "WorkingDirectory=")), []string{"PATH=" + file("bin")}
		out, err := c.StderrPipe()
		must(err)
		log := new(bytes.Buffer)
		must(c.Start())
		return c, log, bufio.NewScanner(out)
	}
	service, log, lines := start(command)
	for lines.Scan() && !strings.Contains(lines.Text(), "msg=listening") {
		fmt.Fprintln(log, lines.Text())
	}
	must(service.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
	}
	if err := service.Wait(); err != nil || strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%s: %v\n%s", command, err, log)
	}
	info, err := os.Stat(filepath.Join(state, "match.uplink"))
	must(err)
	if info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("the capture: %v of user %d", info.Mode(), info.Sys().(*syscall.Stat_t).Uid)
	}

	service, log, lines = start(strings.Replace(command, copied, file("installed.key"), 1))
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
	}
	if err := service.Wait(); err == nil || !strings.Contains(log.String(), "permission denied\nhint: make the user of the server the owner of the file") {
		t.Errorf("without LoadCredential: %v\n%s", err, log)
	}
}
