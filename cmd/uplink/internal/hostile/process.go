package hostile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Command is the name of the hidden command whose process is the server: it calls [Answer].
const Command = "soak-server"

// Answer starts a server and answers requests from in on out: its address in the first line, and then
// for each line of in its [Status] in a line of JSON. It returns at the end of in.
func Answer(in io.Reader, out io.Writer) (err error) {
	s, err := NewServer("127.0.0.1:0", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := fmt.Fprintln(out, s.Addr()); err != nil {
		return err
	}
	lines, encoder := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		st, err := s.Status()
		if err == nil {
			err = encoder.Encode(st)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// process is a server in a process of its own, so that its CPU time can be told from the clients'.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	addr string
}

// StartProcess starts the running program once more with [Command], as a server.
func StartProcess() (Target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, Command)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hostile: the server's process did not start: %w", err), p.Close())
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

func (p *process) Addr() string { return p.addr }

// Status asks the process.
func (p *process) Status() (st Status, err error) {
	if _, err = io.WriteString(p.in, "status\n"); err != nil {
		return st, fmt.Errorf("hostile: the server's process has ended: %w", err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return st, fmt.Errorf("hostile: the server's process has ended: %w", err)
	}
	return st, json.Unmarshal(line, &st)
}

// Close ends the process and waits for it.
func (p *process) Close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
