package transport

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

func TestTokens(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*token.Claims)
		want   error
	}{
		"good":    {nil, nil},
		"expired": {func(c *token.Claims) { c.Issued, c.Expires = c.Issued.Add(-time.Hour), c.Issued }, token.ErrExpired},
		"server": {func(c *token.Claims) {
			c.Servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7001")}
		}, token.ErrWrongServer},
		"one of several servers": {func(c *token.Claims) {
			c.Servers = append([]netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7000")}, c.Servers...)
		}, nil},
		"stale": {func(c *token.Claims) { c.Issued = c.Issued.Add(-time.Minute) }, token.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := token.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			d := newTestListener(t, Config{Key: key})
			g := d.visit(t, clientAddr, d.issue(t, 1, c.change))
			if c.want == nil {
				if g.State() != session.Open {
					t.Errorf("refused: %v", g.Err())
				}
				return
			}
			if s := d.Stats(); !errors.Is(g.Err(), c.want) || s.Conns != 0 || s.Dropped.Token != 1 {
				t.Errorf("%v, want %v; %+v", g.Err(), c.want, s)
			}
		})
	}
}

func TestUsedToken(t *testing.T) {
	d := newTestListener(t, Config{})
	tok := d.issue(t, 1, nil)
	first := d.visit(t, clientAddr, tok).open()
	second := d.visit(t, netip.AddrPortFrom(clientAddr.Addr(), 4001), tok)
	if !errors.Is(second.Err(), token.ErrUsed) || d.Stats().Open != 1 || d.conns.get(clientAddr) == nil || first.State() != session.Open {
		t.Errorf("got %v", second.Err())
	}
	_ = d.conns.get(clientAddr).Close()
	d.tick(d.now)
	if third := d.visit(t, clientAddr, tok); !errors.Is(third.Err(), token.ErrUsed) {
		t.Errorf("after the session: %v", third.Err())
	}
	d.now = d.now.Add(time.Minute)
	if fourth := d.visit(t, clientAddr, tok); !errors.Is(fourth.Err(), token.ErrExpired) {
		t.Errorf("after a minute: %v", fourth.Err())
	}
}

// TestTokenIsUsedByAHandshakeThatDoesNotEnd: neither the session that does not begin nor a copy of
// the hello at another server, which the token is good for too, leaves it to its client, which is
// told so.
func TestTokenIsUsedByAHandshakeThatDoesNotEnd(t *testing.T) {
	first, second := newTestListener(t, Config{}), newTestListener(t, Config{})
	tok := first.issue(t, 1, nil)
	g := first.arrive(t, clientAddr, tok)
	g.deliver(firstHello)
	first.receive(first.now, datagram{clientAddr, g.out[secondHello]}) // the welcome is lost
	first.now = first.now.Add(6 * time.Second)
	first.tick(first.now)
	if g.deliver(secondHello); !errors.Is(g.Err(), token.ErrUsed) || first.Stats().Conns != 0 {
		t.Errorf("the same hello: %v", g.Err())
	}
	if again := first.visit(t, clientAddr, tok); !errors.Is(again.Err(), token.ErrUsed) || first.Stats().Conns != 0 {
		t.Errorf("the same server: %v", again.Err())
	}

	copied, err := wire.ParseHello(g.out[secondHello])
	if err != nil {
		t.Fatal(err)
	}
	var retry wire.Retry
	second.pc.sent = func(b []byte) { retry, _ = wire.ParseRetry(b) }
	second.receive(second.now, datagram{place(0), wire.AppendHello(nil, wire.Hello{Version: wire.Version, Nonce: copied.Nonce})})
	copied.Cookie = retry.Cookie
	second.receive(second.now, datagram{place(0), wire.AppendHello(nil, copied)})
	if s := second.Stats(); s.Conns != 1 || s.Open != 0 {
		t.Fatalf("%+v", s)
	}
	if own := second.visit(t, clientAddr, tok); !errors.Is(own.Err(), token.ErrUsed) {
		t.Errorf("the other server: %v", own.Err())
	}
}

// TestForeignTokens shows tokens to a listener that has another token key, another key altogether,
// or the right one when the token was altered on the way.
func TestForeignTokens(t *testing.T) {
	d := newTestListener(t, Config{})
	strange, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	claims := token.Claims{ClientID: 1, Issued: d.now, Expires: d.now.Add(time.Minute), Servers: []netip.AddrPort{d.pc.LocalAddr()}}
	foreign, err := token.Issue(strange.Issuer(), claims)
	if err != nil {
		t.Fatal(err)
	}
	g := d.visit(t, clientAddr, foreign) // nobody but the other key's owner can read that hello
	d.now = d.now.Add(time.Second)
	g.Advance(d.now)
	if !errors.Is(g.Err(), token.ErrWrongKey) || d.Stats().Dropped.Unauthenticated != 1 {
		t.Errorf("another key: %v, %+v", g.Err(), d.Stats().Dropped)
	}

	good := d.issue(t, 1, nil)
	cfg, err := Config{Token: good}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, alter := range map[string]func(*session.Request){
		"altered":           func(t *session.Request) { t.Token[len(t.Token)/2] ^= 1 },
		"another token key": func(t *session.Request) { t.Token = foreign.Sealed() },
		"none":              func(t *session.Request) { t.Token = nil },
		"too much":          func(t *session.Request) { t.Token = make([]byte, session.MaxToken) },
	} {
		ticket, err := cfg.request(d.pc.LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		alter(&ticket)
		g := d.arrive(t, clientAddr, good)
		g.out = nil
		g.Session = session.NewClient(d.now, ticket, session.Config{
			Timeout: defaultTimeout, Buffers: &session.Buffers{},
			Output: func(_ netip.AddrPort, b []byte) { g.out = append(g.out, bytes.Clone(b)) },
		})
		g.deliver(firstHello)
		g.deliver(secondHello)
		if !errors.Is(g.Err(), token.ErrWrongKey) || d.Stats().Conns != 0 {
			t.Errorf("%s: %v", name, g.Err())
		}
	}
}
