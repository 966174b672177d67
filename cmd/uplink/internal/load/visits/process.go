package visits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/child"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/web"
)

// Command is the name of the hidden command that runs a server in a process: it calls [Answer].
const Command = "soak-fleet-server"

// Answer runs a server over UDP until in ends. args are its name, the URL of the store and the
// maximum number of players. It answers calls from in on out.
func Answer(in io.Reader, out io.Writer, args []string) error {
	players, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s, err := NewServer("127.0.0.1:0", args[0], httpstore.New(args[1], "", nil), nil, players)
	if err != nil {
		return err
	}
	return errors.Join(child.Serve(in, out, s), s.Close())
}

// RunProcesses is [Run] with each server in a separate process, and with a store over HTTP. The
// bots play over UDP behind a link with a round-trip time of 100 ms and 5 % packet loss. seed is
// the random seed of the link.
func RunProcesses(ctx context.Context, o Options, seed uint64, show func(string)) (*Result, error) {
	link := simlink.Config{RTT: 100 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: seed}
	network, err := link.Network()
	if err != nil {
		return nil, err
	}
	store := fleet.NewMemory()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	server := web.NewServer(httpstore.Handler(store, ""))
	server.BaseContext = func(net.Listener) context.Context { return serving }
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(listener) }) // until Close
	defer func() {
		cancel()
		_ = server.Close()
		work.Wait()
	}()
	url := fmt.Sprintf("http://%s/", listener.Addr())
	start := func(name string) (Node, error) { return startProcess(name, url, 2*o.Players) }
	return Run(ctx, o, store, network, start, show)
}

// process is a server in a separate process.
type process struct {
	*child.Process
	addr netip.AddrPort
}

// startProcess starts this program with [Command] as a server, which uses the store at a URL.
func startProcess(name, store string, players int) (Node, error) {
	c, err := child.Start(Command, name, store, strconv.Itoa(players))
	if err != nil {
		return nil, err
	}
	p := &process{Process: c}
	if err := c.Call("Address", struct{}{}, &p.addr); err != nil {
		return nil, fmt.Errorf("visits: %w", errors.Join(err, c.Kill()))
	}
	return p, nil
}

func (p *process) Addr() netip.AddrPort { return p.addr }

func (p *process) Handover(h HandoverRequest, players *int) error {
	return p.Call("Handover", h, players)
}

func (p *process) Drain(to []netip.AddrPort, d *Drained) error { return p.Call("Drain", to, d) }

func (p *process) Calm(_ struct{}, none *struct{}) error { return p.Call("Calm", struct{}{}, none) }

func (p *process) Record(_ struct{}, r *Record) error { return p.Call("Record", struct{}{}, r) }
