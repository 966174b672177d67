package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// handoverServer is a hostile server that hands its clients over to addresses that it chooses.
type handoverServer struct {
	rogue
	mux atomic.Pointer[streams.Mux] // of the newest session
	got [][]byte                    // reliable messages of clients
}

func (p *handoverServer) Message(_ *endpoint.Conn, b []byte, _ time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, bytes.Clone(b))
}

// received returns the reliable messages of a type.
func (p *handoverServer) received(t message.Type) (all [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.got {
		if b[0] == byte(t) {
			all = append(all, b)
		}
	}
	return all
}

func (p *handoverServer) Opened(c *endpoint.Conn) {
	p.rogue.Opened(c)
	mux := streams.New(bulkOwner{c})
	p.mux.Store(mux)
	c.SetBulk(1<<20, mux.Next, func(b []byte, at time.Time) { _ = mux.Deliver(at, b) })
}

// newHandoverServer starts a handoverServer at an address.
func newHandoverServer(t *testing.T, at string) *handoverServer {
	t.Helper()
	return newHandoverServerIn(t, newNetwork(t, 0, 1), at)
}

func newHandoverServerIn(t *testing.T, network *uplinktest.Network, at string) *handoverServer {
	t.Helper()
	p := &handoverServer{rogue: rogue{t: t, network: network}}
	var err error
	p.listener, err = endpoint.Listen(at, endpoint.Config{Network: p.network, Insecure: true})
	uplinktest.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- p.listener.Serve(context.Background(), p) }()
	t.Cleanup(func() {
		uplinktest.Must(t, p.listener.Close())
		uplinktest.Must(t, <-served)
	})
	return p
}

func issued(t *testing.T, to ...netip.AddrPort) token.Token {
	tok, err := token.Issue(token.Development().Issuer(), token.Claims{ClientID: 7, Expires: time.Now().Add(time.Hour), Servers: to})
	uplinktest.Must(t, err)
	return tok
}

// push hands the client of the newest session over.
func (p *handoverServer) push(to ...netip.AddrPort) {
	_, err := p.mux.Load().SendReserved(time.Now(), message.HandoverStream, nil, func(error) {})
	if err == nil {
		n := message.HandoverNotice{Stream: message.NoStream, Servers: to, Token: issued(p.t, to[0])}
		_ = p.link().SendReliable(message.AppendHandover(nil, &n))
	}
}

// TestHostileHandovers hands a client over to addresses that do not answer, as often as a server
// can. A handover costs it at most 3 hellos to each, and to all of them it sends no more than it
// has received. It ends the session at the fifth handover in a minute, and logs them in one line a
// minute.
func TestHostileHandovers(t *testing.T) {
	const minutes = 5
	for _, every := range []time.Duration{50 * ms, 3 * time.Second, 14 * time.Second, 20 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newHandoverServer(t, uplinktest.Addr)
				var victims []netip.AddrPort
				for i := range token.MaxServers {
					victims = append(victims, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.2:%d", 9000+i)))
				}
				var mu sync.Mutex
				hellos, sent := map[netip.AddrPort]int{}, uint64(0)
				p.network.Watch(func(_, to netip.AddrPort, b []byte) {
					mu.Lock()
					defer mu.Unlock()
					if to.Addr() == victims[0].Addr() {
						hellos[to]++
						sent += uint64(len(b)) + 28
					}
				})
				var events []client.Event
				conn := p.dial(client.Config{OnEvent: func(e client.Event) { events = append(events, e) }})
				pushed := 0
				for start := time.Now(); time.Since(start) < minutes*time.Minute; time.Sleep(every) {
					p.push(victims...)
					pushed++
				}
				settle(10 * time.Second)
				stats := conn.Stats().Transport
				counts := map[client.Handover]int{}
				for _, e := range events {
					counts[e.Handover]++
				}
				logged := 0
				for _, line := range p.lines() {
					if strings.Contains(line, `"msg":"not handed over"`) {
						logged++
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for at, n := range hellos {
					if n > 3*counts[client.HandoverFailed] {
						t.Errorf("%d hellos to %v in %d handovers", n, at, counts[client.HandoverFailed])
					}
				}
				t.Logf("%d pushed, %v, %d sessions, sent %d bytes to others, received %d, %d lines", pushed, counts, p.counts().sessions, sent, stats.BytesReceived, len(p.lines()))
				if sent == 0 || sent > stats.BytesReceived {
					t.Errorf("sent %d bytes to others, received %d", sent, stats.BytesReceived)
				}
				if n := counts[client.HandoverFailed]; n > 4*(minutes+1) || n < 4 || counts[client.HandoverStarted] > n {
					t.Errorf("%v in %d minutes", counts, minutes)
				}
				if excessive := every < 10*time.Second; excessive != (p.counts().sessions > 1) {
					t.Errorf("%d sessions", p.counts().sessions)
				}
				if logged == 0 || logged > minutes+1 {
					t.Errorf("%d lines are logged about handovers: %s", logged, p.lines())
				}
			})
		})
	}
}

