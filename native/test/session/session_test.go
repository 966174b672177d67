//go:build native

package session

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

var (
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

// calls are those that a server delivered.
type calls struct {
	mu     sync.Mutex
	frames map[int32][]int32 // by number
	// last is the newest sequence of each session.
	last     map[*ds.Player]uint64
	disorder int
	repeated int
}

func (c *calls) take(p *ds.Player, f ds.Frame[*schema.Frame]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.last[p]; ok && f.Seq <= last {
		c.disorder++
	}
	c.last[p] = f.Seq
	n := f.Value.Ints[counter]
	if c.frames[n] != nil {
		c.repeated++
	}
	c.frames[n] = slices.Clone(f.Value.Ints)
}

// serve runs a server until stop is called. addr is where clients believe it to be.
func (c *calls) serve(t *testing.T, listen string, addr netip.AddrPort) (server netip.AddrPort, stop func()) {
	t.Helper()
	rpc, err := trace.LoadSchema(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ds.Listen(listen, ds.Config{Addrs: []netip.AddrPort{addr}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ds.HandleSchema(s, rpc, c.take); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(context.Background())
	}()
	return s.Addr(), func() {
		_ = s.Close()
		<-done
	}
}

// compare returns the number of sent calls, of delivered ones that differ from the sent one, and of
// delivered ones that were not sent.
func (c *calls) compare(t *testing.T, log string) (sent, mismatches, unknown int) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := map[int32]bool{}
	for s := bufio.NewScanner(f); s.Scan(); sent++ {
		var values []int32
		for _, w := range strings.Fields(s.Text()) {
			var v int32
			if _, err := fmt.Sscan(w, &v); err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		known[values[counter]] = true
		if got := c.frames[values[counter]]; got != nil && !slices.Equal(got, values) {
			mismatches++
		}
	}
	for n := range c.frames {
		if !known[n] {
			unknown++
		}
	}
	return sent, mismatches, unknown
}

// Each client plays over a link that loses and delays datagrams. Its port changes after a third of
// the time, and the server restarts after two thirds.
func TestSession(t *testing.T) {
	for _, command := range strings.Split(*commands, ",") {
		t.Run(filepath.Base(command), func(t *testing.T) { play(t, command) })
	}
}

func play(t *testing.T, command string) {
	r, err := newRelay(*rtt/2, *loss, *seed)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	c := &calls{frames: map[int32][]int32{}, last: map[*ds.Player]uint64{}}
	server, stop := c.serve(t, "127.0.0.1:0", r.addr())
	if err := r.start(server); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "calls.txt")
	words := strings.Fields(command)
	words = append(words, schemaFile, r.addr().String(), fmt.Sprint(int(duration.Seconds())), "-", log)
	cmd := exec.Command(words[0], words[1:]...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(*duration / 3)
	if err := r.rebind(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(*duration / 3)
	c.mu.Lock()
	first := len(c.last)
	c.mu.Unlock()
	stop()
	_, stop = c.serve(t, server.String(), r.addr())
	err = cmd.Wait()
	stop()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	sent, mismatches, unknown := c.compare(t, log)
	t.Logf("%d calls sent, %d delivered, %d differ, %d unknown, %d out of order, %d twice; %d sessions; %d datagrams passed, %d lost; seed %d",
		sent, len(c.frames), mismatches, unknown, c.disorder, c.repeated, len(c.last), r.passed, r.lost, *seed)
	if mismatches+unknown+c.disorder+c.repeated > 0 {
		t.Error("delivered calls are not the sent ones")
	}
	if first != 1 || len(c.last) != 2 {
		t.Errorf("%d sessions before the restart, %d with it; want 1 and 2\n%s", first, len(c.last), strings.Join(lines, "\n"))
	}
	if len(c.frames) < sent*3/5 {
		t.Errorf("%d of %d calls were delivered", len(c.frames), sent)
	}
}
