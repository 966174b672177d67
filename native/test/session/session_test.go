//go:build native

package session

import (
	"bufio"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

var (
	program  = flag.String("uplink", "", "the command uplink; built if empty")
	commands = flag.String("clients", "../../build/gcc/examples/uplink_console", "console clients to run, comma-separated")
	duration = flag.Duration("for", 10*time.Second, "duration of each session")
	loss     = flag.Float64("loss", 0.1, "share of datagrams that are lost in each direction")
	rtt      = flag.Duration("rtt", 100*time.Millisecond, "round-trip time")
	seed     = flag.Uint64("seed", 1, "seed of the losses")
)

const (
	schemaFile = "../../../testdata/traces/portal2_coop_60hz.schema.json"
	// counter is the component with the number of the call: the field Tick.
	counter = 11
)

// TestSession plays each client against the process uplink ds, with the development key, on a link
// that loses and delays datagrams. The client's port changes after a third of the time, and the
// server ends and starts again after two thirds. What the servers record is what the client sent.
func TestSession(t *testing.T) {
	uplink := *program
	if uplink == "" {
		uplink = filepath.Join(t.TempDir(), "uplink")
		if out, err := exec.Command("go", "build", "-o", uplink, "../../../cmd/uplink").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for command := range strings.SplitSeq(*commands, ",") {
		t.Run(filepath.Base(command), func(t *testing.T) { play(t, uplink, command) })
	}
}

func play(t *testing.T, uplink, command string) {
	r, err := newRelay(*rtt/2, *loss, *seed)
	uplinktest.Must(t, err)
	defer r.close()
	dir := t.TempDir()
	first := startServer(t, uplink, "127.0.0.1:0", r.addr(), filepath.Join(dir, "1.csv"))
	uplinktest.Must(t, r.start(first.addr))
	log := filepath.Join(dir, "calls.txt")
	words := append(strings.Fields(command), schemaFile, r.addr().String(), fmt.Sprint(int(duration.Seconds())), "-", log)
	cmd := exec.Command(words[0], words[1:]...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	uplinktest.Must(t, cmd.Start())
	time.Sleep(*duration / 3)
	uplinktest.Must(t, r.rebind())
	time.Sleep(*duration / 3)
	first.stop()
	second := startServer(t, uplink, first.addr.String(), r.addr(), filepath.Join(dir, "2.csv"))
	err = cmd.Wait()
	second.stop()
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	sent := logged(t, log)
	delivered, before := 0, 0
	for _, s := range []*server{first, second} {
		numbers, mismatches := s.compare(t, sent)
		if mismatches > 0 || len(numbers) == 0 || !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
			t.Errorf("%d calls delivered, of which %d differ", len(numbers), mismatches)
		} else if numbers[0] < int32(before) {
			t.Errorf("call %d was delivered again", numbers[0])
		} else {
			before = int(numbers[len(numbers)-1]) + 1
		}
		delivered += len(numbers)
	}
	sessions := strings.Count("\n"+out.String(), "\nconnected")
	t.Logf("%d calls sent, %d delivered; %d sessions; %d datagrams passed, %d lost; seed %d", len(sent), delivered, sessions, r.passed, r.lost, *seed)
	if sessions != 2 || delivered < len(sent)*3/5 {
		t.Errorf("want 2 sessions, and most calls\n%s", out.String())
	}
}

// logged returns the calls that a client has sent, by their number.
func logged(t *testing.T, log string) map[int32][]int32 {
	t.Helper()
	f, err := os.Open(log)
	uplinktest.Must(t, err)
	defer f.Close()
	calls := map[int32][]int32{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var values []int32
		for w := range strings.FieldsSeq(s.Text()) {
			var v int32
			if _, err := fmt.Sscan(w, &v); err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		calls[values[counter]] = values
	}
	return calls
}

// server is a process of uplink ds.
type server struct {
	addr   netip.AddrPort
	record string
	cmd    *exec.Cmd
	lines  *bufio.Scanner
}

// startServer starts a server that records. addr is where clients believe it to be.
func startServer(t *testing.T, uplink, listen string, addr netip.AddrPort, record string) *server {
	t.Helper()
	s := &server{record: record, cmd: exec.Command(uplink, "ds", "--listen", listen, "--addr", addr.String(), "--schema", schemaFile, "--record", record)}
	pipe, err := s.cmd.StderrPipe()
	uplinktest.Must(t, err)
	uplinktest.Must(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	listening := regexp.MustCompile(`msg=listening addr=(\S+)`)
	s.lines = bufio.NewScanner(pipe)
	for s.lines.Scan() {
		if m := listening.FindStringSubmatch(s.lines.Text()); m != nil {
			s.addr, err = netip.ParseAddrPort(m[1])
			uplinktest.Must(t, err)
			return s
		}
	}
	t.Fatal("uplink ds ended before it was listening")
	return nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	for s.lines.Scan() { // until the program has ended
	}
	_ = s.cmd.Wait()
}

// compare returns the numbers of the recorded calls, and how many of them are not those that were
// sent.
func (s *server) compare(t *testing.T, sent map[int32][]int32) (numbers []int32, mismatches int) {
	t.Helper()
	got, err := trace.Load(s.record, nil)
	uplinktest.Must(t, err)
	for i := range got.Frames {
		values := got.Frames[i].Ints
		numbers = append(numbers, values[counter])
		if !slices.Equal(values, sent[values[counter]]) {
			mismatches++
		}
	}
	return numbers, mismatches
}