// TestHandoverAddresses hands a client over to addresses of all kinds. It sends nothing to those
// that only the player's own machine or network reaches, unless its server is there too or the game
// permits it.
func TestHandoverAddresses(t *testing.T) {
	const public, local, home, link = "203.0.113.9:7777", "127.0.0.1:7777", "192.168.1.2:7777", "169.254.7.7:7777"
	always := map[string]bool{public: true, local: true, home: true, link: true, "permitted": true}
	for to, from := range map[string]map[string]bool{
		"8.8.8.8:1000":              always,
		"100.63.255.255:1":          always,
		"[2001:db8::1]:1":           always,
		"127.0.0.9:1":               {local: true, "permitted": true},
		"[::1]:1":                   {local: true, "permitted": true},
		"10.1.2.3:1":                {home: true, "permitted": true},
		"172.31.0.1:1":              {home: true, "permitted": true},
		"192.168.0.1:53":            {home: true, "permitted": true},
		"100.64.0.1:1":              {home: true, "permitted": true},
		"[fd00::1]:1":               {home: true, "permitted": true},
		"[fec0::1]:1":               {home: true, "permitted": true},
		"169.254.169.254:80":        {link: true, "permitted": true},
		"[fe80::1]:1":               {link: true, "permitted": true},
		"0.1.2.3:1":                 {},
		"224.0.0.251:5353":          {},
		"[ff02::fb]:5353":           {},
		"255.255.255.255:9":         {},
		"240.0.0.1:1":               {},
		"[2001:4860:4860::8888]:53": always,
	} {
		for _, server := range []string{public, local, home, link, "permitted"} {
			synctest.Test(t, func(t *testing.T) {
				at := server
				if server == "permitted" {
					at = public
				}
				p := newHandoverServer(t, at)
				sent := 0
				p.network.Watch(func(_, dest netip.AddrPort, _ []byte) {
					if dest.String() == to {
						sent++
					}
				})
				var err error
				conn, dialErr := client.Dial(t.Context(), at, client.Config{
					Network: p.network, Transport: client.Transport{Insecure: true, LocalHandovers: server == "permitted"}, Token: issued(t, netip.MustParseAddrPort(at)),
					Logger: slog.New(slog.DiscardHandler), OnEvent: func(e client.Event) {
						if e.Handover == client.HandoverFailed {
							err = e.Err
						}
					},
				})
				uplinktest.Must(t, dialErr)
				defer conn.Close()
				settle(time.Second)
				p.push(netip.MustParseAddrPort(to))
				settle(10 * time.Second)
				if from[server] != (sent > 0) || !from[server] && (!errors.Is(err, transport.ErrHandover) || !strings.Contains(err.Error(), to)) {
					t.Errorf("from a server at %s to %s: %d datagrams, %v", server, to, sent, err)
				}
				uplinktest.Must(t, conn.Err())
			})
		}
	}
}

// TestHandoverRelease hands a client over between two rogue servers. The client tells the first one
// that it has switched, passes the release to the second one, and reconnects if it gets none. It
// refuses one that it has not asked for.
func TestHandoverRelease(t *testing.T) {
	secret := message.NewSecret()
	release := message.AppendRelease(nil, secret)
	for name, c := range map[string]struct {
		run   func(first, second *handoverServer, conn *client.Conn)
		lost  bool // the client connects again
		where string
	}{
		"released": {func(first, second *handoverServer, conn *client.Conn) {
			first.messages(release)
			settle(time.Second)
			if got := second.received(message.Handover); len(got) != 1 || !bytes.Equal(got[0], release) {
				t.Errorf("passed on: %x", got)
			}
			settle(20 * time.Second)
		}, false, "127.0.0.1:7999"},
		"released twice": {func(first, second *handoverServer, conn *client.Conn) {
			first.messages(release, release)
			settle(20 * time.Second)
			if got := second.received(message.Handover); len(got) != 1 {
				t.Errorf("passed on: %x", got)
			}
		}, false, "127.0.0.1:7999"},
		"not released": {func(_, _ *handoverServer, conn *client.Conn) { settle(7 * time.Second) }, true, "127.0.0.1:7999"},
		"the first server ends it": {func(first, _ *handoverServer, conn *client.Conn) {
			first.link().CloseWith(transport.ErrShutdown, "")
			settle(2 * time.Second)
		}, true, "127.0.0.1:7999"},
		"released without the switch": {func(_, second *handoverServer, conn *client.Conn) { second.messages(release); settle(2 * time.Second) }, true, "127.0.0.1:7999"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := newHandoverServer(t, uplinktest.Addr)
				second := newHandoverServerIn(t, first.network, "127.0.0.1:7999")
				conn := first.dial(client.Config{})
				first.push(netip.MustParseAddrPort("127.0.0.1:7999"))
				settle(time.Second)
				if got := first.received(message.Handover); len(got) != 1 || len(got[0]) != 1 || conn.Server() != "127.0.0.1:7999" {
					t.Fatalf("the first server has received %x; at %s", got, conn.Server())
				}
				c.run(first, second, conn)
				sessions := second.counts().sessions
				if again := sessions > 1; again != c.lost || conn.Server() != c.where || conn.State() != client.Connected {
					t.Errorf("%d sessions at the second server, %v at %s", sessions, conn.State(), conn.Server())
				}
			})
		})
	}
}

