package client_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// TestNobodyStays: a server that accepts a client and at once says, or shows, that it goes away
// is not connected to faster
// than every two seconds, and the game's backend is not asked for more tokens than that.
func TestNobodyStays(t *testing.T) {
	for name, open := range map[string]func(*transport.Conn){
		"says that it shuts down": func(c *transport.Conn) {
			for range 3 {
				_ = c.Send([]byte{byte(control.Leaving)})
			}
		},
		"offers too many worlds": func(c *transport.Conn) {
			o := replication.Offer{Name: "w", RateHz: 1, TickHz: 1}
			b, err := o.Append(nil)
			for range 200 {
				err = errors.Join(err, c.SendReliable(b))
			}
			if err != nil {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRogue(t, open)
				conn := r.dial(client.Config{})
				settle(time.Minute)
				if sessions, _, _, _, _ := r.counts(); sessions < 20 || sessions > 38 {
					t.Errorf("%d sessions a minute", sessions)
				}
				if n := len(r.log.all()); n > 3*38 {
					t.Errorf("%d lines are logged", n)
				}
				if conn.Err() != nil {
					t.Error(conn.Err())
				}
			})
		})
	}
}

// TestLeavingServer: however long a connection lasted, a server that says that it shuts down is
// left alone for a moment.
func TestLeavingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		r.dial(client.Config{})
		settle(time.Minute)
		r.datagrams([]byte{byte(control.Leaving)})
		// A handshake takes two round trips of 50 ms, after the 25 ms that the message took.
		for _, want := range []int{1, 2} {
			settle(100 * ms)
			if sessions, _, _, _, _ := r.counts(); sessions != want {
				t.Errorf("%d sessions, want %d", sessions, want)
			}
		}
	})
}

// TestKickText: the text with which a server ends a connection is printable in the error.
func TestKickText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		conn := r.dial(client.Config{})
		r.link().CloseWith(nasty)
		settle(time.Second)
		if err := conn.Err(); !errors.Is(err, client.ErrKicked) || !showable(err.Error()) {
			t.Errorf("%q", err)
		}
	})
}

// TestForgedHandshake: somebody who sees a client's hellos, keeps them from the server, and
// answers them a thousand times a
// second with whatever he can forge, has the client send no more than twenty a second until it gives up.
func TestForgedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 5 * time.Second
		network := newNetwork(t, 0, 1)
		socket, err := network.ListenPacket(uplinktest.Addr)
		uplinktest.Must(t, err)
		var mu sync.Mutex
		hellos := 0
		var nonce []byte // of the client's hello
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
				// A retry with another cookie, a welcome that nobody sealed, a refuse.
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
		_, err = client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network, Timeout: timeout})
		<-over
		uplinktest.Must(t, socket.Close())
		if most := int(20 * timeout / time.Second); !errors.Is(err, transport.ErrServerBusy) || hellos < most/2 || hellos > most+2 {
			t.Errorf("%d hellos, want at most %d: %v", hellos, most, err)
		}
	})
}

// TestBreach: where connections are not made again, Err says which rule the server broke.
func TestBreach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		conn := r.dial(client.Config{NoReconnect: true})
		o := replication.Offer{Name: "w", RateHz: 1, TickHz: 1}
		r.messages(repeated(100, r.offer(o))...)
		if err := conn.Err(); !errors.Is(err, client.ErrLost) || !errors.Is(err, transport.ErrProtocol) || !strings.Contains(err.Error(), "64 offers of worlds at once") {
			t.Errorf("%v", err)
		}
	})
}

// TestSilentServer: what a client asks of a server that answers nothing, neither binds nor the end of an initial state.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t, nil)
		v := newVictim(r, client.Config{})
		r.mu.Lock()
		r.mute = true
		r.mu.Unlock()
		_, before, _, _, _ := r.counts()
		if _, err := client.Bind[crate](t.Context(), v.conn, "Other", client.BindConfig{}); !errors.Is(err, client.ErrBindTimeout) {
			t.Error(err)
		}
		settle(time.Minute)
		if _, binds, _, _, _ := r.counts(); binds-before > 21 {
			t.Errorf("asked %d times", binds-before)
		}
		o := v.crate
		o.Number, o.Name, o.Initial, o.Hash = 5, "slow", 1000, 9
		r.messages(r.offer(o))
		go func() {
			for range 100 {
				_ = r.link().SendReliable([]byte{byte(control.Piece), o.Number, 1})
				time.Sleep(time.Second)
			}
		}()
		if _, err := client.SubscribeSnapshots(t.Context(), v.conn, "slow", client.SnapshotConfig[crate]{}); err == nil || !strings.Contains(err.Error(), "of 1000 bytes of its initial state") {
			t.Error(err)
		}
		settle(2 * time.Minute)
		if held := client.Held(v.conn, v.snapshots); held["initial bytes"] != 0 || held["worlds"] != 3 {
			t.Errorf("%v", held)
		}
	})
}
