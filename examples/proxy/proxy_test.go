package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rogue"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/relay"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	publicAddr   = "127.0.0.1:7777"
	internalAddr = "127.0.0.2:7000"
)

// sessions is the number of sessions of a test.
var sessions = 1000

var relayKey = [32]byte{1, 2, 3}

// place is a network with a proxy and four servers.
type place struct {
	t       *testing.T
	network *simnet.Network
	key     token.Key
	servers []server
	proxy   *proxy
	ended   chan error
	games   []*game
	tap     *tap // of the proxy's internal socket
}

// tap is a packet connection whose datagrams an observer records.
type tap struct {
	transport.PacketConn
	mu       sync.Mutex
	sent     []packet // to servers
	received []packet
}

type packet struct {
	b    []byte
	peer netip.AddrPort
}

func (o *tap) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	o.mu.Lock()
	o.sent = append(o.sent, packet{bytes.Clone(b), to})
	o.mu.Unlock()
	return o.PacketConn.WriteTo(b, to)
}

func (o *tap) ReadFrom(b []byte) (int, netip.AddrPort, error) {
	n, from, err := o.PacketConn.ReadFrom(b)
	if err == nil {
		o.mu.Lock()
		o.received = append(o.received, packet{bytes.Clone(b[:n]), from})
		o.mu.Unlock()
	}
	return n, from, err
}

// copies returns what was recorded so far.
func (o *tap) copies() (sent, received []packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent, o.received
}

// game is a server's handler: it echoes payloads.
type game struct {
	ignore.Handler
	listener *endpoint.Listener
	mu       sync.Mutex
	open     map[uint64]*endpoint.Conn // by client id
	ends     int
}

func (g *game) Opened(c *endpoint.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[c.ClientID()] = c
}

func (g *game) conn(id uint64) *endpoint.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open[id]
}

func (g *game) Closed(*endpoint.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends++
}
func (g *game) Datagram(c *endpoint.Conn, b []byte, _ time.Time) { _ = c.Send(b) }

// player is a client's handler: it counts echoes.
type player struct {
	ignore.Handler
	id   uint64
	conn *endpoint.Conn
	mu   sync.Mutex
	got  int
	err  error
}

func (p *player) count() (echoes int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got, p.err
}

func (p *player) Closed(_ *endpoint.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *player) Datagram(*endpoint.Conn, []byte, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got++
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newPlace(t *testing.T) *place {
	link := simnet.Config{Delay: 10 * time.Millisecond}
	network, err := simnet.NewNetwork(link, link)
	must(t, err)
	key, err := token.NewKey()
	must(t, err)
	p := &place{t: t, network: network, key: key}
	for i := range 4 {
		p.servers = append(p.servers, server{
			addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}), 7777), id: uint16(i) + 1, route: fmt.Sprint("match-", i),
		})
		p.games = append(p.games, p.startGame(i))
	}
	p.startProxy()
	t.Cleanup(func() {
		p.stopProxy()
		for _, g := range p.games {
			must(t, g.listener.Close())
		}
	})
	return p
}

func (p *place) startGame(i int) *game {
	s := p.servers[i]
	l, err := endpoint.Listen(s.addr.String(), endpoint.Config{
		Network: relay.Network(p.network, relayKey, nil), Key: p.key, Addrs: []netip.AddrPort{netip.MustParseAddrPort(publicAddr)},
		Route: []byte(s.route), ServerID: s.id, Handshakes: sessions, HandshakesPerNetwork: 1, Tick: 50 * time.Millisecond,
	})
	must(p.t, err)
	g := &game{listener: l, open: map[uint64]*endpoint.Conn{}}
	go func() { _ = l.Serve(context.Background(), g) }()
	return g
}

func (p *place) startProxy() {
	public, err := p.network.ListenPacket(publicAddr)
	must(p.t, err)
	internal, err := p.network.ListenPacket(internalAddr)
	must(p.t, err)
	p.tap = &tap{PacketConn: internal}
	proxy, ended := newProxy(public, p.tap, relayKey, p.servers), make(chan error, 1)
	p.proxy, p.ended = proxy, ended
	go func() { ended <- proxy.run() }()
}

