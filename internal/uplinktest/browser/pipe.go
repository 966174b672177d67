package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// lifetime is the time after which a browser is killed.
const lifetime = 3 * time.Minute

// object is an object of JSON.
type object map[string]any

// pipe is a connection to a browser by the DevTools protocol: JSON, each value followed by a zero
// byte, on descriptors 3 and 4 of the browser.
type pipe struct {
	ctx     context.Context
	process *exec.Cmd
	out     *os.File
	session string // session id of the page, or "" to call the browser itself
	ended   chan struct{}

	mu      sync.Mutex
	calls   int
	answers map[int]chan<- message
}

// message is an answer to a call, or an event.
type message struct {
	ID     int
	Method string
	Params event
	Result json.RawMessage
	Error  *struct{ Message string }
}

// open starts a browser. hear is called with each event, on one goroutine.
func open(t testing.TB, path string, flags []string, hear func(method string, e *event)) *pipe {
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	t.Cleanup(cancel)
	in, browserOut, err := os.Pipe()
	uplinktest.Must(t, err)
	browserIn, out, err := os.Pipe()
	uplinktest.Must(t, err)
	p := &pipe{ctx: ctx, out: out, ended: make(chan struct{}), answers: map[int]chan<- message{}}
	p.process = exec.CommandContext(ctx, path, append(flags,
		"--remote-debugging-pipe", "--headless", "--no-sandbox", "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-breakpad",
		"--disable-component-update", "--disable-default-apps", "--disable-dev-shm-usage", "--disable-extensions", "--disable-quic", "--disable-sync",
		"--force-color-profile=srgb", "--hide-scrollbars", "--metrics-recording-only", "--mute-audio", "--password-store=basic", "about:blank")...)
	p.process.ExtraFiles = []*os.File{browserIn, browserOut}
	uplinktest.Must(t, p.process.Start())
	_, _ = browserIn.Close(), browserOut.Close()
	go p.read(in, hear)
	return p
}

// read reads until the browser ends.
func (p *pipe) read(in *os.File, hear func(method string, e *event)) {
	defer close(p.ended)
	defer func() { _ = in.Close() }()
	for r := bufio.NewReader(in); ; {
		b, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(b[:len(b)-1], &m); err != nil {
			continue // an event whose members have other types
		}
		if m.ID == 0 {
			hear(m.Method, &m.Params)
			continue
		}
		p.mu.Lock()
		answer := p.answers[m.ID]
		delete(p.answers, m.ID)
		p.mu.Unlock()
		answer <- m
	}
}

// call calls a method and waits for its result, which may be nil if it is not needed.
func (p *pipe) call(method string, params object, result any) error {
	answer := make(chan message, 1)
	p.mu.Lock()
	p.calls++
	request := object{"id": p.calls, "method": method, "params": params}
	if p.session != "" {
		request["sessionId"] = p.session
	}
	p.answers[p.calls] = answer
	b, err := json.Marshal(request)
	if err == nil {
		_, err = p.out.Write(append(b, 0))
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case m := <-answer:
		switch {
		case m.Error != nil:
			return errors.New(m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-p.ended:
		return errors.New("the browser has ended")
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// close ends the browser.
func (p *pipe) close() {
	p.session = ""
	_ = p.call("Browser.close", nil, nil)
	_ = p.process.Wait() // its exit code does not matter
	_ = p.out.Close()
	<-p.ended
}
