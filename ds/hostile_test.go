package ds_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// attack is an attack on a server with honest players.
type attack struct {
	name string
	run  func(*scenario)
	by   string // counters that must have refused or dropped some of it
	cfg  ds.Config
	// echoes permits more refusals than attempts: answers of the server go to those who did not
	// ask, payloads in bundles are counted one by one, and of a path response and its copy both can
	// be refused.
	echoes bool
}

// The first five attackers are off-path, those from "all datagrams of a second" on are on-path,
// those from "false sequence numbers" on are clients with a session of their own.
var attacks = []attack{
	{name: "hellos from spoofed addresses", run: spoofHellos},
	{name: "hellos from spoofed addresses, made-up cookies", run: spoofCookies, by: "cookie"},
	{name: "unreadable hellos with valid cookies, from 100 networks", run: unreadableHellos, by: "rate_limited, unauthenticated"},
	{name: "handshakes with valid tokens that never end, from 100 networks", run: slowHandshakes, by: "rate_limited"},
	{name: "used tokens, tokens of another server, copied hellos", run: replayTokens, by: "token, token of the other server"},
	{name: "forged datagrams, addresses and packet numbers known", run: forge, by: "client duplicate, client unauthenticated, duplicate, unauthenticated"},
	{name: "forged retries, welcomes, refusals, hints", run: forgeAnswers, by: "client unexpected"},
	{name: "all datagrams of a second, ten times in random order", run: resend, by: "client duplicate, duplicate"},
	{name: "each datagram twice", run: alter(double), by: "client duplicate, duplicate"},
	{name: "each truncated, sent ahead", run: alter(truncate), by: "client malformed, client unauthenticated, malformed, unauthenticated"},
	{name: "each with a bit flipped, sent ahead", run: alter(flip), by: "client unauthenticated, unauthenticated", echoes: true},
	{name: "each reflected to its sender", run: alter(reflect), by: "client unauthenticated, duplicate"},
	{name: "each sent to another player's session", run: alter(cross), by: "client unauthenticated, unauthenticated", echoes: true},
	{name: "each copied and sent ahead from another address", run: racedCopies, by: "duplicate, unexpected", echoes: true},
	{name: "datagrams of an older session of the same client", run: oldKeys, by: "unauthenticated, unknown_session", echoes: true},
	{name: "false sequence numbers, baselines, hashes, counts", run: falseFrames, by: "frame baseline_missing, frame desync, frame late, frame malformed"},
	{name: "malformed bundles", run: malformedBundles, by: "message malformed", echoes: true},
	{name: "invalid requests to bind", run: invalidBinds, by: "bind, message malformed"},
	{name: "acks and other messages of a server", run: serverMessages, by: "message malformed"},
	{name: "flood of frames", run: floodFrames, by: "frame rate_limited, message rate_limited"},
	{name: "flood of bundles and random bytes", run: floodDatagrams, by: "message rate_limited, message malformed", echoes: true},
	{name: "flood of requests to bind", run: floodBinds, by: "bind, message rate_limited"},
	{name: "flood of reliable requests to bind", run: floodReliableBinds, by: "bind, end of the session, message rate_limited", echoes: true},
	{name: "flood of reliable messages", run: floodMessages(400), by: "end of the session, message rate_limited", echoes: true},
	{name: "flood of reliable messages, for a game that polls", run: floodMessages(8000), by: "end of the session, message queue_full", echoes: true, cfg: ds.Config{Poll: true, Limits: ds.Limits{QueueBytes: 96 << 10}}},
}