func (p *place) stopProxy() {
	p.proxy.close()
	<-p.ended
}

// from is a network whose sockets have addresses of an IP.
type from struct {
	*simnet.Network
	ip string
}

func (f from) ListenPacket(string) (transport.PacketConn, error) {
	return f.Network.ListenPacket(f.ip + ":0")
}

// connect connects a client with a token of a route.
func (p *place) connect(id uint64, route string) (*player, error) {
	return p.connectFrom(p.network, id, route)
}

func (p *place) connectFrom(network transport.Network, id uint64, route string) (*player, error) {
	t, err := token.Issue(p.key.Issuer(), token.Claims{
		ClientID: id, Route: []byte(route), Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(publicAddr)},
	})
	must(p.t, err)
	player := &player{id: id}
	player.conn, err = endpoint.Dial(p.t.Context(), publicAddr, endpoint.Config{Network: network, Token: t, Timeout: 5 * time.Second, Tick: endpoint.OnWake}, player)
	return player, err
}

// play sends a payload of each player every 200 ms, and checks that their own servers echo the last
// five.
func (p *place) play(what string, players []*player, rounds int) {
	p.t.Helper()
	before := map[*player]int{}
	for round := range rounds {
		for _, player := range players {
			if round == rounds-5 {
				before[player], _ = player.count()
			}
			_ = player.conn.Send([]byte("echo"))
		}
		time.Sleep(200 * time.Millisecond)
	}
	p.t.Logf("%s: %+v", what, p.proxy.snapshot())
	failed := 0
	for _, player := range players {
		got, err := player.count()
		if got-before[player] < 5 || p.games[player.id%4].conn(player.id) == nil || err != nil {
			failed++
		}
	}
	if failed > 0 {
		p.t.Errorf("%s: %d of %d sessions do not continue; %+v", what, failed, len(players), p.proxy.snapshot())
	}
}

// TestProxy routes 1,000 sessions to 4 servers, while all clients change their addresses, the proxy
// restarts with an empty memory, both at once, and a server restarts.
func TestProxy(t *testing.T) {
	if testing.Short() {
		sessions = 200
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		time.Sleep(time.Second)
		var players []*player
		for id := range uint64(sessions) {
			player, err := p.connect(id, p.servers[id%4].route)
			must(t, err)
			players = append(players, player)
		}
		defer func() {
			for _, player := range players {
				_ = player.conn.Close()
			}
		}()
		p.play("at first", players, 6)
		if s := p.proxy.snapshot(); s.Dropped != 0 {
			t.Errorf("%+v", s)
		}
		addrs := map[*player]netip.AddrPort{}
		move := func() {
			for _, player := range players {
				to, err := p.network.Rebind(player.conn.LocalAddr())
				must(t, err)
				addrs[player] = to
			}
		}
		moved := func() {
			t.Helper()
			for _, player := range players {
				if at := p.games[player.id%4].conn(player.id).RemoteAddr(); at != addrs[player] {
					t.Fatalf("client %d is at %v, its server knows %v", player.id, addrs[player], at)
				}
			}
		}
		move()
		p.play("after new addresses of all clients", players, 30)
		moved()
		restart := func(meanwhile func()) {
			p.play("before a restart", players, 65) // then clients send no connection ids any more
			p.stopProxy()
			meanwhile()
			p.startProxy()
		}
		restart(func() {})
		p.play("after a restart of the proxy", players, 30)
		if s := p.proxy.snapshot(); s.Hints < sessions/2 {
			t.Errorf("the restarted proxy knew the addresses: %+v", s)
		}
		restart(move)
		p.play("after both", players, 30)
		moved()

		// A server restarts: its sessions end, and new ones begin there.
		must(t, p.games[1].listener.Close())
		p.games[1] = p.startGame(1)
		time.Sleep(6 * time.Second)
		for i, old := range players {
			if old.id%4 != 1 {
				continue
			}
			if _, err := old.count(); err == nil {
				t.Errorf("client %d: the session continues at the restarted server", old.id)
			}
			player, err := p.connect(old.id, p.servers[1].route)
			must(t, err)
			players[i] = player
		}
		p.play("after a restart of a server", players, 6)
		for i, g := range p.games {
			if s := g.listener.Stats(); s.Open != sessions/4 || i != 1 && g.ends != 0 {
				t.Errorf("server %d: %d sessions, %d ended", i, s.Open, g.ends)
			}
		}
		t.Logf("%+v", p.proxy.snapshot())
	})
}

