package client_test

import (
	"bytes"
	"context"
	"log/slog"
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

// rogue is a hostile server. Its handler runs in the listener's goroutine.
type rogue struct {
	t        *testing.T
	network  *uplinktest.Network
	listener *transport.Listener
	client   *client.Conn
	log      logLines
	open     func(*transport.Conn) // called with each new session; may be nil

	mu   sync.Mutex
	mute bool            // requests to bind are not answered
	conn *transport.Conn // the newest
	got  counts
}

// counts counts the sessions of a rogue server, and the requests to bind and frames that it
// received.
type counts struct{ sessions, binds, frames int }

// newRogue starts a rogue server that calls open with each new session.
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

// dial connects a client that logs to r.log.
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
	r.got.sessions++
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
		r.got.binds++
		if r.mute {
			return
		}
		q, err := control.ParseBindRequest(body)
		uplinktest.Must(r.t, err)
		a := control.BindAnswer{RPC: uint8(q.RPC), Ring: q.Ring, Prior: q.Prior}
		out, err := a.Append(nil)
		uplinktest.Must(r.t, err)
		_ = c.Send(out) // the client repeats its request
	case t == control.Frame:
		r.got.frames++
	}
}

func (r *rogue) Message(*transport.Conn, []byte, time.Time) {}
func (r *rogue) Tick(time.Time)                             {}

// link returns the newest connection.
func (r *rogue) link() *transport.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// datagrams sends datagrams, 200 per millisecond.
func (r *rogue) datagrams(all ...[]byte) {
	for i, b := range all {
		_ = r.link().Send(b) // fails if the client has ended the session
		if i%200 == 199 {
			settle(ms)
		}
	}
	settle(100 * ms)
}

// messages sends reliable messages until the session ends.
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

// offer returns the message of an offer.
func (r *rogue) offer(o replication.Offer) []byte {
	b, err := o.Append(nil)
	uplinktest.Must(r.t, err)
	return b
}

// counts returns the counts so far.
func (r *rogue) counts() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// silence makes the server ignore requests to bind.
func (r *rogue) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute = true
}

// logLines collects the lines of a log.
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

// showable reports whether a text can be printed to a terminal.
func showable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

// ackFlood returns a datagram full of copies of an ack.
func ackFlood(a rpcdelta.Ack) []byte {
	b := []byte{byte(control.Acks)}
	for len(b)+16 < transport.MaxPayload {
		b = a.Append(b)
	}
	return b
}

// repeated returns n copies of b.
func repeated(n int, b []byte) (all [][]byte) {
	for range n {
		all = append(all, bytes.Clone(b))
	}
	return all
}