// TestHostile runs each attack against players whose links lose nothing, so that each late or
// missing frame is the attack's doing. It logs the table of lab/results.md.
func TestHostile(t *testing.T) {
	link := simnet.Config{Delay: 25 * ms}
	table := `
| attack | tried | served | refused | let in | delivered | mean, ms | longest, ms | joined | mean, ms | longest, ms |
| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`
	peace := map[bool]outcome{}
	for poll, cfg := range map[bool]ds.Config{false: {}, true: attacks[len(attacks)-1].cfg} {
		peace[poll] = playScenario(t, link, cfg, nil)
	}
	table += peace[false].row("none") + peace[true].row("none, for a game that polls")
	for i := thin(4) - 1; i < len(attacks); i += thin(4) {
		a := attacks[i]
		t.Run(a.name, func(t *testing.T) {
			out := playScenario(t, link, a.cfg, a.run)
			table += out.row(a.name)
			a.check(t, &out)
			peace := peace[a.cfg.Poll]
			if out.sent != peace.sent || out.delivered != out.sent || out.worst > peace.worst+ms {
				t.Errorf("%d of %d frames were delivered after at most %v, without the attack %d of %d after %v",
					out.delivered, out.sent, out.worst, peace.delivered, peace.sent, peace.worst)
			}
			if out.joined != out.joins || out.slowest > peace.slowest {
				t.Errorf("%d of %d joined after at most %v, without the attack after %v", out.joined, out.joins, out.slowest, peace.slowest)
			}
		})
	}
	t.Log(table)
}

// TestHostileWithLoss runs the attacks that depend on datagrams of others over links with loss,
// jitter and reordering.
func TestHostileWithLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("the same without loss is not skipped")
	}
	link := simnet.Config{Delay: 25 * ms, Jitter: 5 * ms, Loss: 0.05, Burst: 2, Seed: 41}
	peace := playScenario(t, link, ds.Config{}, nil)
	for _, a := range attacks[5:14] {
		t.Run(a.name, func(t *testing.T) {
			out := playScenario(t, link, ds.Config{}, a.run)
			if out.in != 0 || out.delivered < peace.delivered*99/100 || out.delay > peace.delay*11/10 || out.joined != out.joins {
				t.Errorf("%+v, without the attack %+v", out, peace)
			}
		})
	}
}

// check verifies that everything was either served or refused, and nobody let in.
func (a *attack) check(t *testing.T, out *outcome) {
	t.Helper()
	counted := out.served + out.refused
	if out.in != 0 || out.tried == 0 || counted < out.tried || counted != out.tried && !a.echoes {
		t.Errorf("%d tried, %d served, %d refused, %d in: %v", out.tried, out.served, out.refused, out.in, out.by)
	}
	for name := range strings.SplitSeq(a.by, ", ") {
		if name != "" && out.by[name] == 0 {
			t.Errorf("not refused as %s: %v", name, out.by)
		}
	}
}

// outcome is the result of a scenario.
type outcome struct {
	tried, served, refused uint64            // by the attack
	by                     map[string]uint64 // refused, by counter
	in                     uint64            // violations: intrusions, moved sessions, excess frames
	sent, delivered        uint64            // frames of the honest players
	delay, worst           time.Duration     // mean and longest, from Send to the handler
	joins, joined          int
	joining, slowest       time.Duration // sum and longest, of Dial
	frames, messages       uint64        // of attackers with a session of their own, handled by the game
}

// row returns the outcome as a row of the table.
func (o outcome) row(name string) string {
	var by []string
	for _, counter := range slices.Sorted(maps.Keys(o.by)) {
		by = append(by, fmt.Sprintf("%d %s", o.by[counter], counter))
	}
	inMs := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }
	return fmt.Sprintf("| %s | %d | %d | %s | %d | %.2f %% | %s | %s | %d of %d | %s | %s |\n", name, o.tried, o.served, strings.Join(by, ", "),
		o.in, 100*float64(o.delivered)/float64(o.sent), inMs(o.delay), inMs(o.worst), o.joined, o.joins, inMs(o.joining/time.Duration(max(o.joined, 1))), inMs(o.slowest))
}

