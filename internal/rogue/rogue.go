// Package rogue implements a client that violates the protocol within an authenticated session, for
// soak tests of servers.
package rogue

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Config configures a [Client].
type Config struct {
	// Token is the connect token.
	Token token.Token
	// Network opens the packet connections; nil means UDP.
	Network transport.Network
	// Random is the source of the client's keys; nil selects crypto/rand. Clients with equal keys
	// and tokens send the same request to join.
	Random io.Reader
	// Deaf reports whether the client ignores segments of the reliable channel, so that it
	// acknowledges none.
	Deaf bool
	// Datagram and Message, if set, are called with payloads of the unreliable and messages of the
	// reliable channel, by the goroutine that receives. They may call the client's methods but
	// Close. The bytes are valid during the call.
	Datagram, Message func(b []byte)
}

// Client is one end of an authenticated session. Its methods are safe for concurrent use.
type Client struct {
	cfg    Config
	remote netip.AddrPort
	local  string
	work   sync.WaitGroup

	mu      sync.Mutex
	session *session.Session
	pc      transport.PacketConn
	stopped bool
}

// timeout is the timeout of the session, and step the time between two checks of its timers.
const (
	timeout = 15 * time.Second
	step    = 10 * time.Millisecond
)

// Dial opens a session with the listener at addr.
func Dial(ctx context.Context, addr string, cfg Config) (*Client, error) {
	remote, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("rogue: address %q: %w", addr, err)
	}
	if cfg.Network == nil {
		cfg.Network = transport.UDP()
	}
	c := &Client{cfg: cfg, remote: remote, local: "127.0.0.1:0"}
	if !remote.Addr().IsLoopback() {
		c.local = ":0"
	}
	if c.pc, err = cfg.Network.ListenPacket(c.local); err != nil {
		return nil, fmt.Errorf("rogue: %w", err)
	}
	var nonce [8]byte
	rand.Read(nonce[:])
	c.mu.Lock()
	c.session = session.NewClient(time.Now(), session.Request{
		Remote: session.Path{Addr: remote}, ServerKey: cfg.Token.ServerKey(), KeyID: cfg.Token.KeyID(), Route: cfg.Token.Route(), Token: cfg.Token.Sealed(),
		Suites: 1 << transport.AES128GCM, Nonce: binary.LittleEndian.Uint64(nonce[:]),
	}, session.Config{Timeout: timeout, Output: c.output, Buffers: new(session.Buffers), Random: cfg.Random})
	c.mu.Unlock()
	opened := make(chan error, 1)
	c.work.Go(func() { c.receive(c.pc, opened) })
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("rogue: dial %v: %w", remote, err)
	}
	return c, nil
}

// output is the session's output function. It is called with the lock held.
func (c *Client) output(to session.Path, b []byte) {
	_, _ = c.pc.WriteTo(b, to.Addr) // an error is packet loss
}

// receive reads datagrams from pc until that is closed. It sends the result of
// the handshake on opened, unless that is nil.
func (c *Client) receive(pc transport.PacketConn, opened chan<- error) {
	buf := make([]byte, wire.MaxDatagram)
	for {
		err := pc.SetReadDeadline(time.Now().Add(step))
		n, from := 0, netip.AddrPort{}
		if err == nil {
			n, from, err = pc.ReadFrom(buf)
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			if opened != nil {
				opened <- err
			}
			return
		}
		state, cause := c.input(time.Now(), from, buf[:n])
		if opened != nil && state == session.Open {
			opened <- nil
			opened = nil
		} else if opened != nil && state == session.Closed {
			opened <- cause
			opened = nil
		}
	}
}

