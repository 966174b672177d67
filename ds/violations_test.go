package ds_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/schema"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// record is a log that can be read while it is written.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(b)
}

func (r *record) count(s string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.buf.String(), s)
}

// TestReliableViolations: a reliable message that no client sends ends the session. It is counted by reason and logged,
// once, and nothing after it is looked at.
func TestReliableViolations(t *testing.T) {
	const unreliable, reliable = 3, 4 // numbers of the client's RPCs
	for _, tt := range []struct {
		name    string
		message []byte
		reason  string
		drop    ds.Drop
		rpc     bool // the drop is counted for the RPC
	}{
		{"an unknown type", []byte{0xc0, 1, 2}, "unknown reliable message", ds.Malformed, false},
		{"a server's message", []byte{byte(control.Piece), 1, 2}, "unknown reliable message", ds.Malformed, false},
		{"a message of the other channel", []byte{byte(control.DownAck), 0}, "unknown reliable message", ds.Malformed, false},
		{"a bundle", []byte{byte(control.Bundle), 1, 0, 0}, "unknown reliable message", ds.Malformed, false},
		{"a malformed bind request", []byte{byte(control.Bind), 0xdd, 0xff}, "malformed bind request", ds.Malformed, false},
		{"a malformed reply", []byte{byte(control.Reply), 1}, "reply to no offer", ds.Malformed, false},
		{"a reply to no offer", control.AppendReply(nil, 5, control.Send), "reply to no offer", ds.Malformed, false},
		{"a message that is too long", control.AppendMessage(nil, make([]byte, ds.MaxMessage+1)), "a message is too long", ds.Malformed, false},
		{"a frame without a number", []byte{0x80}, "malformed reliable frame", ds.Malformed, false},
		{"a frame of an RPC that is not bound", []byte{0x80, 9, 0, 0, 0}, "reliable frame of an RPC that is not bound", ds.UnknownRPC, false},
		{"a frame of the other channel's RPC", []byte{0x80, unreliable, 0, 0, 0}, "reliable frame of an RPC that is not bound", ds.UnknownRPC, false},
		{"a malformed frame", []byte{0x80, reliable, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "malformed reliable frame", ds.Malformed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log record
			cfg := ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			besides(t, cfg, func(t *testing.T, srv *uplinktest.Server, r *raw, schema *schema.Schema) {
				for number, channel := range map[int]bool{unreliable: false, reliable: true} {
					if a := r.bind(request(number, schema, channel)); a.Reason != control.ReasonNone {
						t.Fatalf("%+v", a)
					}
				}
				for range 100 { // all but the first are not looked at
					_ = r.SendReliable(tt.message) // until there is a backlog, or the session has ended
				}
				settle(100 * ms)
				err := r.Send([]byte{0})
				if !errors.Is(err, transport.ErrClosedByPeer) || !strings.Contains(err.Error(), tt.reason) {
					t.Errorf("the session ended with %v, want %q", err, tt.reason)
				}
				st := srv.Stats()
				drops := st.Drops
				if tt.rpc {
					drops = st.RPCs[1].Drops
				}
				if drops[tt.drop] != 1 {
					t.Errorf("counted %v, want %v once", drops, tt.drop)
				}
				if n := log.count("session ended"); n != 1 || log.count(fmt.Sprintf("reason=%q", tt.reason)) != 1 {
					t.Errorf("logged %d times: %s", n, log.buf.String())
				}
			})
		})
	}
}

// TestHonestReliableCalls: over a link that loses, duplicates and reorders, and across restarts of the server, a client
// with reliable and unreliable calls of the same RPC sends nothing that ends its session.
func TestHonestReliableCalls(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(80*ms, simnet.Config{Loss: 0.2, Jitter: 30 * ms, Duplicate: 0.1, Seed: seed})
		network := uplinktest.NewNetwork(t, up, down)
		var log record
		cfg := ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		journal := uplinktest.NewJournal(t, 1)
		serve := func() *uplinktest.Server {
			return uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
				return errors.Join(ds.Handle(s, "Fire", journal.Handle), ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {}))
			})
		}
		srv := serve()
		conn := uplinktest.Dial(t, network, client.Config{})
		move, fire := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", client.BindConfig{Reliable: true})
		n := uint64(0)
		call := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
				m, f := uplinktest.MoveAt(2, n), uplinktest.MoveAt(1, n)
				if err := move.Send(&m); err != nil && !errors.Is(err, client.ErrReconnecting) {
					t.Fatal(err)
				}
				switch err := fire.Send(&f); {
				case err == nil:
					n++
				case errors.Is(err, client.ErrReconnecting):
					n = 0 // a new player
				default:
					t.Fatal(err)
				}
			}
		}
		for range 4 {
			call(3 * time.Second)
			network.Crash(t, uplinktest.Addr)
			<-srv.Served
			srv = serve()
			call(8 * time.Second)
			if malformed, unknown := dropped(srv); malformed+unknown != 0 || log.count("session ended") != 0 || n < 60 {
				t.Errorf("%d malformed, %d unknown, %d frames sent, log %s", malformed, unknown, n, log.buf.String())
			}
		}
	})
}
