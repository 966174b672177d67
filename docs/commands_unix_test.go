//go:build unix

package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

// step is a command of operations.md with its output.
type step struct {
	command, output string
	retry           bool // repeat it until it prints output
}

// steps returns the commands of the console blocks.
func steps(t *testing.T) (all []step) {
	t.Helper()
	text, err := os.ReadFile("operations.md")
	must(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```console( retry)?\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[2]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, step{command: strings.TrimSpace(command), retry: block[1] != ""})
			} else {
				all[len(all)-1].output += line
			}
		}
	}
	return all
}

// figure matches a number in a quoted output.
var figure = regexp.MustCompile(`[0-9]+(?:\\\.[0-9]+)*(?:e[+-][0-9]+)?`)

// pattern returns an expression for an output. Numbers may differ, but not become 0, and "..."
// stands for any text.
func pattern(output string) *regexp.Regexp {
	quoted := figure.ReplaceAllStringFunc(regexp.QuoteMeta(output), func(number string) string {
		if !strings.ContainsAny(number, "123456789") {
			return `[0.]+`
		}
		return `[0-9.]*[1-9][0-9.]*(?:e[+-][0-9]+)?`
	})
	return regexp.MustCompile(`^` + strings.ReplaceAll(quoted, `\.\.\.`, `.*`) + `$`)
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		output, got string
		want        bool
	}{
		{"players 8\n", "players 12\n", true},
		{"players 8\n", "players 0\n", false},
		{"drops 0\n", "drops 0\n", true},
		{"drops 0\n", "drops 3\n", false},
		{"players 8\n", "players 8\nand more\n", false},
		{"ratio 0.25 @[17.5]\n", "ratio 3 @[1.7e+09]\n", true},
		{"{\"time\":\"...\",\"n\":3}\n", "{\"time\":\"2026-11-21\",\"n\":4}\n", true},
		{"a.b\n", "aXb\n", false},
	} {
		if pattern(c.output).MatchString(c.got) != c.want {
			t.Errorf("%q for %q: %v", c.got, c.output, !c.want)
		}
	}
}

// TestCommands runs the commands of operations.md in a shell, but with free ports, and with a
// Prometheus that scrapes more often.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command and waits for scrapes")
	}
	for _, name := range []string{"bash", "curl", "prometheus", "promtool"} {
		tool.Find(t, name)
	}
	dir := workplace(t)
	ports := freePorts(t)
	s := startShell(t, dir)
	ctx := t.Context()
	if end, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Minute))
		defer cancel()
	}
	for _, st := range steps(t) {
		st.command, st.output = ports.Replace(st.command), ports.Replace(st.output)
		if strings.HasPrefix(st.command, "prometheus ") {
			hurry(t, filepath.Join(dir, "deploy/prometheus/prometheus.yml"), ports)
		}
		// A busy machine may take seconds to start the server that is there for a reader.
		st.command = strings.Replace(st.command, "uplink replay ", "uplink replay --wait 1m ", 1)
		want := pattern(st.output)
		got := s.run(t, st.command)
		for st.retry && !want.MatchString(got) && ctx.Err() == nil {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
			got = s.run(t, st.command)
		}
		if !want.MatchString(got) {
			t.Fatalf("$ %s\nprints\n%s\nand not\n%s", st.command, got, st.output)
		}
	}
}

// workplace creates a directory with the files that the commands name, and the uplink command.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"deploy", "internal/sample"} {
		must(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("..", name))))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "bin", "uplink"), "../cmd/uplink")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// freePorts replaces the ports of operations.md by free ones.
func freePorts(t *testing.T) *strings.Replacer {
	t.Helper()
	var pairs []string
	for _, port := range []string{"7777", "9464", "9465", "9090"} {
		addr := freePort()
		for slices.Contains(pairs, addr) {
			addr = freePort()
		}
		pairs = append(pairs, "127.0.0.1:"+port, addr)
	}
	return strings.NewReplacer(pairs...)
}

// freePort returns a free address, below the ports that systems assign to sockets of other tests.
func freePort() string {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", addr)
		_ = tcp.Close()
		if err == nil {
			_ = udp.Close()
			return addr
		}
	}
}

// hurry configures Prometheus to scrape each second.
func hurry(t *testing.T, path string, ports *strings.Replacer) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	changed := ports.Replace(strings.ReplaceAll(string(text), "_interval: 5s", "_interval: 1s"))
	must(t, os.WriteFile(path, []byte(changed), 0o600))
}

// shell runs commands in a directory. It ends the processes that they leave running.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

func startShell(t *testing.T, dir string) *shell {
	t.Helper()
	cmd := exec.Command("bash")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	must(t, err)
	r, w, err := os.Pipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	must(t, cmd.Start())
	must(t, w.Close())
	t.Cleanup(func() {
		// The group is the shell and all that it has started.
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
		_ = in.Close()
		_, _ = io.Copy(io.Discard, r) // until all have ended
		_ = cmd.Wait()
		_ = r.Close()
	})
	return &shell{in: in, out: bufio.NewReader(r)}
}

// mark follows the output of a command.
const mark = "-- end of the command --"

// run runs a command and returns its output.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	_, err := fmt.Fprintf(s.in, "%s\necho; echo '%s'\n", command, mark)
	must(t, err)
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("$ %s\nends the shell: %v\n%s", command, err, out.String())
		}
		if strings.TrimSpace(line) == mark {
			return strings.TrimSuffix(out.String(), "\n")
		}
		out.WriteString(line)
	}
}