const (
	honestHz      = 30
	attackTime    = 5 * time.Second
	joiners       = 40 // honest clients that connect during the attack
	firstJoiner   = 1000
	firstAttacker = 1_000_000
)

var (
	hostAddr   = netip.MustParseAddrPort("203.0.113.7:7777")
	secondAddr = netip.MustParseAddrPort("203.0.113.8:7777") // another server with the same key
)

// scenario is a server with honest players, each in a network of its own and none on loopback, and
// perhaps an attacker. The players' client ids are 1 and above.
type scenario struct {
	*uplinktest.Network
	t         *testing.T
	rng       *rand.Rand
	key       token.Key
	srv       *ds.Server
	schema    *schema.Schema // of Buttons, which only attackers call
	journal   *uplinktest.Journal
	players   []*client.Conn
	addrs     []netip.AddrPort // of the players
	tokens    []token.Token    // which the players have used
	attackers int

	tried, served uint64            // served: what an attacker may have
	elsewhere     map[string]uint64 // refused, but not counted by the server or the players

	mu     sync.Mutex
	sentAt []time.Time // by frame
	homes  map[*ds.Player]netip.AddrPort
	out    outcome
	hello  map[netip.AddrPort][]byte // last hello with a message, of each player
}

// playScenario runs a scenario with an attack, or without one if run is nil.
func playScenario(t *testing.T, link simnet.Config, cfg ds.Config, run func(*scenario)) (out outcome) {
	const seed = 40
	t.Helper()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		s := &scenario{
			Network: uplinktest.NewNetwork(t, link, link), t: t, rng: rand.New(rand.NewPCG(seed, 0)), schema: buttonsSchema(t),
			journal: uplinktest.NewJournal(t, 1), homes: map[*ds.Player]netip.AddrPort{}, hello: map[netip.AddrPort][]byte{},
		}
		var err error
		s.key, err = token.NewKey()
		uplinktest.Must(t, err)
		honest := 50
		if testing.Short() {
			honest = 4
		}
		for i := range honest {
			s.addrs = append(s.addrs, netip.MustParseAddrPort(fmt.Sprintf("100.64.%d.1:5000", i)))
		}
		s.Watch(s.noteHello)
		s.srv = s.listen(hostAddr, cfg)
		for i, home := range s.addrs {
			tok := s.issue(uint64(i + 1))
			s.tokens = append(s.tokens, tok)
			conn, err := client.Dial(t.Context(), hostAddr.String(), client.Config{Token: tok, Network: at{s.Network, home.String()}, NoReconnect: true})
			uplinktest.Must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			s.players = append(s.players, conn)
			time.Sleep(10 * ms) // no more at a time than a listener admits
		}
		out = s.play(run)
	})
	return out
}

// noteHello keeps the players' hellos.
func (s *scenario) noteHello(from, to netip.AddrPort, b []byte) {
	if s.isPlayer(from) && to == hostAddr && b[0] == helloByte && binary.LittleEndian.Uint16(b[helloLength:]) > 0 {
		s.hello[from] = slices.Clone(b)
	}
}

func (s *scenario) isPlayer(addr netip.AddrPort) bool { return slices.Contains(s.addrs, addr) }

// listen starts a server.
func (s *scenario) listen(addr netip.AddrPort, cfg ds.Config) *ds.Server {
	cfg.Network, cfg.Key = s.Network, s.key
	cfg.Joined, cfg.Left = s.joined, s.left
	cfg.OnMessage = func(*ds.Player, []byte) { s.count(func(o *outcome) { o.messages++ }) }
	srv, err := ds.Listen(addr.String(), cfg)
	uplinktest.Must(s.t, err)
	uplinktest.Must(s.t, errors.Join(handles("Move", s.move)(srv), ds.HandleSchema(srv, s.schema, func(*ds.Player, ds.Frame[*schema.Frame]) {
		s.count(func(o *outcome) { o.frames++ })
	})))
	go func() { uplinktest.Must(s.t, srv.Serve(context.Background())) }()
	if cfg.Poll {
		polling(s.t, 50*ms, func() { srv.Poll() })
	}
	s.t.Cleanup(func() { _ = srv.Close() })
	return srv
}

