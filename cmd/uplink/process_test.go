package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/hostile"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/visits"
)

// asCommand is the environment variable with which the test's program is uplink, to be killed.
const asCommand = "UPLINK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	if len(os.Args) >= 2 && (os.Args[1] == hostile.Command || os.Args[1] == visits.Command) { // soak has started this
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m,
		// The scheduler that kcp-go starts when it is imported.
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"),
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
	)
}

// process is a command line that runs until it ends or is interrupted.
type process struct {
	t              *testing.T
	interrupt      context.CancelFunc
	stdout, stderr output
	code           int
	done           chan struct{}
}

// start runs a command line in the background.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{t: t, interrupt: cancel, done: make(chan struct{})}
	p.stdout.changed, p.stderr.changed = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.done)
		p.code = run(ctx, args, &p.stdout, &p.stderr)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
	})
	return p
}

// wait waits for the process to exit and returns its exit code.
func (p *process) wait() int {
	<-p.done
	return p.code
}

// startProgram starts another program, which interrupt interrupts. The test waits for its end.
func startProgram(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, interrupt: func() { _ = cmd.Process.Signal(os.Interrupt) }, done: make(chan struct{})}
	p.stdout.changed, p.stderr.changed = make(chan struct{}), make(chan struct{})
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	must(t, cmd.Start())
	go func() {
		_ = cmd.Wait() // interrupted or killed
		close(p.done)
	}()
	t.Cleanup(func() { <-p.done })
	return p
}

// await waits for a match and returns its groups. It fails if the process ends before.
func (p *process) await(o *output, expression string) []string {
	p.t.Helper()
	re := regexp.MustCompile(expression)
	for {
		text, changed := o.read()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			p.t.Fatalf("no %q within a minute:\n%s%s", expression, p.stdout.String(), p.stderr.String())
		case <-p.done:
			p.t.Fatalf("the process ended without %q: code %d\n%s%s", expression, p.code, p.stdout.String(), p.stderr.String())
		}
	}
}

// output is a writer that can be watched.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(b)
}

// read returns the text so far, and a channel that is closed when there is more.
func (o *output) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.changed
}

func (o *output) String() string {
	text, _ := o.read()
	return text
}
