package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// pusher is a hostile server that hands its clients over to addresses that it chooses.
type pusher struct {
	rogue
	mux *streams.Mux // of the newest session
}

func (p *pusher) Opened(c *transport.Conn) {
	p.rogue.Opened(c)
	p.mux = streams.New(bulkOwner{c})
	c.SetBulk(1<<20, p.mux.Next, func(b []byte, at time.Time) { _ = p.mux.Deliver(at, b) })
}

// newPusher starts a pusher at an address.
func newPusher(t *testing.T, at string) *pusher {
	t.Helper()
	p := &pusher{rogue: rogue{t: t, network: newNetwork(t, 0, 1)}}
	var err error
	p.listener, err = transport.Listen(at, transport.Config{Network: p.network, Insecure: true})
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
func (p *pusher) push(to ...netip.AddrPort) {
	_, err := p.mux.SendReserved(time.Now(), control.HandoverStream, nil, func(error) {})
	if err == nil {
		n := control.HandoverNotice{Stream: control.NoStream, Servers: to, Token: issued(p.t, to[0])}
		_ = p.link().SendReliable(control.AppendHandover(nil, &n))
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
				p := newPusher(t, uplinktest.Addr)
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
				var events []session.Event
				conn := p.dial(client.Config{OnEvent: func(e session.Event) { events = append(events, e) }})
				pushed := 0
				for start := time.Now(); time.Since(start) < minutes*time.Minute; time.Sleep(every) {
					p.push(victims...)
					pushed++
				}
				settle(10 * time.Second)
				stats := conn.Stats().Transport
				counts := map[session.Handover]int{}
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
					if n > 3*counts[session.HandoverFailed] {
						t.Errorf("%d hellos to %v in %d handovers", n, at, counts[session.HandoverFailed])
					}
				}
				t.Logf("%d pushed, %v, %d sessions, sent %d bytes to others, received %d, %d lines", pushed, counts, p.counts().sessions, sent, stats.BytesReceived, len(p.lines()))
				if sent == 0 || sent > stats.BytesReceived {
					t.Errorf("sent %d bytes to others, received %d", sent, stats.BytesReceived)
				}
				if n := counts[session.HandoverFailed]; n > 4*(minutes+1) || n < 4 || counts[session.HandoverStarted] > n {
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
				p := newPusher(t, at)
				sent := 0
				p.network.Watch(func(_, dest netip.AddrPort, _ []byte) {
					if dest.String() == to {
						sent++
					}
				})
				var err error
				conn, dialErr := client.Dial(t.Context(), at, client.Config{
					Network: p.network, Insecure: true, Token: issued(t, netip.MustParseAddrPort(at)), LocalHandovers: server == "permitted",
					Logger: slog.New(slog.DiscardHandler), OnEvent: func(e session.Event) {
						if e.Handover == session.HandoverFailed {
							err = e.Err
						}
					},
				})
				uplinktest.Must(t, dialErr)
				defer conn.Close()
				settle(time.Second)
				p.push(netip.MustParseAddrPort(to))
				settle(10 * time.Second)
				if from[server] != (sent > 0) || !from[server] && (!errors.Is(err, session.ErrHandover) || !strings.Contains(err.Error(), to)) {
					t.Errorf("from a server at %s to %s: %d datagrams, %v", server, to, sent, err)
				}
				uplinktest.Must(t, conn.Err())
			})
		}
	}
}
