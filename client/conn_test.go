package client_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestServerRestarts crashes or closes and restarts the server several times while a client calls
// it over a bad link.
func TestServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0.2, 1, client.Config{})
		m.call(5 * time.Second)
		for restarts := 1; restarts <= 5; restarts++ {
			if restarts == 4 {
				uplinktest.Must(t, m.srv.Close())
				settle(50 * ms) // the close message arrives
				if err := m.try(); !errors.Is(err, client.ErrReconnecting) {
					t.Errorf("got %v, want ErrReconnecting", err)
				}
				m.reconnecting++
			} else {
				m.crash()
			}
			m.call(time.Duration(restarts) * 300 * ms)
			m.serve(ds.Config{})
			before := m.reconnecting
			m.call(10 * time.Second)
			if m.reconnecting == before || m.next < 300 {
				t.Errorf("restart %d: %d calls while reconnecting, %d since", restarts, m.reconnecting-before, m.next)
			}
			settle(time.Second)
			logs := m.journal.Logs()
			if len(logs) != restarts+1 {
				t.Fatalf("restart %d: %d players", restarts, len(logs))
			}
			if l := logs[restarts]; l.Frames() < m.next*6/10 || l.Next > m.next || l.Next < m.next-20 || l.Seen()[0] > 20 {
				t.Errorf("restart %d: %d frames from %d to %d, %d were sent", restarts, l.Frames(), l.Seen()[0], l.Next, m.next)
			}
		}
		st := m.move.Stats()
		if st.Reconnecting != uint64(m.reconnecting) {
			t.Errorf("%d calls counted while reconnecting, want %d", st.Reconnecting, m.reconnecting)
		}
		if f := st.Delivery; f.Delivered < st.Frames()*6/10 || f.Missed > st.Frames()/100 || f.Delivered+f.Missed > st.Frames() || f.Lost < 300 {
			t.Errorf("%+v of %d frames over all sessions", f, st.Frames())
		}
		if st.Delta < st.Frames()*8/10 {
			t.Errorf("%d of %d frames are deltas", st.Delta, st.Frames())
		}
		if st := m.conn.Stats(); st.Malformed != 0 || st.Transport.DatagramsSent < 3000 {
			t.Errorf("the connection counts %+v", st)
		}
	})
}

// TestCloseWhileReconnecting closes a connection at several times after the server crashed.
func TestCloseWhileReconnecting(t *testing.T) {
	for _, wait := range []time.Duration{0, 500 * ms, 1200 * ms, 3 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := dialMatch(t, 0, 8, client.Config{})
			m.call(time.Second)
			m.crash()
			m.call(wait)
			start := time.Now()
			done := make(chan error)
			go func() { done <- m.conn.Close() }()
			uplinktest.Must(t, errors.Join(m.conn.Close(), <-done))
			if elapsed := time.Since(start); elapsed > 100*ms {
				t.Errorf("Close took %v", elapsed)
			}
			m.isClosed()
			if m.conn.RTT() != 0 {
				t.Errorf("RTT %v after Close", m.conn.RTT())
			}
		})
	}
}

// isClosed checks the errors after Close.
func (m *match) isClosed() {
	m.t.Helper()
	for what, err := range map[string]error{
		"Send": m.try(), "Bind": bind[uplinktest.Move](m.t, m.conn, "Move", client.BindConfig{}), "Rebind": m.conn.Rebind(),
		"Flush": m.conn.Flush(), "Stream.Flush": m.move.Flush(), "SendReliable": m.conn.SendReliable(nil),
	} {
		if !errors.Is(err, net.ErrClosed) {
			m.t.Errorf("%s after Close: %v", what, err)
		}
	}
}

// TestClose checks that Close informs the server at once.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left []error
		leave := func(_ *ds.Player, err error) { left = append(left, err) }
		m := newMatch(t, 0, 9, ds.Config{Left: leave}).dial(client.Config{})
		m.call(time.Second)
		if rtt := m.conn.RTT(); rtt < 50*ms || rtt > 70*ms {
			t.Errorf("RTT %v, want 50 ms and a tick", rtt)
		}
		uplinktest.Must(t, errors.Join(m.conn.Close(), m.conn.Close()))
		settle(100 * ms)
		if len(left) != 1 || !errors.Is(left[0], transport.ErrQuit) {
			t.Errorf("left: %v", left)
		}
		before := m.move.Stats()
		m.isClosed()
		if after := m.move.Stats(); after != before || before.Frames() != m.next {
			t.Errorf("a call after Close was counted: %+v", after)
		}
		if st := m.conn.Stats(); st.Transport.DatagramsSent < 60 || len(st.RPCs) != 1 {
			t.Errorf("after Close %+v", st)
		}
	})
}

