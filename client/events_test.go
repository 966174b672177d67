package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// eventLog has the events of one client and its server, in order.
type eventLog struct {
	*match
	backend        *backend
	server, client []string
	player         *ds.Player
	quality        []client.Quality
}

// reasons are all errors that Left and OnEvent may wrap, with their names here.
var reasons = map[error]string{
	transport.ErrQuit: "quit", transport.ErrKicked: "kicked", transport.ErrShutdown: "shutdown", transport.ErrTimeout: "timeout",
	transport.ErrReplaced: "replaced", transport.ErrProtocol: "protocol", transport.ErrLimit: "limit", transport.ErrPanic: "panic",
	transport.ErrUnknown: "unknown", transport.ErrServerFull: "full", transport.ErrServerBusy: "busy", token.ErrUsed: "used",
	token.ErrExpired: "expired", token.ErrStale: "stale", token.ErrWrongKey: "wrong key",
}

// reason returns the names of all reasons that err wraps. Users see no names of inner packages.
func (c *eventLog) reason(err error) string {
	var names []string
	for reason, name := range reasons {
		if errors.Is(err, reason) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 || strings.Contains(err.Error(), "transport:") || strings.Count(err.Error(), "client:") > 1 {
		c.t.Errorf("reasons %v: %v", names, err)
	}
	return strings.Join(names, " and ")
}

func (c *eventLog) serverConfig() ds.Config {
	note := func(format string, args ...any) { c.server = append(c.server, fmt.Sprintf(format, args...)) }
	return ds.Config{
		Key: c.backend.key,
		Joined: func(p *ds.Player) {
			c.player = p
			note("joined")
		},
		Left: func(_ *ds.Player, err error) { note("left: %s", c.reason(err)) },
		Hooks: ds.Hooks{
			Moved: func(p *ds.Player, from netip.AddrPort) {
				if from == p.Addr() {
					c.t.Errorf("moved from %v to the same address", from)
				}
				note("moved")
			},
		},
	}
}

func (c *eventLog) onEvent(e client.Event) {
	if c.conn != nil && c.conn.State() != e.State {
		c.t.Errorf("state %v at the event %+v", c.conn.State(), e)
	}
	text := e.State.String()
	switch e.State {
	case client.Connected:
		if text += " again"; e.New {
			text = fmt.Sprint("connected anew after ", e.Attempt)
		}
	case client.Reconnecting:
		text += fmt.Sprintf(" %d: %s", e.Attempt, c.reason(e.Err))
	case client.Disconnected:
		text += ": " + c.reason(e.Err)
	default:
	}
	c.client = append(c.client, text)
}

// TestEvents checks that both ends learn of each event once, in order, with its reason.
func TestEvents(t *testing.T) {
	const first = "connected anew after 0"
	for _, tt := range []struct {
		name           string
		play           func(*eventLog)
		server, client []string
	}{
		{
			"quit", func(c *eventLog) { uplinktest.Must(c.t, c.conn.Close()) },
			[]string{"joined", "left: quit"},
			[]string{first, "disconnected: quit"},
		},
		{
			"kick", func(c *eventLog) { c.player.Kick("enough") },
			[]string{"joined", "left: kicked"},
			[]string{first, "disconnected: kicked"},
		},
		{"server stops and starts", func(c *eventLog) {
			uplinktest.Must(c.t, c.srv.Close())
			settle(50 * ms)
			c.serve(c.serverConfig())
			settle(time.Second)
		}, []string{"joined", "left: shutdown", "joined"}, []string{first, "reconnecting 1: shutdown", "reconnecting 2: stale", "connected anew after 2"}},
		{"server shuts down", func(c *eventLog) {
			uplinktest.Must(c.t, c.srv.Shutdown(c.t.Context()))
			settle(time.Second)
			c.serve(c.serverConfig())
			settle(20 * time.Second)
		}, []string{"joined", "left: shutdown", "joined"}, []string{first, "reconnecting 1: shutdown", "reconnecting 2: stale", "connected anew after 2"}},
		{"server crashes", func(c *eventLog) {
			c.network.Crash(c.t, uplinktest.Addr)
			settle(500 * ms)
			c.serve(c.serverConfig())
			settle(5 * time.Second)
		}, []string{"joined", "left: shutdown", "joined"}, []string{first, "reconnecting 1: unknown", "connected anew after 1"}},
		{"short loss of the link", func(c *eventLog) {
			c.setLinks(simnet.Config{Loss: 1})
			settle(8 * time.Second)
			c.setLinks(simnet.Config{Delay: 25 * ms})
			settle(5 * time.Second)
		}, []string{"joined", "moved"}, []string{first, "interrupted", "connected again"}},
		{"long loss of the link", func(c *eventLog) {
			c.setLinks(simnet.Config{Loss: 1})
			settle(25 * time.Second)
		}, []string{"joined", "left: timeout"}, []string{first, "interrupted", "reconnecting 1: timeout"}},
		{"change of the address", func(c *eventLog) {
			uplinktest.Must(c.t, c.conn.Rebind())
			settle(10 * time.Second)
		}, []string{"joined", "moved"}, []string{first}},
		{"close while reconnecting", func(c *eventLog) {
			c.network.Crash(c.t, uplinktest.Addr)
			settle(16 * time.Second)
			uplinktest.Must(c.t, c.conn.Close())
		}, []string{"joined", "left: shutdown"}, []string{first, "interrupted", "reconnecting 1: timeout", "disconnected: quit"}},
		{"restart without another token", func(c *eventLog) {
			c.crash()
			settle(time.Second)
			c.serve(c.serverConfig())
			settle(5 * time.Second)
		}, []string{"joined", "left: shutdown"}, []string{first, "reconnecting 1: unknown", "disconnected: stale"}},
		{"the same player elsewhere", func(c *eventLog) {
			cfg := client.Config{Network: c.network}
			var err error
			cfg.Token, err = c.backend.renew(c.t.Context())
			uplinktest.Must(c.t, err)
			other, err := client.Dial(c.t.Context(), uplinktest.Addr, cfg)
			uplinktest.Must(c.t, err)
			settle(time.Second)
			uplinktest.Must(c.t, other.Close())
		}, []string{"joined", "left: replaced", "joined", "left: quit"}, []string{first, "disconnected: replaced"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &eventLog{}
				b, cfg := newBackend(t, !slices.Contains(tt.client, "disconnected: stale"))
				c.backend = b
				cfg.OnEvent, cfg.OnQuality = c.onEvent, func(q client.Quality) { c.quality = append(c.quality, q) }
				c.match = &match{t: t, network: newNetwork(t, 0, 3), journal: uplinktest.NewJournal(t, 1)}
				c.serve(c.serverConfig())
				c.dial(cfg)
				settle(2 * time.Second)
				tt.play(c)
				settle(100 * ms)
				if !slices.Equal(c.server, tt.server) || !slices.Equal(c.client, tt.client) {
					t.Errorf("server %q, want %q; client %q, want %q", c.server, tt.server, c.client, tt.client)
				}
				if q := c.quality; len(q) < 2 || q[1].RTT < 50*ms || q[1].RTT > 70*ms || q[1].Loss != 0 {
					t.Errorf("quality %+v", q)
				}
			})
		})
	}
}