// TestStrangers verifies what the proxy drops, that it remembers no source of such datagrams, and
// that servers accept only envelopes with the key, and only tokens of their own route.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		time.Sleep(time.Second)
		if _, err := p.connect(1, "match-9"); err == nil {
			t.Error("a route that no server has")
		}
		stranger, err := p.network.ListenPacket("127.0.0.1:0")
		must(t, err)
		defer stranger.Close()
		before := p.proxy.snapshot()
		datagrams := [][]byte{nil, {0x80}, make([]byte, 100), {0xc0, 1, 2, 3}, append([]byte{0x40}, make([]byte, 40)...)}
		for _, b := range datagrams {
			_, err := stranger.WriteTo(b, netip.MustParseAddrPort(publicAddr))
			must(t, err)
		}
		to := netip.MustParseAddrPort(internalAddr)
		forged := relay.Envelope{Proxy: stranger.LocalAddr(), Client: stranger.LocalAddr(), Datagram: make([]byte, 64)}
		_, err = stranger.WriteTo(relay.NewLink([32]byte{9}).Append(nil, relay.ToServer, forged), p.servers[0].addr)
		must(t, err)
		forged = relay.Envelope{Proxy: to, Client: stranger.LocalAddr(), Datagram: []byte{0xc0, 1}}
		_, err = stranger.WriteTo(relay.NewLink(relayKey).Append(nil, relay.ToClient, forged), to)
		must(t, err)
		time.Sleep(time.Second)
		s := p.proxy.snapshot()
		if s.Dropped-before.Dropped != len(datagrams)+1 || s.Up != before.Up || s.Flows != 0 {
			t.Errorf("%+v, before %+v", s, before)
		}
		if s := p.games[0].listener.Stats(); s.DatagramsReceived != 1 || s.Dropped.Malformed != 1 || s.DatagramsSent != 0 {
			t.Errorf("the server received %d datagrams, and sent %d; %+v", s.DatagramsReceived, s.DatagramsSent, s.Dropped)
		}
		// A server of another route that gets the hello.
		p.stopProxy()
		p.servers[0].route, p.servers[1].route = p.servers[1].route, p.servers[0].route
		p.startProxy()
		if _, err := p.connect(2, "match-0"); !errors.Is(err, token.ErrWrongServer) {
			t.Errorf("a token of another server's route: %v", err)
		}
	})
}

// TestLimitPerNetwork verifies that servers limit the handshakes of a client's network, not of the
// proxy's: here to one per second, and two at once. Loopback addresses have no limit.
func TestLimitPerNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		time.Sleep(time.Second)
		for i, c := range []struct {
			ip      string
			limited bool
		}{
			{"203.0.113.7", false}, {"203.0.113.8", false}, {"203.0.113.9", true}, {"198.51.100.7", false}, {"203.0.113.7", true}, {"127.0.0.1", false},
		} {
			start := time.Now()
			player, err := p.connectFrom(from{p.network, c.ip}, uint64(i), "match-0")
			must(t, err)
			defer player.conn.Close()
			if took := time.Since(start); took > 200*time.Millisecond != c.limited {
				t.Errorf("connecting from %s took %v", c.ip, took)
			}
			time.Sleep(100 * time.Millisecond)
			if at := p.games[0].conn(uint64(i)).RemoteAddr().Addr().String(); at != c.ip {
				t.Errorf("the server knows %s, want %s", at, c.ip)
			}
		}
		if s := p.games[0].listener.Stats(); s.Dropped.RateLimited == 0 {
			t.Errorf("%+v", s.Dropped)
		}
	})
}

