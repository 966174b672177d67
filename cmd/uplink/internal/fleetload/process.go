package fleetload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/child"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
)

// Command is the name of the hidden command whose process is a server: it calls [Answer].
const Command = "soak-fleet-server"

// setup is the first line of a process's input.
type setup struct {
	Name    string `json:"name"`
	Store   string `json:"store"` // URL
	Players int    `json:"players"`
}

// request is another line of its input. Each is answered by a line with a response.
type request struct {
	Call  string           `json:"call"`
	Count int              `json:"count,omitempty"`
	To    []netip.AddrPort `json:"to,omitempty"`
}

type response struct {
	Addr    netip.AddrPort `json:"addr"`
	Players int            `json:"players"`
	Drained Drained        `json:"drained"`
	Record  Record         `json:"record"`
	Error   string         `json:"error,omitempty"`
}

const (
	callHandover = "handover"
	callDrain    = "drain"
	callCalm     = "calm"
	callRecord   = "record"
)

// Answer starts a server over UDP as the first line of in says, and makes the calls in the lines
// after it. It returns at the end of in.
func Answer(in io.Reader, out io.Writer) (err error) {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	var first setup
	if err := decoder.Decode(&first); err != nil {
		return err
	}
	s, err := NewServer("127.0.0.1:0", first.Name, httpstore.New(first.Store, "", nil), nil, first.Players)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := encoder.Encode(response{Addr: s.Addr()}); err != nil {
		return err
	}
	for {
		var q request
		if err := decoder.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := encoder.Encode(s.answer(&q)); err != nil {
			return err
		}
	}
}

func (s *Server) answer(q *request) (a response) {
	var err error
	switch q.Call {
	case callHandover:
		a.Players, err = s.Handover(q.Count, q.To)
	case callDrain:
		a.Drained, err = s.Drain(q.To)
	case callCalm:
		err = s.Calm()
	case callRecord:
		a.Record, err = s.Record()
	default:
		err = fmt.Errorf("fleetload: call %q", q.Call)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// process is a server in a process of its own.
type process struct {
	*child.Process
	addr netip.AddrPort
}

// StartProcess starts this program with [Command] as a server, which uses the store at a URL.
func StartProcess(name, store string, players int) (Node, error) {
	c, err := child.Start(Command)
	if err != nil {
		return nil, err
	}
	p := &process{Process: c}
	a, err := p.exchange(setup{name, store, players})
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	p.addr = a.Addr
	return p, nil
}

// exchange sends a line and returns the answer.
func (p *process) exchange(line any) (a response, err error) {
	if err := p.Ask(line, &a); err != nil {
		return a, fmt.Errorf("fleetload: %w", err)
	}
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

func (p *process) Addr() netip.AddrPort { return p.addr }

func (p *process) Handover(count int, to []netip.AddrPort) (players int, err error) {
	a, err := p.exchange(request{Call: callHandover, Count: count, To: to})
	return a.Players, err
}

func (p *process) Drain(to []netip.AddrPort) (Drained, error) {
	a, err := p.exchange(request{Call: callDrain, To: to})
	return a.Drained, err
}

func (p *process) Calm() error {
	_, err := p.exchange(request{Call: callCalm})
	return err
}

func (p *process) Record() (Record, error) {
	a, err := p.exchange(request{Call: callRecord})
	return a.Record, err
}
