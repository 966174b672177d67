package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// speaker is a server that sends each client reliable messages of its choice.
type speaker struct {
	message  []byte
	sessions int
	ends     []error
}

func (s *speaker) Opened(c *transport.Conn) {
	s.sessions++
	for range 100 {
		_ = c.SendReliable(s.message) // until there is a backlog
	}
}
func (s *speaker) Closed(_ *transport.Conn, err error)       { s.ends = append(s.ends, err) }
func (*speaker) Message(*transport.Conn, []byte, time.Time)  {}
func (*speaker) Datagram(*transport.Conn, []byte, time.Time) {}
func (*speaker) Tick(time.Time)                              {}
func (s *speaker) serve(t *testing.T, network transport.Network) {
	l, err := transport.Listen(uplinktest.Addr, transport.Config{Network: network})
	uplinktest.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background(), s) }()
	t.Cleanup(func() {
		uplinktest.Must(t, l.Close())
		uplinktest.Must(t, <-served)
	})
}

// TestServerViolations: a reliable message that no server sends ends the connection, and is counted once. The client
// connects again, with pauses, or says why it does not.
func TestServerViolations(t *testing.T) {
	for _, tt := range []struct {
		name    string
		message []byte
		ends    bool
	}{
		{"an unknown type", []byte{0xc0}, true},
		{"a frame", []byte{0x80, 0, 0, 0, 0}, true},
		{"a message of the other channel", []byte{byte(control.Acks)}, true},
		{"a client's message", replication.AppendReply(nil, 1, replication.Request), true},
		{"a malformed offer", []byte{byte(control.Offer), 0xff}, true},
		{"a world that cannot be", []byte{byte(control.Stop), replication.MaxStreams}, true},
		{"a message that is too long", control.AppendMessage(nil, make([]byte, client.MaxMessage+1)), true},
		{"a message", control.AppendMessage(nil, []byte("hello")), false},
		{"a piece of what was not asked for", []byte{byte(control.Piece), 1, 2, 3}, false},
		{"the end of what was not offered", []byte{byte(control.Stop), 1}, false},
	} {
		for _, reconnect := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network := newNetwork(t, 0, 1)
					s := &speaker{message: tt.message}
					s.serve(t, network)
					conn := uplinktest.Dial(t, network, client.Config{NoReconnect: !reconnect})
					settle(10 * time.Second)
					st := conn.Stats()
					switch err := conn.Err(); {
					case !tt.ends:
						if s.sessions != 1 || err != nil || st.Malformed != 0 {
							t.Errorf("%d sessions, error %v, %d malformed", s.sessions, err, st.Malformed)
						}
					case reconnect:
						if s.sessions < 4 || s.sessions > 12 || err != nil || int(st.Malformed) != s.sessions {
							t.Errorf("%d sessions, error %v, %d malformed", s.sessions, err, st.Malformed)
						}
					default:
						if s.sessions != 1 || !errors.Is(err, client.ErrLost) || !errors.Is(err, control.ErrMalformed) || st.Malformed != 1 {
							t.Errorf("%d sessions, error %v, %d malformed", s.sessions, err, st.Malformed)
						}
					}
				})
			})
		}
	}
}