// TestEnd ends a connection for good, with the cause, when it is lost or the player is kicked.
func TestEnd(t *testing.T) {
	kick := func(_ *match, p *ds.Player) {
		p.Kick("enough")
		p.Kick("more than enough")
	}
	for _, c := range []struct {
		want        error
		noReconnect bool
		end         func(*match, *ds.Player)
	}{
		{transport.ErrTimeout, true, func(m *match, _ *ds.Player) { m.network.Crash(m.t, uplinktest.Addr) }},
		{transport.ErrShutdown, true, func(m *match, _ *ds.Player) { uplinktest.Must(m.t, m.srv.Close()) }},
		{transport.ErrKicked, true, kick},
		{transport.ErrKicked, false, kick},
	} {
		synctest.Test(t, func(t *testing.T) {
			var player *ds.Player
			joined := 0
			m := newMatch(t, 0, 9, ds.Config{Joined: func(p *ds.Player) {
				player = p
				joined++
			}}).dial(client.Config{NoReconnect: c.noReconnect})
			m.send()
			uplinktest.Must(t, m.conn.Err())
			c.end(m, player)
			settle(15 * time.Second)
			kicked := errors.Is(c.want, transport.ErrKicked)
			for what, err := range map[string]error{
				"Err": m.conn.Err(), "Send": m.try(), "Flush": m.conn.Flush(), "SendReliable": m.conn.SendReliable(nil),
				"Bind": bind[uplinktest.Move](t, m.conn, "Move", client.BindConfig{}),
			} {
				lost, reason := errors.Is(err, client.ErrLost), strings.Contains(err.Error(), `"enough"`)
				if !errors.Is(err, c.want) || lost == kicked || reason != kicked {
					t.Errorf("%v: %s: %v", c.want, what, err)
				}
			}
			if joined != 1 {
				t.Errorf("%v: joined %d times", c.want, joined)
			}
			uplinktest.Must(t, m.conn.Close())
			if err := m.try(); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
	}
}

// TestRebind continues a session from other sockets while the client sends.
func TestRebind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0, 1, client.Config{})
		for m.next < 300 {
			m.send()
			if m.next%100 == 50 {
				uplinktest.Must(t, m.conn.Rebind())
			}
			time.Sleep(time.Second / 60)
		}
		settle(time.Second)
		l := m.journal.Only()
		if moves := l.Player.Stats().Transport.PathMigrations; moves != 3 || l.Next != 300 || l.Missed > 3*60 {
			t.Errorf("%d moves; %+v", moves, l)
		}
	})
}

// backend issues tokens for one player.
type backend struct {
	key    token.Key
	issued int
	fails  int // next attempts that fail
}

// newBackend returns a backend, and a configuration with its first token.
func newBackend(t *testing.T, renews bool) (*backend, client.Config) {
	t.Helper()
	key, err := token.NewKey()
	uplinktest.Must(t, err)
	b := &backend{key: key}
	var cfg client.Config
	cfg.Token, err = b.renew(t.Context())
	uplinktest.Must(t, err)
	if renews {
		cfg.Renew = b.renew
	}
	return b, cfg
}

func (b *backend) renew(context.Context) (token.Token, error) {
	if b.fails > 0 {
		b.fails--
		return token.Token{}, errors.New("the backend is down")
	}
	b.issued++
	return token.Issue(b.key.Issuer(), token.Claims{
		ClientID: 42, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)},
	})
}

// TestLostWelcome loses the server's answers until it gives up the handshake: Token is used up.
func TestLostWelcome(t *testing.T) {
	for _, renews := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, cfg := newBackend(t, renews)
			m := newMatch(t, 0, 9, ds.Config{Key: b.key})
			cfg.Network = m.network
			for at, down := range map[time.Duration]simnet.Config{60 * ms: newLink(1), 6 * time.Second: newLink(0)} {
				time.AfterFunc(at, func() { uplinktest.Must(t, m.network.Set(newLink(0), down)) })
			}
			start := time.Now()
			conn, err := client.Dial(t.Context(), uplinktest.Addr, cfg)
			if elapsed := time.Since(start); elapsed < 6*time.Second || elapsed > 7*time.Second {
				t.Errorf("Dial returned after %v", elapsed)
			}
			if renews {
				uplinktest.Must(t, err)
				uplinktest.Must(t, conn.Close())
			} else if !errors.Is(err, token.ErrUsed) {
				t.Errorf("Dial: %v", err)
			}
			if renewed := b.issued == 2; renewed != renews {
				t.Errorf("%d tokens", b.issued)
			}
		})
	}
}