// at is a network whose sockets have one address.
type at struct {
	*simnet.Network
	addr string
}

func (a at) ListenPacket(string) (transport.PacketConn, error) { return a.Network.ListenPacket(a.addr) }

// server returns the id of the server of a client's address, 0 if the proxy knows none.
func (p *proxy) server(client netip.AddrPort) uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flows[client].server.id
}

// TestReplayedEnvelopes lets an observer record everything between proxy and servers, and send
// copies of all of it, from his own address to the servers, and with the addresses of the servers
// to the proxy, also after a restart of both. He receives nothing, and a player who has changed
// servers loses nothing.
func TestReplayedEnvelopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		time.Sleep(time.Second)
		observer, err := p.network.ListenPacket("127.0.0.3:9")
		must(t, err)
		defer observer.Close()
		client := at{p.network, "203.0.113.7:40000"}
		addr := netip.MustParseAddrPort(client.addr)
		join := func(id uint64) *player {
			t.Helper()
			player, err := p.connectFrom(client, id, p.servers[id%4].route)
			must(t, err)
			for range 200 {
				_ = player.conn.Send([]byte("echo"))
				time.Sleep(20 * time.Millisecond)
			}
			if got, err := player.count(); got < 190 || err != nil {
				t.Fatalf("before replays: %d of 200 echoes, %v", got, err)
			}
			return player
		}
		play := func(what string, player *player, sent, received []packet) {
			t.Helper()
			before, _ := player.count()
			for i := range 500 {
				_ = player.conn.Send([]byte("echo"))
				for n := range 4 {
					if k := 4*i + n; len(sent) > 0 {
						_, _ = observer.WriteTo(sent[k%len(sent)].b, sent[k%len(sent)].peer)
						replay := received[k%len(received)]
						p.proxy.fromServer(transport.Datagram{Buf: replay.b, N: len(replay.b), Addr: replay.peer}, nil)
					}
				}
				if id := p.proxy.server(addr); i > 50 && id != p.servers[player.id%4].id {
					t.Errorf("%s: the proxy sends player %d to server %d", what, player.id, id)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(time.Second)
			// The first datagrams after a restart of the proxy are lost.
			if got, err := player.count(); got-before < 480 || err != nil {
				t.Errorf("%s: %d of 500 echoes, %v", what, got-before, err)
			}
		}
		first := join(0)
		must(t, first.conn.Close())
		time.Sleep(time.Second)
		second := join(1)
		sent, received := p.tap.copies()
		play("with copies", second, sent, received)
		p.stopProxy()
		p.startProxy()
		play("after a restart of the proxy", second, sent, received)
		must(t, second.conn.Close())
		must(t, p.games[1].listener.Close())
		p.games[1] = p.startGame(1)
		time.Sleep(time.Second)
		third, err := p.connectFrom(client, 5, p.servers[1].route)
		must(t, err)
		play("after a restart of the server", third, sent, received)
		must(t, third.conn.Close())
		must(t, observer.SetReadDeadline(time.Now().Add(time.Second)))
		if n, from, err := observer.ReadFrom(make([]byte, 2000)); err == nil {
			t.Errorf("the observer received %d bytes from %v", n, from)
		}
	})
}

// TestInternalAddress verifies that a proxy needs an address by which servers see it.
func TestInternalAddress(t *testing.T) {
	key := filepath.Join(t.TempDir(), "relay.key")
	must(t, os.WriteFile(key, []byte(strings.Repeat("ab", 32)), 0o600))
	for as, want := range map[string]string{"": "want the address that servers see", "10.0.0.1": "-internal-as: ", "0.0.0.0:7000": "-internal 0.0.0.0:7000"} {
		if err := serve("127.0.0.1:0", "0.0.0.0:0", as, key, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", as, err)
		}
	}
}