// input passes a datagram, or none if it is empty, to the session, and the results to the
// callbacks.
func (c *Client) input(now time.Time, from netip.AddrPort, b []byte) (session.State, error) {
	c.mu.Lock()
	var payload []byte
	if len(b) > 0 && !c.ignores(b) {
		payload, _ = c.session.Input(now, session.Path{Addr: from}, b)
	}
	c.session.Advance(now)
	c.mu.Unlock()
	if payload != nil && c.cfg.Datagram != nil {
		c.cfg.Datagram(payload)
	}
	for {
		c.mu.Lock()
		m, ok := c.session.Receive(now, nil)
		state, cause := c.session.State(), c.session.Err()
		c.mu.Unlock()
		if !ok {
			return state, cause
		}
		if c.cfg.Message != nil {
			c.cfg.Message(m)
		}
	}
}

// ignores reports whether a deaf client ignores the datagram: it has segments of the reliable
// channel.
func (c *Client) ignores(b []byte) bool {
	h, err := wire.ParseHeader(b)
	return c.cfg.Deaf && err == nil && h.Kind == wire.ReliableKind
}

// Close ends the session without telling the server, and waits for the goroutine that receives.
func (c *Client) Close() {
	c.mu.Lock()
	c.stopped = true
	_ = c.pc.Close() // nothing can be done about an error
	c.mu.Unlock()
	c.work.Wait()
}

// Err returns nil while the session is open, and then why it ended.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.State() == session.Open {
		return nil
	}
	if err := c.session.Err(); err != nil {
		return err
	}
	return session.ErrNotOpen
}

// Sent returns the number of datagrams that the client has sent.
func (c *Client) Sent() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Stats().DatagramsSent
}

// Send sends b as the payload of a datagram.
func (c *Client) Send(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Send(time.Now(), b)
}

// SendReliable queues b as a message of the reliable channel.
func (c *Client) SendReliable(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.SendReliable(time.Now(), b)
}

// Heartbeat sends a heartbeat with the numbers ask and echo, which requests an answer.
func (c *Client) Heartbeat(ask, echo uint32) error {
	return c.raw(wire.HeartbeatKind, wire.AppendHeartbeat(nil, wire.Heartbeat{Ask: ask, Echo: echo, Answer: true}))
}

// Probe sends the largest probe there is.
func (c *Client) Probe() error {
	return c.raw(wire.ProbeKind, make([]byte, wire.MaxDatagram-wire.ShortSize-wire.MaxTag))
}

// Segment is one segment of the reliable channel. Its fields are sent unchanged.
type Segment struct {
	Command, Fragment uint8
	Window            uint16
	Time, Number, Una uint32
	Data              []byte
}

// Push is the Command of a segment that carries Data.
const Push = 81

// SegmentSize is the size of a segment without its Data, in bytes.
const SegmentSize = reliable.SegmentSize

// Message returns the Data of a segment that contains one message.
func Message(m []byte) []byte { return reliable.AppendMessage(nil, m) }

// Segments sends segments in one datagram.
func (c *Client) Segments(segments ...Segment) error {
	c.mu.Lock()
	conversation := uint32(c.session.ID() >> 24)
	c.mu.Unlock()
	var b []byte
	for _, s := range segments {
		b = binary.LittleEndian.AppendUint32(b, conversation)
		b = append(b, s.Command, s.Fragment)
		b = binary.LittleEndian.AppendUint16(b, s.Window)
		for _, v := range []uint32{s.Time, s.Number, s.Una, uint32(len(s.Data))} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = append(b, s.Data...)
	}
	return c.raw(wire.ReliableKind, b)
}

func (c *Client) raw(k wire.Kind, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.SendRaw(k, body)
}

// Move continues the session from another local address.
func (c *Client) Move() error {
	pc, err := c.cfg.Network.ListenPacket(c.local)
	if err != nil {
		return fmt.Errorf("rogue: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.Join(session.ErrNotOpen, pc.Close())
	}
	old := c.pc
	c.pc = pc
	c.work.Go(func() { c.receive(pc, nil) })
	c.session.Rebound(time.Now())
	_ = old.Close() // nothing can be done about an error
	return nil
}
