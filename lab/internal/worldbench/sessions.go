package worldbench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/lab/internal/baresend"
	"github.com/uplink-rpc/uplink/transport"
)

// session is a server's session with a player.
type session interface {
	ID() uint64
	Overhead() uint64
	// Queue sends a datagram with the next flush.
	Queue(b []byte) error
	SendReliable(b []byte) error
	Unacked() int
	Close() error
}

// sessions are the sessions of a server over loopback. After divert, all datagrams of the server
// arrive at a socket that nobody reads, so that clients do not use the processor.
type sessions struct {
	listener *endpoint.Listener
	sink     transport.PacketConn
	source   transport.PacketConn // used by bare
	bare     *baresend.Sender     // sends the same datagrams
	network  *divertible
	opened   chan *endpoint.Conn
	served   sync.WaitGroup
	serveErr error
	clients  []*endpoint.Conn
}

// tick is the resolution of the listener's timers. A shorter one would disturb the measurement.
const tick = 250 * time.Millisecond

// idle is the time after which a session that is not used counts as idle.
const idle = 3 * time.Second

func openSessions(count int) (s *sessions, err error) {
	s = &sessions{network: &divertible{Network: transport.UDP()}, opened: make(chan *endpoint.Conn, count)}
	defer func() {
		if err != nil {
			_ = s.close() // after another error
		}
	}()
	for _, pc := range []*transport.PacketConn{&s.sink, &s.source} {
		if *pc, err = transport.UDP().ListenPacket("127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	to := slices.Repeat([]netip.AddrPort{s.sink.LocalAddr()}, count)
	if s.bare, err = baresend.New(s.source.(transport.BatchConn), to); err != nil {
		return nil, err
	}
	s.listener, err = endpoint.Listen("127.0.0.1:0", endpoint.Config{
		Network: s.network, Timeout: time.Hour, Tick: tick, MaxConns: count, Handshakes: 10 * count,
	})
	if err != nil {
		return nil, err
	}
	s.served.Go(func() { s.serveErr = s.listener.Serve(context.Background(), handler{s.opened}) })
	return s, nil
}

// dial opens a session and returns the server's end.
func (s *sessions) dial(ctx context.Context) (*endpoint.Conn, error) {
	c, err := endpoint.Dial(ctx, fmt.Sprint(s.listener.Addr()), endpoint.Config{Tick: endpoint.OnWake}, handler{})
	if err != nil {
		return nil, err
	}
	s.clients = append(s.clients, c)
	return <-s.opened, nil
}

// sendBare sends datagrams of the same sizes to the same addresses, without a server.
func (s *sessions) sendBare(all []datagram) error {
	var payload [transport.MaxPayload]byte
	for _, d := range all {
		if err := s.bare.Add(d.to, payload[:d.size]); err != nil {
			return err
		}
	}
	return s.bare.Flush()
}

// divert ends the clients without a word to the server, once they have received all messages.
func (s *sessions) divert(ctx context.Context, all []*player) error {
	for _, p := range all {
		for p.Unacked() > 0 {
			if err := wait(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	}
	to := s.sink.LocalAddr()
	s.network.to.Store(&to)
	for _, c := range s.clients {
		_ = c.Close() // always nil
	}
	s.clients = nil
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *sessions) close() error {
	for _, c := range s.clients {
		_ = c.Close() // always nil
	}
	var err error
	if s.listener != nil {
		err = s.listener.Close()
		s.served.Wait()
	}
	for _, pc := range []transport.PacketConn{s.sink, s.source} {
		if pc != nil {
			err = errors.Join(err, pc.Close())
		}
	}
	return errors.Join(err, s.serveErr)
}

// handler is that of both ends.
type handler struct{ opened chan<- *endpoint.Conn }

func (h handler) Opened(c *endpoint.Conn) {
	if h.opened != nil {
		h.opened <- c
	}
}
func (handler) Closed(*endpoint.Conn, error)               {}
func (handler) Datagram(*endpoint.Conn, []byte, time.Time) {}
func (handler) Message(*endpoint.Conn, []byte, time.Time)  {}
func (handler) Tick(time.Time)                             {}

// divertible is a network whose sockets send everything to one address once there is one. They then
// ignore what they receive.
type divertible struct {
	transport.Network
	to atomic.Pointer[netip.AddrPort]
}

func (n *divertible) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	return &diverted{pc.(transport.BatchConn), n}, nil
}

type diverted struct {
	transport.BatchConn
	network *divertible
}

func (d *diverted) ReadBatch(into []transport.Datagram) (int, error) {
	for {
		n, err := d.BatchConn.ReadBatch(into)
		if err != nil || d.network.to.Load() == nil {
			return n, err
		}
	}
}

func (d *diverted) WriteBatch(out []transport.Datagram) (int, error) {
	if to := d.network.to.Load(); to != nil {
		for i := range out {
			out[i].Addr = *to
		}
	}
	return d.BatchConn.WriteBatch(out)
}

func (d *diverted) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if other := d.network.to.Load(); other != nil {
		to = *other
	}
	return d.BatchConn.WriteTo(b, to)
}

// discarding is a session without a socket, for tests.
type discarding struct{}

func (discarding) ID() uint64 { return 1 }
func (discarding) Overhead() uint64 {
	return uint64(endpoint.IPSize + endpoint.HeaderSize + transport.AES128GCM.Overhead())
}
func (discarding) Queue([]byte) error        { return nil }
func (discarding) SendReliable([]byte) error { return nil }
func (discarding) Unacked() int              { return 0 }
func (discarding) Close() error              { return nil }
