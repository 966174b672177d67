package client_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// TestNobodyStays checks that a client connects at most every two seconds to a server that ends
// each session at once, so that the game's backend does not get more requests for tokens.
func TestNobodyStays(t *testing.T) {
	offer := encoded(t, &replication.Offer{Name: "w", RateHz: 1, TickHz: 1})
	for name, open := range map[string]func(*endpoint.Conn){
		"shuts down": func(c *endpoint.Conn) {
			for range 3 {
				_ = c.Send([]byte{byte(message.Leaving)})
			}
		},
		"offers too many worlds": func(c *endpoint.Conn) {
			for range 200 {
				uplinktest.Must(t, c.SendReliable(offer))
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRogue(t, open)
			conn := r.dial(client.Config{})
			settle(time.Minute)
			if n, lines := r.counts().sessions, len(r.lines()); n < 20 || n > 38 || lines > 3*38 {
				t.Errorf("%s: %d sessions per minute, %d lines are logged", name, n, lines)
			}
			uplinktest.Must(t, conn.Err())
		})
	}
}

// TestLeavingServer checks that a client waits before it reconnects to a server that announced to
// shut down, however long the session lasted.
func TestLeavingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		r.dial(client.Config{})
		settle(time.Minute)
		r.datagrams([]byte{byte(message.Leaving)})
		// A handshake takes two round trips of 50 ms, after the 25 ms that the message took.
		for _, want := range []int{1, 2} {
			settle(100 * ms)
			if n := r.counts().sessions; n != want {
				t.Errorf("%d sessions, want %d", n, want)
			}
		}
	})
}

// TestKickText checks that the server's reason is printable in the error.
func TestKickText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		conn := r.dial(client.Config{})
		r.link().CloseWith(transport.ErrKicked, nasty)
		settle(time.Second)
		if err := conn.Err(); !errors.Is(err, transport.ErrKicked) || !showable(err.Error()) {
			t.Errorf("%q", err)
		}
	})
}

// TestForgedHandshake checks that a client sends no more hellos to an attacker on the path who
// drops them and sends 1,000 forged answers per second.
func TestForgedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 5 * time.Second
		network := newNetwork(t, 0, 1)
		socket, err := network.ListenPacket(uplinktest.Addr)
		uplinktest.Must(t, err)
		var mu sync.Mutex
		hellos := 0
		var nonce []byte // of the last hello
		var from netip.AddrPort
		network.Watch(func(sender, to netip.AddrPort, b []byte) {
			mu.Lock()
			defer mu.Unlock()
			if to == socket.LocalAddr() {
				nonce, from = bytes.Clone(b[3:11]), sender
				hellos++
			}
		})
		rng := rand.New(rand.NewPCG(11, 12))
		over := make(chan struct{})
		go func() {
			defer close(over)
			for i := range timeout / ms {
				time.Sleep(ms)
				// A retry with another cookie, a welcome with a forged tag, a refusal.
				kind := i % 3
				mu.Lock()
				b, to := append([]byte{0x80 | byte(1+kind)}, nonce...), from
				mu.Unlock()
				for range []int{24, 58, 0}[kind] {
					b = append(b, byte(rng.Uint32()))
				}
				if kind == 2 {
					b = append(b, 2) // busy
				}
				if _, err := socket.WriteTo(b, to); err != nil {
					t.Error(err)
				}
			}
		}()
		_, err = client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network, Transport: client.Transport{Timeout: timeout}})
		<-over
		uplinktest.Must(t, socket.Close())
		if own := int(4 * timeout / time.Second); !errors.Is(err, transport.ErrServerBusy) || hellos < own || hellos > own+3 {
			t.Errorf("%d hellos, want %d to %d: %v", hellos, own, own+3, err)
		}
	})
}

