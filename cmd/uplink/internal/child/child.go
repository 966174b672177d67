// Package child starts this program as another process, which answers lines of JSON with lines of
// JSON.
package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// Process is a running process. It is safe for concurrent use.
type Process struct {
	cmd *exec.Cmd

	mu  sync.Mutex
	in  io.WriteCloser
	out *json.Decoder
}

// Start starts this program with a command. Its standard error is that of this process.
func Start(command string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(self, command)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	return p, p.cmd.Start()
}

// Ask sends a line, unless it is nil, and decodes the next line of the process into answer.
func (p *Process) Ask(line, answer any) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line != nil {
		err = json.NewEncoder(p.in).Encode(line)
	}
	if err == nil {
		err = p.out.Decode(answer)
	}
	if err != nil {
		return fmt.Errorf("the process of %s has ended: %w", p.cmd.Args[1], err)
	}
	return nil
}

// Kill ends the process as kill -9 does.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // reports that it was killed
	return err
}

// Close ends the input of the process and waits for its end.
func (p *Process) Close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
