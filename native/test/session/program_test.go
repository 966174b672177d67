//go:build native

package session

import (
	"bufio"
	"context"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/uplink-rpc/uplink/trace"
)

var program = flag.String("uplink", "", "the command uplink; built if empty")

// Each client plays for 3 s against "uplink ds" on loopback, with the development key. What the
// server records is what the client sent.
func TestProgram(t *testing.T) {
	uplink := *program
	if uplink == "" {
		uplink = filepath.Join(t.TempDir(), "uplink")
		if out, err := exec.Command("go", "build", "-o", uplink, "../../../cmd/uplink").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for command := range strings.SplitSeq(*commands, ",") {
		t.Run(filepath.Base(command), func(t *testing.T) {
			record, log := filepath.Join(t.TempDir(), "calls.csv"), filepath.Join(t.TempDir(), "calls.txt")
			stop, addr := startServer(t, uplink, record)
			words := append(strings.Fields(command), schemaFile, addr, "3", "-", log)
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			stop()
			got, err := trace.Load(record, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := &calls{frames: map[int32][]int32{}}
			for i := range got.Frames {
				c.frames[got.Frames[i].Ints[counter]] = got.Frames[i].Ints
			}
			sent, mismatches, unknown := c.compare(t, log)
			t.Logf("%d calls sent, %d recorded, %d differ, %d unknown", sent, len(got.Frames), mismatches, unknown)
			if mismatches+unknown > 0 || len(c.frames) != len(got.Frames) || len(c.frames) < sent*9/10 || sent == 0 {
				t.Error("recorded calls are not the sent ones")
			}
		})
	}
}

// startServer starts the program, and returns its address and a function that ends it.
func startServer(t *testing.T, uplink, record string) (stop func(), addr string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), uplink, "ds", "--listen", "127.0.0.1:0", "--schema", schemaFile, "--record", record)
	pipe, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	listening := regexp.MustCompile(`msg=listening addr=(\S+)`)
	lines := bufio.NewScanner(pipe)
	for addr == "" && lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
	}
	if addr == "" {
		t.Fatal("uplink ds ended before it was listening")
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		for lines.Scan() { // until the program has ended
		}
		_ = cmd.Wait()
	}, addr
}
