package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
)

// Patience is the maximum time for an answer of the peer.
const Patience = 30 * time.Second

// Process is a peer that runs as a process. It is not safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  chan string // output lines; closed when the process ends
	stop context.CancelCauseFunc
}

// errSilent is the error after a timeout of the process.
var errSilent = fmt.Errorf("the peer did not answer within %v", Patience)

// Start starts a process, which ends with ctx. Its standard error is written to stderr.
func Start(ctx context.Context, command []string, stderr io.Writer) (*Process, error) {
	ctx, stop := context.WithCancelCause(ctx)
	p := &Process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), out: make(chan string), stop: stop}
	p.cmd.Stderr = stderr
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError.Err
		}
		return nil, fmt.Errorf("cannot start the peer %s: %w", command[0], err)
	}
	p.in = in
	go func() {
		defer close(p.out)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, protocol.Max)
		for lines.Scan() {
			select {
			case p.out <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return p, nil
}

// Ask implements [Peer].
func (p *Process) Ask(request string) (string, error) {
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		return "", fmt.Errorf("the peer ended, or closed its input, before the request %.200s: %w", request, err)
	}
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case response, ok := <-p.out:
		if !ok {
			return "", fmt.Errorf("the peer ended, or wrote a line of more than %d bytes, after the request %.200s", protocol.Max, request)
		}
		return response, nil
	case <-timer.C:
		p.stop(errSilent)
		return "", fmt.Errorf("%w: %.200s", errSilent, request)
	}
}

// Close closes the input of the process, and kills it if it does not end within a second.
func (p *Process) Close() error {
	err := p.in.Close()
	ended := time.AfterFunc(time.Second, func() { p.stop(nil) })
	for range p.out { // until it ends
	}
	ended.Stop()
	p.stop(nil)
	var exit *exec.ExitError
	if waited := p.cmd.Wait(); !errors.As(waited, &exit) && !errors.Is(waited, context.Canceled) {
		err = errors.Join(err, waited)
	}
	return err
}