// TestBackendAhead: the token of a backend whose clock is over a minute ahead starts no session.
// The error, and one record of the server a minute, name both clocks. Just before a start, a token
// is older by less than a second.
func TestBackendAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, cfg := newBackend(t, false)
		settle(500 * time.Millisecond)
		var log bytes.Buffer
		m := newMatch(t, 0, 5, ds.Config{Key: b.key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		cfg.Network = m.network
		_, err := client.Dial(t.Context(), uplinktest.Addr, cfg)
		if want := "issued less than 1s before the server started"; !errors.Is(err, token.ErrStale) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		cfg.Token, err = token.Issue(b.key.Issuer(), token.Claims{
			ClientID: 1, Issued: time.Now().Add(10 * time.Minute), Expires: time.Now().Add(11 * time.Minute),
			Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)},
		})
		uplinktest.Must(t, err)
		for range 3 {
			_, err = client.Dial(t.Context(), uplinktest.Addr, cfg)
			want := ": by 9m59s, when at most 1m0s is permitted: it was issued at 2000-01-01T00:09:59Z, when the server's clock showed 2000-01-01T00:00:00Z"
			if !errors.Is(err, token.ErrAhead) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		uplinktest.Must(t, m.srv.Close())
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || m.srv.Stats().Transport.Dropped.Token != 4 {
			t.Errorf("%d records of a wrong clock, want 1: %s", n, &log)
		}
	})
}

// TestRefusals checks that the error of a refused Dial names the limit, and what was asked.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, cfg := newBackend(t, true)
		settle(3 * time.Second)
		m := newMatch(t, 0, 5, ds.Config{Key: b.key, MaxPlayers: 1})
		stale, full := cfg, cfg
		expired, suite, used := full, full, full
		issue := func(id uint64, life time.Duration) (t token.Token) {
			t, err := token.Issue(b.key.Issuer(), token.Claims{
				ClientID: id, Expires: time.Now().Add(life), Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)},
			})
			uplinktest.Must(m.t, err)
			return t
		}
		expired.Token, full.Token, used.Token = issue(1, time.Second), issue(2, time.Minute), issue(3, time.Minute)
		suite.Token, suite.Transport.Suites = issue(4, time.Minute), []transport.Suite{transport.AES128CTRHMAC8}
		used.Network = m.network
		first, err := client.Dial(t.Context(), uplinktest.Addr, used)
		uplinktest.Must(t, err)
		used.Renew = nil
		settle(8 * time.Second)
		for want, c := range map[error]struct {
			cfg  client.Config
			text string
		}{
			token.ErrStale:          {stale, "it was issued 3s before the server started; the clocks of server and backend may differ"},
			token.ErrExpired:        {expired, "it expired 7s ago"},
			token.ErrUsed:           {used, ""},
			transport.ErrServerFull: {full, "it has its maximum of 1 players"},
			transport.ErrNoSuite:    {suite, "the server permits aes128gcm or chacha20-poly1305, the client aes128ctr-hmac8"},
		} {
			c.cfg.Network = m.network
			_, err := client.Dial(t.Context(), uplinktest.Addr, c.cfg)
			if !errors.Is(err, want) || !strings.HasSuffix(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "client: dial 127.0.0.1:7777: ") {
				t.Errorf("%v, want %v, %s", err, want, c.text)
			}
		}
		uplinktest.Must(t, first.Close())
	})
}
