//go:build unix

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// startServer starts uplink ds as a program of its own, and returns what sends it a signal.
func startServer(t *testing.T, args ...string) (p *process, addr string, send func(os.Signal)) {
	t.Helper()
	p, send = startCommand(t, append([]string{"ds", "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.await(&p.stderr, `msg=listening addr=(\S+)\n`)[1], send
}

// startCommand starts a command line as a program of its own, and returns what sends it a signal.
func startCommand(t *testing.T, args ...string) (p *process, send func(os.Signal)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	p = startProgram(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p, func(s os.Signal) { _ = cmd.Process.Signal(s) }
}

// TestDrainOnSignal sends SIGTERM to a server with players, once in a fleet and once with the
// address of another server. The players continue there, and the program ends.
func TestDrainOnSignal(t *testing.T) {
	source := slice(t, sample.Portal2(), 600, nil)
	schema := trace.SchemaPath(source.Name)
	for _, inFleet := range []bool{true, false} {
		args := func(string) []string { return nil }
		if inFleet {
			backend := start(t, "backend", "--listen", "127.0.0.1:0")
			url := backend.await(&backend.stderr, `msg=backend url=(\S+)`)[1]
			args = func(name string) []string {
				return []string{"--fleet", url + "fleet/", "--fleet-name", name, "--label", "map=dust"}
			}
		}
		second, addr := startDS(t, append(args("b"), "--schema", schema)...)
		more := args("a")
		if !inFleet {
			more = []string{"--drain-to", addr}
		}
		first, from, send := startServer(t, append(more, "--schema", schema)...)
		bots := start(t, "bots", "--players", "3", "--for", "1m", "--to", from, source.Name)
		first.await(&first.stderr, `(?s)(msg="rpc bound".*){3}`)
		send(syscall.SIGTERM)
		first.await(&first.stderr, `msg=draining players=3\n(?s:.*)msg=drained after=`)
		<-first.done
		second.await(&second.stderr, `(?s)(msg="player connected".*){3}`)
		if text := first.stderr.String(); strings.Count(text, "handed over to another server") != 3 {
			t.Errorf("in a fleet: %v\n%s", inFleet, text)
		}
		bots.interrupt()
		bots.wait()
	}
}

// TestSecondSignal sends SIGTERM to a server whose player cannot reach the other one: load
// balancers learn that it drains, and a second signal ends it.
func TestSecondSignal(t *testing.T) {
	source := slice(t, sample.Portal2(), 600, nil)
	server, addr, send := startServer(t, "--metrics", "127.0.0.1:0", "--drain-to", "127.0.0.1:9", "--drain-timeout", "1m", "--schema", trace.SchemaPath(source.Name))
	url := server.await(&server.stderr, `msg=metrics url=(http://\S+/)metrics\n`)[1]
	status := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"readyz", nil)
		must(t, err)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		must(t, res.Body.Close())
		return res.StatusCode
	}
	if got := status(); got != http.StatusOK {
		t.Errorf("/readyz before: %d", got)
	}
	bots := start(t, "bots", "--players", "1", "--for", "1m", "--to", addr, source.Name)
	server.await(&server.stderr, `msg="player connected"`)
	send(syscall.SIGTERM)
	server.await(&server.stderr, `msg=draining players=1`)
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz while it drains: %d", got)
	}
	for ended := false; !ended; {
		send(syscall.SIGTERM)
		select {
		case <-server.done:
			ended = true
		case <-time.After(sameSignal / 4):
		}
	}
	if text := server.stderr.String(); !strings.Contains(text, "drain before all players had left: a second signal") {
		t.Error(text)
	}
	bots.interrupt()
	bots.wait()
}
