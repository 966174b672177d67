// Package child runs this program as another process, and calls it by lines of JSON over its
// standard input and output.
package child

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
)

// pipe is one end of the connection between the two processes.
type pipe struct {
	io.Reader
	io.Writer
	io.Closer
}

const service = "Service"

// Serve answers the calls of the parent process until in ends. It calls the methods of receiver
// that have the form of package net/rpc.
func Serve(in io.Reader, out io.Writer, receiver any) error {
	s := rpc.NewServer()
	if err := s.RegisterName(service, receiver); err != nil {
		return err
	}
	s.ServeCodec(jsonrpc.NewServerCodec(pipe{in, out, io.NopCloser(in)}))
	return nil
}

// Process is a running process. It is safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	client *rpc.Client
}

// Start starts this program with a command that calls [Serve]. The new process inherits the
// standard error.
func Start(command string, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{command}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd, jsonrpc.NewClient(pipe{out, in, in})}, nil
}

// Call calls a method of the process. Errors of the method have the type [rpc.ServerError].
func (p *Process) Call(method string, args, reply any) error {
	err := p.client.Call(service+"."+method, args, reply)
	if err != nil && !errors.As(err, new(rpc.ServerError)) {
		err = fmt.Errorf("the process of %s has ended: %w", p.cmd.Args[1], err)
	}
	return err
}

// Kill ends the process as kill -9 does.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.client.Close()
	_ = p.cmd.Wait() // reports that the process was killed
	return err
}

// Close ends the input of the process and waits for its end.
func (p *Process) Close() error { return errors.Join(p.client.Close(), p.cmd.Wait()) }