func (s *scenario) issue(id uint64) token.Token {
	now := time.Now()
	tok, err := token.Issue(s.key.Issuer(), token.Claims{ClientID: id, Issued: now, Expires: now.Add(time.Minute), Servers: []netip.AddrPort{hostAddr}})
	uplinktest.Must(s.t, err)
	return tok
}

// attacker issues a token for another attacker.
func (s *scenario) attacker() token.Token {
	s.attackers++
	return s.issue(firstAttacker + uint64(s.attackers))
}

// at is a network whose sockets all have one address.
type at struct {
	transport.Network
	addr string
}

func (n at) ListenPacket(string) (transport.PacketConn, error) { return n.Network.ListenPacket(n.addr) }

func (s *scenario) count(f func(*outcome)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.out)
}

// joined counts a player as an intruder if it uses the client id of another.
func (s *scenario) joined(p *ds.Player) {
	s.count(func(o *outcome) {
		for old := range s.homes {
			if old.ClientID() == p.ClientID() && p.ClientID() < firstAttacker {
				o.in++
			}
		}
		s.homes[p] = p.Addr()
	})
}

// left verifies that no honest player is disconnected.
func (s *scenario) left(p *ds.Player, err error) {
	if p.ClientID() < firstJoiner && s.t.Context().Err() == nil {
		s.t.Errorf("player %d is disconnected: %v", p.ClientID(), err)
	}
}

// move handles an honest player's frame.
func (s *scenario) move(p *ds.Player, f ds.Frame[uplinktest.Move]) {
	s.journal.Handle(p, f)
	if p.ClientID() >= firstJoiner {
		return
	}
	s.count(func(o *outcome) {
		passed := time.Since(s.sentAt[f.Seq])
		o.delivered++
		o.delay += passed
		o.worst = max(o.worst, passed)
	})
}

// play lets the honest players send and others join, meanwhile runs the attack, and returns the
// outcome.
func (s *scenario) play(attack func(*scenario)) outcome {
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
		if d := time.Since(start); d > attackTime+500*ms { // after the players' time it could harm nobody
			s.t.Errorf("the attack takes %v, and the players play for %v", d, attackTime)
		}
	}
	work.Wait()
	settle(time.Second)
	for p, home := range s.homes {
		if p.Addr() != home && p.ClientID() < firstAttacker {
			s.out.in++ // the session has migrated
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

func (s *scenario) send(moves []*client.Stream[uplinktest.Move]) {
	for n := range uint64(attackTime / time.Second * honestHz) {
		m := uplinktest.MoveAt(1, n)
		s.count(func(*outcome) { s.sentAt = append(s.sentAt, time.Now()) })
		for _, move := range moves {
			if _, err := move.Send(&m); err != nil {
				s.t.Error(err)
			}
		}
		s.count(func(o *outcome) { o.sent += uint64(len(moves)) })
		time.Sleep(time.Second / honestHz)
	}
}

// join connects honest clients, each from a network of its own.
func (s *scenario) join() {
	rng := rand.New(rand.NewPCG(1, 1)) // not the attack's
	var all sync.WaitGroup
	s.out.joins = joiners
	for i := range joiners {
		time.Sleep(time.Duration(rng.Int64N(int64(2 * attackTime / joiners))))
		all.Go(func() {
			start := time.Now()
			conn, err := client.Dial(s.t.Context(), hostAddr.String(), client.Config{
				Token: s.issue(uint64(firstJoiner + i)), Network: at{s.Network, fmt.Sprintf("100.65.%d.1:5000", i)},
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

// counters returns all counts of dropped or refused datagrams, payloads and frames, by name.
func (s *scenario) counters() map[string]uint64 {
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