// TestRenew restarts the server of a client that needs a token for each session. A client that can
// get another one reconnects, another one ends with the cause.
func TestRenew(t *testing.T) {
	for _, renews := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, cfg := newBackend(t, renews)
			b.fails = 2
			m := newMatch(t, 0, 8, ds.Config{Key: b.key}).dial(cfg)
			m.crash()
			settle(time.Second)
			m.serve(ds.Config{Key: b.key})
			settle(30 * time.Second)
			err := m.try()
			if renews && (err != nil || b.issued < 2) {
				t.Errorf("%v after %d tokens", err, b.issued)
			}
			if !renews && (!errors.Is(err, client.ErrLost) || !errors.Is(err, token.ErrStale) && !errors.Is(err, token.ErrUsed)) {
				t.Errorf("Send: %v", err)
			}
		})
	}
}

// TestInvalidConfig checks that errors name the invalid field.
func TestInvalidConfig(t *testing.T) {
	for want, cfg := range map[string]client.Config{
		"Config.Tuning.Ring":              {Tuning: client.Tuning{Ring: 1}},
		"Config.Tuning.Ring is 257":       {Tuning: client.Tuning{Ring: rpcdelta.MaxRing + 1}},
		"Config.Tuning.Ring is -1":        {Tuning: client.Tuning{Ring: -1}},
		"Config.Tuning.Codec":             {Tuning: client.Tuning{Codec: 77}},
		"Config.Transport.BindTimeout":    {Transport: client.Transport{BindTimeout: -1}},
		"Timeout is 1ms":                  {Transport: client.Transport{Timeout: time.Millisecond}},
		"Tick is 1µs":                     {Tick: time.Microsecond},
		"Config.Tick is -2":               {Tick: -2},
		"Config.Bandwidth":                {Bandwidth: -1},
		"0 with FlushOnly":                {Tick: time.Second, Tuning: client.Tuning{FlushOnly: true}},
		"Config: Redundancy of 16 frames": {Tuning: client.Tuning{Redundancy: 16}},
		"Config: Delivery of 1.5":         {Tuning: client.Tuning{Delivery: 1.5}},
		"Config: RedundancyBytes of -1":   {Tuning: client.Tuning{RedundancyBytes: -1}},
	} {
		if _, err := client.Dial(t.Context(), uplinktest.Addr, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestNoToken checks that Dial requires a token for other machines and for servers with a key.
func TestNoToken(t *testing.T) {
	_, err := client.Dial(t.Context(), "192.0.2.1:7777", client.Config{})
	if !errors.Is(err, token.ErrNoToken) || !strings.Contains(err.Error(), "192.0.2.1:7777") || !strings.Contains(err.Error(), "Config.Token") {
		t.Errorf("got %v", err)
	}
	if text := err.Error(); strings.Count(text, "192.0.2.1:7777") != 1 {
		t.Errorf("the address is repeated: %s", text)
	}
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBackend(t, false)
		m := newMatch(t, 0, 9, ds.Config{Key: b.key})
		_, err := client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: m.network})
		if !errors.Is(err, token.ErrNoToken) || !strings.Contains(err.Error(), "set Config.Token: the server has a key") {
			t.Errorf("a server with a key: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = client.Dial(ctx, uplinktest.Addr, client.Config{Network: m.network})
		if !errors.Is(err, token.ErrNoToken) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "its refusal is not authenticated") {
			t.Errorf("a server with a key, for 300 ms: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// There is no server, but that is another error.
		_, err := client.Dial(ctx, "192.0.2.1:7777", client.Config{Transport: client.Transport{Insecure: true}, Network: network})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "192.0.2.1:7777") {
			t.Errorf("got %v", err)
		}
	})
}

// TestDial fails in several ways, then succeeds with a context that is canceled afterwards.
func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 2)
		cfg := client.Config{Network: network, Transport: client.Transport{Timeout: 2 * time.Second}}
		if _, err := client.Dial(t.Context(), "nowhere", cfg); err == nil {
			t.Error("an address without a port was dialed")
		}
		start := time.Now()
		if _, err := client.Dial(t.Context(), uplinktest.Addr, cfg); !errors.Is(err, transport.ErrTimeout) || time.Since(start) > 3*time.Second {
			t.Errorf("no server: %v after %v", err, time.Since(start))
		}
		uplinktest.Serve(t, network, ds.Config{MaxPlayers: 1}, func(*ds.Server) error { return nil })
		first := uplinktest.Dial(t, network, client.Config{})
		settle(time.Second)
		if _, err := client.Dial(t.Context(), uplinktest.Addr, cfg); !errors.Is(err, transport.ErrServerFull) {
			t.Errorf("the server is full: %v", err)
		}
		uplinktest.Must(t, first.Close())
		settle(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		second, err := client.Dial(ctx, uplinktest.Addr, cfg)
		uplinktest.Must(t, err)
		cancel()
		settle(10 * time.Second)
		if st := second.Stats(); second.RTT() == 0 || st.Transport.DatagramsReceived < 10 {
			t.Errorf("the connection ended: %+v", st)
		}
		uplinktest.Must(t, second.Close())
	})
}