// TestServerViolations checks that a reliable message which no server sends ends the session, and
// is counted once. The client reconnects with pauses, or returns the violation.
func TestServerViolations(t *testing.T) {
	offer := encoded(t, &replication.Offer{Name: "w", RateHz: 1, TickHz: 1})
	handover := message.HandoverNotice{Stream: message.NoStream, Servers: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:7777")}}
	next, err := token.Issue(token.Development().Issuer(), token.Claims{Expires: time.Now().Add(time.Minute), Servers: handover.Servers})
	uplinktest.Must(t, err)
	handover.Token = next
	for _, tt := range []struct {
		name    string
		message []byte
		want    error // nil if it is no violation
	}{
		{"malformed handover", []byte{byte(message.Handover), message.NoStream, 0}, message.ErrMalformed},
		{"frame", []byte{0x80, 0, 0, 0, 0}, message.ErrMalformed},
		{"type of the unreliable channel", []byte{byte(message.Acks)}, message.ErrMalformed},
		{"request to bind after a gap", encoded(t, &message.BindRequest{RPC: 1, Name: "Explosion"}), message.ErrMalformed},
		{"request to bind twice", encoded(t, &message.BindRequest{Name: "Explosion"}), message.ErrMalformed},
		{"message of a client", replication.AppendReply(nil, 1, replication.Request), message.ErrMalformed},
		{"malformed offer", []byte{byte(message.Offer), 0xff}, message.ErrMalformed},
		{"world number out of range", []byte{byte(message.Stop), replication.MaxReplicas}, message.ErrMalformed},
		{"message too long", message.AppendMessage(nil, make([]byte, client.MaxMessage+1)), message.ErrMalformed},
		{"64 offers of worlds at once", offer, transport.ErrProtocol},
		{"message", message.AppendMessage(nil, []byte("hello")), nil},
		{"more than 4 handovers at once", message.AppendHandover(nil, &handover), transport.ErrProtocol},
		{"piece that was not requested", []byte{byte(message.Piece), 1, 2, 3}, nil},
		{"end of an unknown world", []byte{byte(message.Stop), 1}, nil},
	} {
		for _, reconnect := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newRogue(t, func(c *endpoint.Conn) {
					for range 100 {
						_ = c.SendReliable(tt.message) // until there is a backlog
					}
				})
				conn := r.dial(client.Config{NoReconnect: !reconnect})
				settle(10 * time.Second)
				malformed, err, sessions := int(conn.Stats().Malformed), conn.Err(), r.counts().sessions
				var ok bool
				switch {
				case tt.want == nil:
					ok = sessions == 1 && err == nil && malformed == 0
				case reconnect:
					ok = sessions >= 4 && sessions <= 12 && err == nil && malformed == sessions
				default:
					ok = sessions == 1 && errors.Is(err, client.ErrLost) && errors.Is(err, tt.want) && malformed == 1
					ok = ok && (tt.want == message.ErrMalformed || strings.Contains(err.Error(), tt.name)) //nolint:errorlint // want is a sentinel
				}
				if !ok {
					t.Errorf("%s: %d sessions, error %v, %d malformed", tt.name, sessions, err, malformed)
				}
			})
		}
	}
}

// TestForgedSnapshot sends a snapshot in which objects have the size -1: the predicted rotation of
// an object on the ground is divided by the size plus 1. The client drops the snapshot, and the
// session continues.
func TestForgedSnapshot(t *testing.T) {
	// Snapshots 0 and 1 of a crate that turns. The encoder of the second one checked no size.
	honest := unhex(t, "0000c0bfb1fde1aec1900c50948f2123c848f1db4e04694c9d")
	forged := unhex(t, "4100fff899c13eaa90f1e1de16")
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		v := newVictim(r, client.Config{})
		dec := snapshot.NewDecoder(v.crates.Schema(), nil)
		if _, _, err := dec.Decode(honest); err != nil {
			t.Fatal(err)
		}
		if _, _, err := dec.Decode(forged); !errors.Is(err, malformed.ErrBounds) {
			t.Fatalf("the forged snapshot is refused with %v", err)
		}
		var ticks replication.Ticks
		send := func(n uint16, distance int, payload []byte) {
			ticks.Set(n, uint64(n))
			v.sendDown(r, v.crate.Number, append(ticks.Append(nil, n, distance), payload...))
		}
		send(0, 0, honest)
		send(1, 1, forged)
		if st := v.view.Stats(); st.Messages != 1 || st.BadValues != 1 {
			t.Fatalf("%+v", st)
		}
		r.messages(r.offer(v.crate))
		v.sendSnapshots(r, v.crate.Number, 3, func(n uint16) uint64 { return uint64(n) }, func(*snapshot.Set) {})
		if st := v.view.Stats(); st.Messages != 4 || r.counts().sessions != 1 || v.conn.Err() != nil {
			t.Errorf("%+v, %d sessions, %v", st, r.counts().sessions, v.conn.Err())
		}
	})
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	uplinktest.Must(t, err)
	return b
}

// TestSilentServer counts the requests to a server that answers no request to bind, and completes
// no initial state.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		v := newVictim(r, client.Config{})
		r.silence()
		before := r.counts().binds
		if _, err := client.Bind[crate](t.Context(), v.conn, "Other", client.BindConfig{}); !errors.Is(err, client.ErrBindTimeout) {
			t.Error(err)
		}
		settle(time.Minute)
		if n := r.counts().binds - before; n > 22 {
			t.Errorf("%d requests to bind", n)
		}
		o := v.crate
		o.Number, o.Name, o.Initial, o.Hash = 5, "slow", 1000, 9
		r.messages(r.offer(o))
		go func() {
			for range 100 {
				_ = r.link().SendReliable([]byte{byte(message.Piece), o.Number, 1})
				time.Sleep(time.Second)
			}
		}()
		if _, err := client.SubscribeSnapshots(t.Context(), v.conn, "slow", client.SnapshotConfig[crate]{}); err == nil || !strings.Contains(err.Error(), "of 1000 bytes of its initial state") {
			t.Error(err)
		}
		settle(2 * time.Minute)
		if held := client.Held(v.conn, v.view); held["initial bytes"] != 0 || held["worlds"] != 3 {
			t.Errorf("%v", held)
		}
	})
}
