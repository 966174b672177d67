package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// rogue is a server with a session of its own that sends what it likes. Its handler runs in the listener's goroutine.
type rogue struct {
	t        *testing.T
	network  *uplinktest.Network
	listener *transport.Listener
	client   *client.Conn
	log      logLines
	open     func(*transport.Conn) // what is sent at once on each connection; may be nil
	mute     bool                  // binds are not answered

	mu       sync.Mutex
	conn     *transport.Conn // the newest
	sessions int
	binds    int
	frames   int
	acks     int // of worlds
	replies  int
}

// newRogue starts a rogue server, whose first connections are told what open says.
func newRogue(t *testing.T, open func(*transport.Conn)) *rogue {
	t.Helper()
	r := &rogue{t: t, network: newNetwork(t, 0, 1), open: open}
	var err error
	r.listener, err = transport.Listen(uplinktest.Addr, transport.Config{Network: r.network, HandshakesPerNetwork: 1000, Handshakes: 1000})
	uplinktest.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- r.listener.Serve(context.Background(), r) }()
	t.Cleanup(func() {
		uplinktest.Must(t, r.listener.Close())
		uplinktest.Must(t, <-served)
	})
	return r
}

// dial connects a client, whose log is kept.
func (r *rogue) dial(cfg client.Config) *client.Conn {
	r.t.Helper()
	cfg.Logger = slog.New(slog.NewJSONHandler(&r.log, nil))
	r.client = uplinktest.Dial(r.t, r.network, cfg)
	settle(time.Second)
	return r.client
}

func (r *rogue) Opened(c *transport.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	r.sessions++
	if r.open != nil {
		r.open(c)
	}
}

func (r *rogue) Closed(*transport.Conn, error) {}

func (r *rogue) Datagram(c *transport.Conn, b []byte, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, body, err := control.Split(b)
	switch {
	case err != nil:
		r.t.Errorf("the client sent %x: %v", b, err)
	case t == control.Bind:
		r.binds++
		if r.mute {
			return
		}
		q, err := control.ParseBindRequest(body)
		uplinktest.Must(r.t, err)
		a := control.BindAnswer{RPC: uint8(q.RPC), Ring: q.Ring, Prior: q.Prior}
		out, err := a.Append(nil)
		uplinktest.Must(r.t, err)
		_ = c.Send(out) // the client asks again
	case t == control.DownAck:
		r.acks++
	case t == control.Frame:
		r.frames++
	}
}

func (r *rogue) Message(_ *transport.Conn, b []byte, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b[0] == byte(control.Reply) {
		r.replies++
	}
}

func (r *rogue) Tick(time.Time) {}

// link returns the newest connection.
func (r *rogue) link() *transport.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// datagrams sends each as a datagram. Between hundreds of them time passes.
func (r *rogue) datagrams(all ...[]byte) {
	for i, b := range all {
		_ = r.link().Send(b) // a client that has ended the session gets no more
		if i%200 == 199 {
			settle(ms)
		}
	}
	settle(100 * ms)
}

// messages sends each as a reliable message. It stops when the session is over.
func (r *rogue) messages(all ...[]byte) {
	for _, b := range all {
		err := r.link().SendReliable(b)
		for err == transport.ErrBacklog { //nolint:errorlint // it is not wrapped
			settle(20 * ms)
			err = r.link().SendReliable(b)
		}
		if err != nil {
			break
		}
	}
	settle(200 * ms)
}

// offer returns an offer's message.
func (r *rogue) offer(o replication.Offer) []byte {
	b, err := o.Append(nil)
	uplinktest.Must(r.t, err)
	return b
}

// address returns the client's.
func (r *rogue) address() netip.AddrPort { return r.link().RemoteAddr() }

// counts returns how many sessions, requests to bind, frames, acks of worlds and answers to offers have come.
func (r *rogue) counts() (sessions, binds, frames, acks, replies int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions, r.binds, r.frames, r.acks, r.replies
}

// logLines keeps the lines of a log.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// showable reports whether a text can go to a terminal.
func showable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

// ackFlood is a datagram full of acks of RPC 0.
func ackFlood(a rpcdelta.Ack) []byte {
	b := []byte{byte(control.Acks)}
	for len(b)+16 < transport.MaxPayload {
		b = a.Append(b)
	}
	return b
}

// repeated returns n times the same.
func repeated(n int, b []byte) (all [][]byte) {
	for range n {
		all = append(all, bytes.Clone(b))
	}
	return all
}
