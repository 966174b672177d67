package ds_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	besieged    = 50 // honest players, clients 1 to 50; where time is short 4
	besiegedHz  = 30
	siegeTime   = 5 * time.Second
	pollTime    = 50 * time.Millisecond // of a server that polls
	joiners     = 40                    // honest clients that come while it lasts
	firstJoiner = 1000
	firstEnemy  = 1_000_000
)

var (
	siegeAddr  = netip.MustParseAddrPort("203.0.113.7:7777")
	secondAddr = netip.MustParseAddrPort("203.0.113.8:7777") // of another server with the same key
)

// siege is a server with honest players, and perhaps somebody who means harm. Nobody
// is on loopback, and every honest one in a network of its own.
type siege struct {
	*uplinktest.Network
	t       *testing.T
	rng     *rand.Rand
	key     token.Key
	srv     *ds.Server
	schema  *schema.Schema // of Buttons, which only enemies call
	journal *uplinktest.Journal
	players []*client.Conn
	addrs   []netip.AddrPort // of the players
	index   map[netip.AddrPort]int
	tokens  []token.Token // which they have used
	enemies int

	tried  uint64 // by the attack
	served uint64 // what anybody may have: was not refused, and is no harm
	// elsewhere is what was refused, but not counted by the server or the players.
	elsewhere map[string]uint64

	mu     sync.Mutex
	sentAt []time.Time // by frame
	homes  map[*ds.Player]netip.AddrPort
	out    outcome
	hello  map[netip.AddrPort][]byte // the last with a message, of each player
}

// outcome is what came of a siege.
type outcome struct {
	tried, served, refused uint64
	by                     map[string]uint64 // what was refused, by counter
	in                     uint64            // what got in that must not
	sent, delivered        uint64            // frames of the honest players
	delay, worst           time.Duration     // mean and longest, from Send to the handler
	joins, joined          int
	joining, slowest       time.Duration // sum and longest, from Dial's call to its return
	enemy                  uint64        // frames of enemies with a session of their own, which the game got
	messages               uint64        // likewise
}

// newSiege starts the server and connects the players. It runs inside a bubble.
func newSiege(t *testing.T, seed uint64, link simnet.Config, cfg ds.Config) *siege {
	s := &siege{
		Network: uplinktest.NewNetwork(t, link, link), t: t, rng: rand.New(rand.NewPCG(seed, 0)),
		schema: buttonsSchema(t), journal: uplinktest.NewJournal(t, 1),
		index: map[netip.AddrPort]int{}, homes: map[*ds.Player]netip.AddrPort{}, hello: map[netip.AddrPort][]byte{},
	}
	var err error
	s.key, err = token.NewKey()
	uplinktest.Must(t, err)
	honest := besieged
	if testing.Short() {
		honest = 4
	}
	for i := range honest {
		s.addrs = append(s.addrs, netip.MustParseAddrPort(fmt.Sprintf("100.64.%d.1:5000", i)))
		s.index[s.addrs[i]] = i
	}
	s.Watch(s.note)
	s.srv = s.listen(siegeAddr, cfg)
	for i, home := range s.addrs {
		tok := s.issue(uint64(i+1), siegeAddr)
		s.tokens = append(s.tokens, tok)
		s.players = append(s.players, s.dial(tok, home.String()))
		time.Sleep(10 * time.Millisecond) // no more at a time than a listener admits
	}
	return s
}

// note remembers hellos.
func (s *siege) note(from, to netip.AddrPort, b []byte) {
	if s.isPlayer(from) && to == siegeAddr && b[0] == helloByte && binary.LittleEndian.Uint16(b[35:]) > 0 {
		s.hello[from] = append([]byte(nil), b...)
	}
}

func (s *siege) isPlayer(addr netip.AddrPort) bool {
	_, ok := s.index[addr]
	return ok
}

// listen starts a server.
func (s *siege) listen(addr netip.AddrPort, cfg ds.Config) *ds.Server {
	cfg.Network, cfg.Key = s.Network, s.key
	cfg.Joined, cfg.Left = s.joined, s.left
	cfg.OnMessage = func(*ds.Player, []byte) { s.count(func(o *outcome) { o.messages++ }) }
	srv, err := ds.Listen(addr.String(), cfg)
	uplinktest.Must(s.t, err)
	uplinktest.Must(s.t, ds.Handle(srv, "Move", s.move))
	uplinktest.Must(s.t, ds.HandleSchema(srv, s.schema, func(*ds.Player, ds.Frame[*schema.Frame]) {
		s.count(func(o *outcome) { o.enemy++ })
	}))
	go func() { uplinktest.Must(s.t, srv.Serve(context.Background())) }()
	if cfg.Poll {
		ticker := time.NewTicker(pollTime)
		go func() {
			for {
				select {
				case <-ticker.C:
					srv.Poll()
				case <-s.t.Context().Done():
					ticker.Stop()
					return
				}
			}
		}()
	}
	s.t.Cleanup(func() { _ = srv.Close() })
	return srv
}

func (s *siege) issue(id uint64, servers ...netip.AddrPort) token.Token {
	now := time.Now()
	tok, err := token.Issue(s.key.Issuer(), token.Claims{ClientID: id, Issued: now, Expires: now.Add(time.Minute), Servers: servers})
	uplinktest.Must(s.t, err)
	return tok
}