// copying is a network whose sockets call a function with each datagram with a connection id.
type copying struct {
	*simnet.Network
	copied func([]byte)
}

func (c copying) ListenPacket(string) (transport.PacketConn, error) {
	pc, err := c.Network.ListenPacket("203.0.113.66:0")
	return copyingConn{pc, c.copied}, err
}

type copyingConn struct {
	transport.PacketConn
	copied func([]byte)
}

func (c copyingConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if _, ok := relay.ServerID(b); ok {
		c.copied(bytes.Clone(b))
	}
	return c.PacketConn.WriteTo(b, to)
}

// TestSpoofedFlows sends copies of a player's datagrams as if from the address of a player of
// another server. His server validates that address, which changes nothing for the other player.
func TestSpoofedFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		time.Sleep(time.Second)
		victim, err := p.connect(1, p.servers[1].route)
		must(t, err)
		defer victim.conn.Close()
		time.Sleep(5 * time.Second) // it sends no connection ids any more
		copies := 0
		var mu sync.Mutex
		network := copying{p.network, func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			copies++
			p.proxy.fromClient(transport.Datagram{Buf: b, N: len(b), Addr: victim.conn.LocalAddr()}, nil)
		}}
		tok, err := token.Issue(p.key.Issuer(), token.Claims{
			ClientID: 2, Route: []byte(p.servers[2].route), Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(publicAddr)},
		})
		must(t, err)
		cheat, err := rogue.Dial(t.Context(), publicAddr, rogue.Config{Token: tok, Network: network})
		must(t, err)
		defer cheat.Close()
		before, _ := victim.count()
		const n = 100
		for i := range uint32(n) {
			must(t, victim.conn.Send([]byte("echo")))
			for k := range uint32(12) {
				must(t, cheat.Heartbeat(12*i+k, 0))
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		if got, err := victim.count(); got-before != n || err != nil {
			t.Errorf("%d of %d echoes, %v; %d copies, %+v", got-before, n, err, copies, p.proxy.snapshot())
		}
		if s := p.proxy.snapshot(); copies < 12*n || s.Hints != 0 {
			t.Errorf("%d copies, %+v", copies, s)
		}
	})
}

// TestWildcardAddresses plays over real sockets with a proxy and a server that both listen on all
// addresses of the machine: each answers from the address that was dialed.
func TestWildcardAddresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is not everywhere an address of the loopback interface")
	}
	key, err := token.NewKey()
	must(t, err)
	public, err := transport.UDP().ListenPacket("0.0.0.0:0")
	must(t, err)
	internal, err := transport.UDP().ListenPacket("127.0.0.1:0")
	must(t, err)
	name := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), public.LocalAddr().Port())
	l, err := endpoint.Listen("0.0.0.0:0", endpoint.Config{
		Network: relay.Network(nil, relayKey, nil), Key: key, Addrs: []netip.AddrPort{name}, Route: []byte("eu-1"), ServerID: 1,
	})
	must(t, err)
	g := &game{listener: l, open: map[uint64]*endpoint.Conn{}}
	go func() { _ = l.Serve(context.Background(), g) }()
	defer l.Close()
	p := newProxy(public, internal, relayKey, []server{{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), l.Addr().Port()), 1, "eu-1"}})
	ended := make(chan error, 1)
	go func() { ended <- p.run() }()
	defer func() {
		p.close()
		<-ended
	}()
	tok, err := token.Issue(key.Issuer(), token.Claims{
		ClientID: 1, Route: []byte("eu-1"), Issued: time.Now().Add(time.Second), Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{name},
	})
	must(t, err)
	player := &player{id: 1}
	player.conn, err = endpoint.Dial(t.Context(), name.String(), endpoint.Config{Token: tok}, player)
	must(t, err)
	defer player.conn.Close()
	for got := 0; got == 0; got, err = player.count() {
		must(t, err)
		must(t, player.conn.Send([]byte("echo")))
		time.Sleep(10 * time.Millisecond)
	}
}