// TestStandbyServer lets a server to which a client may switch, and one that it has left, send what
// only the current server may: the client acts on none of it, and holds at most 512 KiB of
// messages, which it delivers after the switch.
func TestStandbyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newHandoverServer(t, uplinktest.Addr)
		second := newHandoverServerIn(t, first.network, "127.0.0.1:7999")
		second.silence() // so that the client does not switch
		var got []string
		var events []client.Event
		conn := first.dial(client.Config{
			OnMessage: func(b []byte) { got = append(got, string(b)) },
			Hooks:     client.Hooks{OnUnreliable: func(b []byte) { got = append(got, string(b)) }},
			OnEvent:   func(e client.Event) { events = append(events, e) },
		})
		uplinktest.Must(t, bind[crate](t, conn, "Move", client.BindConfig{}))
		first.push(netip.MustParseAddrPort("127.0.0.1:7999"))
		settle(time.Second)
		asked := make(chan error, 1)
		go func() {
			b, err := conn.Request(t.Context(), []byte("balance"))
			if err == nil && string(b) != "100" {
				err = fmt.Errorf("the answer is %q", b)
			}
			asked <- err
		}()
		settle(time.Second)
		requests := first.received(message.Request)
		if len(requests) != 1 || second.link() == nil {
			t.Fatalf("requests %x, standby %v", requests, second.link())
		}
		_, id, _, err := message.ParseRequest(requests[0][1:])
		uplinktest.Must(t, err)
		second.datagrams([]byte{byte(message.Leaving)}, message.AppendMessage(nil, []byte("forged")))
		second.messages(message.AppendRequest(nil, message.Answer, id, []byte("1000000")), message.AppendMessage(nil, []byte("later")))
		settle(time.Second)
		if len(got) > 0 || len(asked) > 0 || conn.State() != client.Connected || conn.Server() != uplinktest.Addr {
			t.Errorf("%q, %d answers, %v at %s", got, len(asked), conn.State(), conn.Server())
		}
		first.messages(message.AppendRequest(nil, message.Answer, id, []byte("100")))
		uplinktest.Must(t, <-asked)
		malformed := conn.Stats().Malformed
		for range 80 {
			if second.link().SendReliable(message.AppendMessage(nil, make([]byte, client.MaxMessage))) != nil {
				settle(100 * ms)
			}
		}
		settle(2 * time.Second)
		if e := events[len(events)-1]; e.Handover != client.HandoverFailed || !errors.Is(e.Err, transport.ErrProtocol) || conn.Stats().Malformed != malformed+1 {
			t.Errorf("%+v, %d malformed", e, conn.Stats().Malformed-malformed)
		}
		first.push(netip.MustParseAddrPort("127.0.0.1:7999"))
		settle(time.Second)
		second.messages(message.AppendMessage(nil, []byte("early")))
		settle(time.Second)
		if len(got) > 0 || conn.Server() != uplinktest.Addr {
			t.Errorf("%q at %s", got, conn.Server())
		}
		second.mu.Lock()
		second.mute = false
		second.mu.Unlock()
		settle(2 * time.Second)
		second.messages(message.AppendMessage(nil, []byte("late")))
		settle(time.Second)
		if !slices.Equal(got, []string{"early", "late"}) {
			t.Errorf("after the switch: %q", got)
		}
		got = nil
		first.datagrams(message.AppendMessage(nil, []byte("still")), []byte{byte(message.Down) | 1, 0}, []byte{byte(message.Acks), 0, 0})
		if conn.Server() != "127.0.0.1:7999" || !slices.Equal(got, []string{"still"}) || conn.State() != client.Connected {
			t.Errorf("%q, %v at %s", got, conn.State(), conn.Server())
		}
	})
}