// enemy gives a token for somebody who means harm.
func (s *siege) enemy() token.Token {
	s.enemies++
	return s.issue(firstEnemy+uint64(s.enemies), siegeAddr)
}

func (s *siege) dial(tok token.Token, from string) *client.Conn {
	conn, err := client.Dial(s.t.Context(), siegeAddr.String(), client.Config{Token: tok, Network: at{s.Network, from}, NoReconnect: true})
	uplinktest.Must(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// at is a network whose sockets all have one address.
type at struct {
	transport.Network
	addr string
}

func (n at) ListenPacket(string) (transport.PacketConn, error) { return n.Network.ListenPacket(n.addr) }

func (s *siege) count(f func(*outcome)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.out)
}

// joined takes a player for an intruder if it uses what is somebody else's.
func (s *siege) joined(p *ds.Player) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old := range s.homes {
		if old.ClientID() == p.ClientID() && p.ClientID() < firstEnemy {
			s.out.in++
		}
	}
	s.homes[p] = p.Addr()
}

// left counts honest players that somebody has thrown out.
func (s *siege) left(p *ds.Player, err error) {
	if p.ClientID() < firstJoiner && s.t.Context().Err() == nil {
		s.t.Errorf("player %d is out: %v", p.ClientID(), err)
	}
}

// move takes an honest player's frame.
func (s *siege) move(p *ds.Player, f ds.Frame[uplinktest.Move]) {
	s.journal.Handle(p, f)
	if p.ClientID() >= firstJoiner {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	passed := time.Since(s.sentAt[f.Seq])
	s.out.delivered++
	s.out.delay += passed
	s.out.worst = max(s.out.worst, passed)
}

// play has the honest players send, others join, and the attack, if there is one, do what
// it does.
func (s *siege) play(attack func(*siege)) outcome {
	moves := make([]*client.Stream[uplinktest.Move], len(s.players))
	for i, conn := range s.players {
		moves[i] = uplinktest.Bind(s.t, conn, "Move")
	}
	settle(time.Second)
	before := s.counters()
	var work sync.WaitGroup
	work.Go(func() { s.send(moves) })
	work.Go(s.join)
	if attack != nil {
		start := time.Now()
		attack(s)
		// What comes after the players have gone harms nobody, and shows nothing.
		if d := time.Since(start); d > siegeTime+500*ms {
			s.t.Errorf("the attack takes %v, and the players play for %v", d, siegeTime)
		}
	}
	work.Wait()
	settle(time.Second)
	for p, home := range s.homes {
		if p.Addr() != home && p.ClientID() < firstEnemy {
			s.out.in++ // somebody has moved it
		}
	}
	out := s.out
	out.tried, out.served, out.by = s.tried, s.served, map[string]uint64{}
	for name, n := range s.counters() {
		if n -= before[name]; n != 0 {
			out.by[name], out.refused = n, out.refused+n
		}
	}
	for name, n := range s.elsewhere {
		out.by[name], out.refused = n, out.refused+n
	}
	out.delay /= time.Duration(max(out.delivered, 1))
	return out
}

func (s *siege) send(moves []*client.Stream[uplinktest.Move]) {
	for n := range uint64(siegeTime / time.Second * besiegedHz) {
		m := uplinktest.MoveAt(1, n)
		s.mu.Lock()
		s.sentAt = append(s.sentAt, time.Now())
		s.mu.Unlock()
		for _, move := range moves {
			if err := move.Send(&m); err != nil {
				s.t.Error(err)
			}
		}
		s.count(func(o *outcome) { o.sent += uint64(len(moves)) })
		time.Sleep(time.Second / besiegedHz)
	}
}

// join has honest clients come, each from a network of its own, and go.
func (s *siege) join() {
	rng := rand.New(rand.NewPCG(1, 1)) // not the attack's
	var all sync.WaitGroup
	s.out.joins = joiners
	for i := range joiners {
		time.Sleep(time.Duration(rng.Int64N(int64(2 * siegeTime / joiners))))
		all.Go(func() {
			start := time.Now()
			conn, err := client.Dial(s.t.Context(), siegeAddr.String(), client.Config{
				Token: s.issue(uint64(firstJoiner+i), siegeAddr), Network: at{s.Network, fmt.Sprintf("100.65.%d.1:5000", i)},
			})
			if err != nil {
				s.t.Logf("join %d: %v", i, err)
				return
			}
			s.count(func(o *outcome) {
				o.joined++
				o.slowest = max(o.slowest, time.Since(start))
				o.joining += time.Since(start)
			})
			_ = conn.Close()
		})
	}
	all.Wait()
}

// counters are all that drops anything, by name.
func (s *siege) counters() map[string]uint64 {
	all := map[string]uint64{}
	st := s.srv.Stats()
	for reason, n := range st.Transport.Dropped.All() {
		all[reason] += n
	}
	for d, n := range st.Drops {
		all["message "+ds.Drop(d).String()] += n
	}
	for _, r := range st.RPCs {
		for d, n := range r.Drops {
			all["frame "+ds.Drop(d).String()] += n
		}
	}
	for _, conn := range s.players {
		st := conn.Stats()
		for reason, n := range st.Transport.Dropped.All() {
			all["client "+reason] += n
		}
		all["client malformed"] += st.Malformed
	}
	return all
}
