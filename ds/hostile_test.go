package ds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
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
	unattacked := map[bool]outcome{}
	for poll, cfg := range map[bool]ds.Config{false: {}, true: attacks[len(attacks)-1].cfg} {
		unattacked[poll] = playScenario(t, link, cfg, nil)
	}
	table += unattacked[false].row("none") + unattacked[true].row("none, for a game that polls")
	for i := thin(4) - 1; i < len(attacks); i += thin(4) {
		a := attacks[i]
		t.Run(a.name, func(t *testing.T) {
			out := playScenario(t, link, a.cfg, a.run)
			table += out.row(a.name)
			a.check(t, &out)
			unattacked := unattacked[a.cfg.Poll]
			if out.sent != unattacked.sent || out.delivered != out.sent || out.worst > unattacked.worst+ms {
				t.Errorf("%d of %d frames were delivered after at most %v, without the attack %d of %d after %v",
					out.delivered, out.sent, out.worst, unattacked.delivered, unattacked.sent, unattacked.worst)
			}
			if out.joined != out.joins || out.slowest > unattacked.slowest {
				t.Errorf("%d of %d joined after at most %v, without the attack after %v", out.joined, out.joins, out.slowest, unattacked.slowest)
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
	unattacked := playScenario(t, link, ds.Config{}, nil)
	for _, a := range attacks[5:14] {
		t.Run(a.name, func(t *testing.T) {
			out := playScenario(t, link, ds.Config{}, a.run)
			if out.in != 0 || out.delivered < unattacked.delivered*99/100 || out.delay > unattacked.delay*11/10 || out.joined != out.joins {
				t.Errorf("%+v, without the attack %+v", out, unattacked)
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

// The layouts of docs/spec/datagrams.md, as far as a client without a session needs them.
const (
	helloByte, retryByte, welcomeByte, refuseByte, unknownByte = 0x80, 0x81, 0x82, 0x83, 0x84

	longForm, dataForm = 1, 3 // in bits 6-7 of the first byte

	helloSize, cookieSize = 64, 24
	helloNonce            = 3
	helloCookie           = 11
	helloKey              = 35
	helloLength           = 40 // behind the length of the route, which is empty
	helloMessage          = 42
	retryCookie           = 9
)

// helloWith returns a hello for the key of the players' hellos.
func (s *scenario) helloWith(nonce uint64, cookie, message []byte) []byte {
	b := make([]byte, max(helloSize, helloMessage+len(message)))
	b[0] = helloByte
	binary.LittleEndian.PutUint16(b[1:], 4)
	binary.LittleEndian.PutUint64(b[helloNonce:], nonce)
	copy(b[helloCookie:helloCookie+cookieSize], cookie)
	for _, hello := range s.hello {
		copy(b[helloKey:], hello[helloKey:helloLength-1])
		break
	}
	binary.LittleEndian.PutUint16(b[helloLength:], uint16(len(message)))
	copy(b[helloMessage:], message)
	return b
}

// random returns n random bytes.
func (s *scenario) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return b
}

// many returns n, or less in short mode.
func many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// pace calls f n times during the attack. Its steps are random, as even ones would be in step with
// the server's limits.
func (s *scenario) pace(n int, f func(i int)) {
	steps := int(attackTime * 9 / 10 / ms)
	for k := range steps {
		for i := n * k / steps; i < n*(k+1)/steps; i++ {
			f(i)
		}
		time.Sleep(time.Duration(s.rng.Int64N(int64(2 * ms))))
	}
}

// place returns the i-th address of an attacker, each in a network of its own.
func place(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(18 + i>>8&1), byte(i), byte(1 + i>>9)}), 4000)
}

// from opens a socket that is not watched.
func (s *scenario) from(addr netip.AddrPort) transport.PacketConn {
	pc, err := s.Network.Network.ListenPacket(addr.String())
	uplinktest.Must(s.t, err)
	return pc
}

// throw sends a datagram, which counts as tried.
func (s *scenario) throw(pc transport.PacketConn, to netip.AddrPort, b []byte) {
	s.tried++
	_, _ = pc.WriteTo(b, to)
}

// spoof sends a datagram to the server from an address that belongs to nobody.
func (s *scenario) spoof(from netip.AddrPort, b []byte) {
	pc := s.from(from)
	s.throw(pc, hostAddr, b)
	_ = pc.Close()
}

func spoofHellos(s *scenario) {
	s.pace(many(100_000), func(i int) { s.spoof(place(i%1000), s.helloWith(s.rng.Uint64(), nil, nil)) })
	s.served = s.tried // one retry each, without state
	s.checkConns()
}

func spoofCookies(s *scenario) {
	message := s.random(300)
	s.pace(many(100_000), func(i int) { s.spoof(place(i%1000), s.helloWith(s.rng.Uint64(), s.random(cookieSize), message)) })
	s.checkConns()
}

// checkConns counts connections that are neither players nor joiners as let in.
func (s *scenario) checkConns() {
	settle(100 * ms)
	if n := s.srv.Stats().Transport.Conns; n > len(s.addrs)+joiners {
		s.count(func(o *outcome) { o.in += uint64(n - len(s.addrs) - joiners) })
	}
}

// cookies requests a cookie for each socket.
func (s *scenario) cookies(sockets []transport.PacketConn, server netip.AddrPort, nonce func(i int) uint64) (cookies [][]byte) {
	for i, pc := range sockets {
		s.served++
		s.throw(pc, server, s.helloWith(nonce(i), nil, nil))
	}
	b := make([]byte, 1200)
	for _, pc := range sockets {
		uplinktest.Must(s.t, pc.SetReadDeadline(time.Now().Add(time.Second)))
		n, _, err := pc.ReadFrom(b)
		uplinktest.Must(s.t, err)
		if b[0] != retryByte || n != retryCookie+cookieSize {
			s.t.Fatalf("%x is no retry", b[:n])
		}
		cookies = append(cookies, bytes.Clone(b[retryCookie:n]))
	}
	return cookies
}

func unreadableHellos(s *scenario) {
	const networks = 100
	var own []transport.PacketConn
	for i := range networks {
		own = append(own, s.from(place(i)))
	}
	cookies := s.cookies(own, hostAddr, func(i int) uint64 { return uint64(i) })
	s.pace(many(20_000), func(i int) {
		s.throw(own[i%networks], hostAddr, s.helloWith(uint64(i%networks), cookies[i%networks], s.random(300)))
	})
	s.checkConns()
}

// handshakesOnly is a network that drops the datagrams of sessions.
type handshakesOnly struct{ transport.Network }

func (n handshakesOnly) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return handshakeConn{pc}, err
}

type handshakeConn struct{ transport.PacketConn }

func (c handshakeConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if uplinktest.Kind(b) >= 0 {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

func slowHandshakes(s *scenario) {
	const networks = 100
	var all sync.WaitGroup
	s.pace(many(5000), func(i int) {
		s.tried++
		from := netip.AddrPortFrom(place(i%networks).Addr(), uint16(5000+i/networks))
		cfg := endpoint.Config{Network: handshakesOnly{at{s.Network, from.String()}}, Token: s.attacker()}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), 140*ms) // before it repeats its hello
			defer cancel()
			if conn, err := endpoint.Dial(ctx, hostAddr.String(), cfg, &raw{t: s.t}); err == nil {
				s.count(func(*outcome) { s.served++ }) // a welcome, and 5 s to begin
				_ = conn.Close()
			}
		})
	})
	all.Wait()
	st := s.srv.Stats().Transport
	s.count(func(o *outcome) { o.in += uint64(max(0, st.Open-len(s.addrs)-joiners)) })
	if pending := st.Conns - st.Open; pending > 256 {
		s.t.Errorf("%d handshakes are pending", pending)
	}
}

// replayTokens presents the players' tokens again, to their server and to another one, and then
// their hellos with cookies of the attacker.
func replayTokens(s *scenario) {
	second := s.listen(secondAddr, ds.Config{})
	servers := []netip.AddrPort{hostAddr, secondAddr}
	var all sync.WaitGroup
	for i, tok := range s.tokens {
		for k, server := range servers {
			s.tried++
			all.Go(func() {
				cfg := client.Config{Token: tok, Network: at{s.Network, place(2*i + k).String()}}
				if conn, err := client.Dial(s.t.Context(), server.String(), cfg); err == nil {
					s.count(func(o *outcome) { o.in++ })
					_ = conn.Close()
				}
			})
		}
		time.Sleep(attackTime / 2 / time.Duration(len(s.addrs)))
	}
	all.Wait()
	for k, server := range servers {
		var own []transport.PacketConn
		for i := range s.addrs {
			own = append(own, s.from(place(200+2*i+k)))
		}
		nonce := func(i int) uint64 { return binary.LittleEndian.Uint64(s.hello[s.addrs[i]][helloNonce:]) }
		cookies := s.cookies(own, server, nonce)
		for i, addr := range s.addrs {
			hello := s.hello[addr]
			message := hello[helloMessage : helloMessage+int(binary.LittleEndian.Uint16(hello[helloLength:]))]
			s.throw(own[i], server, s.helloWith(nonce(i), cookies[i], message))
		}
	}
	settle(100 * ms)
	st := second.Stats().Transport
	s.elsewhere = map[string]uint64{"token of the other server": st.Dropped.Token}
	if st.Conns != 0 || st.Dropped.Total() != st.Dropped.Token {
		s.t.Errorf("the other server: %+v", st)
	}
}

// forge sends datagrams with random content to both ends of the players' sessions.
func forge(s *scenario) {
	server := s.Socket(hostAddr)
	s.pace(many(50_000), func(i int) {
		home := s.addrs[s.rng.IntN(len(s.addrs))]
		number := uint16(s.rng.IntN(400))
		b := append([]byte{byte(s.rng.IntN(8) << 3), byte(number), byte(number >> 8)}, s.random(20+s.rng.IntN(60))...)
		if i%2 == 0 {
			s.throw(s.Socket(home), hostAddr, b)
		} else {
			s.throw(server, home, b)
		}
	})
}

// forgeAnswers sends answers of a server to players. Half of the hints quote headers that the
// players have sent.
func forgeAnswers(s *scenario) {
	seen := map[netip.AddrPort][]byte{}
	var mu sync.Mutex
	s.Watch(func(from, _ netip.AddrPort, b []byte) {
		if s.isPlayer(from) && uplinktest.Kind(b) >= 0 && b[0]>>6 != longForm {
			mu.Lock()
			defer mu.Unlock()
			seen[from] = bytes.Clone(b[:uplinktest.HeaderSize(b)])
		}
	})
	settle(100 * ms)
	server := s.Socket(hostAddr)
	s.pace(many(50_000), func(i int) {
		home := s.addrs[s.rng.IntN(len(s.addrs))]
		mu.Lock()
		header := seen[home]
		mu.Unlock()
		if header == nil {
			header = []byte{dataForm << 6, 0}
		}
		switch i % 8 {
		case 0:
			s.throw(server, home, append([]byte{retryByte}, s.random(8+cookieSize)...))
		case 1:
			s.throw(server, home, append([]byte{welcomeByte}, s.random(66)...))
		case 2:
			s.throw(server, home, append([]byte{refuseByte}, s.random(9)...))
		case 3: // a hint about another session
			number := header[1:]
			if len(header) == 2 {
				number = []byte{header[1], header[0] & 0x3f}
			}
			s.throw(server, home, slices.Concat([]byte{unknownByte, longForm << 6}, s.random(8), number))
		default:
			s.throw(server, home, append([]byte{unknownByte}, header...))
		}
	})
	s.served = s.tried / 2 // a credible hint makes the client send long headers for a second
}

// flight is a datagram of a player's session that an on-path attacker has seen.
type flight struct {
	from, to netip.AddrPort
	b        []byte
}

// eavesdrop calls f for each datagram of the players' sessions before it is sent, for a time, with
// a lock.
func (s *scenario) eavesdrop(d time.Duration, f func(flight)) {
	var mu sync.Mutex
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		if uplinktest.Kind(b) >= 0 && (s.isPlayer(from) && to == hostAddr || from == hostAddr && s.isPlayer(to)) {
			mu.Lock()
			defer mu.Unlock()
			f(flight{from, to, bytes.Clone(b)})
		}
	})
	settle(d)
	s.Watch(s.noteHello)
}

// sockets returns the sockets of the players and the server, to send from their addresses. It must
// be called before eavesdrop: a network cannot be asked while it is watched.
func (s *scenario) sockets() map[netip.AddrPort]transport.PacketConn {
	all := map[netip.AddrPort]transport.PacketConn{hostAddr: s.Socket(hostAddr)}
	for _, addr := range s.addrs {
		all[addr] = s.Socket(addr)
	}
	return all
}

// alter sends f of each datagram ahead of it, unless its content is nil.
func alter(f func(*scenario, flight) flight) func(*scenario) {
	return func(s *scenario) {
		sockets := s.sockets()
		s.eavesdrop(attackTime*9/10, func(d flight) {
			if d = f(s, d); d.b != nil {
				s.throw(sockets[d.from], d.to, d.b)
			}
		})
		settle(100 * ms)
	}
}

func double(_ *scenario, d flight) flight { return d }

func reflect(_ *scenario, d flight) flight { return flight{d.to, d.from, d.b} }

func truncate(s *scenario, d flight) flight {
	d.b = d.b[:s.rng.IntN(len(d.b))]
	return d
}

// flip flips any bit but those of the header's form.
func flip(s *scenario, d flight) flight {
	bit := 2 + s.rng.IntN(8*len(d.b)-2)
	d.b[bit/8] ^= 0x80 >> (bit % 8)
	return d
}

// cross sends a datagram of one player to another player's session. A long header would name the
// first session, so it is replaced by one without the id.
func cross(s *scenario, d flight) flight {
	other := s.addrs[s.rng.IntN(len(s.addrs))]
	switch {
	case other == d.from || other == d.to:
		d.b = nil
	case d.from == hostAddr:
		d.to = other
	default:
		d.from = other
		if d.b[0]>>6 != longForm {
			break
		}
		header := []byte{d.b[0] & 0x3f, d.b[9], d.b[10]}
		if uplinktest.Kind(d.b) == uplinktest.DataKind {
			header = []byte{dataForm<<6 | d.b[10]&0x3f, d.b[9]}
		}
		d.b = append(header, d.b[11:]...)
	}
	return d
}

func resend(s *scenario) {
	var seen []flight
	s.eavesdrop(attackTime/5, func(d flight) { seen = append(seen, d) })
	settle(50 * ms) // the originals arrive before their copies
	sockets := s.sockets()
	s.rng.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
	for range 10 {
		for i, d := range seen {
			s.throw(sockets[d.from], d.to, d.b)
			if i%100 == 99 {
				settle(ms)
			}
		}
	}
	settle(100 * ms)
}

// racedCopies sends a copy of each of the players' datagrams first, from another address. Forged
// hints make the players name their sessions.
func racedCopies(s *scenario) {
	thief, server := s.from(place(0)), s.Socket(hostAddr)
	s.eavesdrop(attackTime*9/10, func(d flight) {
		if d.from == hostAddr {
			return
		}
		s.throw(thief, hostAddr, d.b)
		if d.b[0]>>6 != longForm {
			_, _ = server.WriteTo(append([]byte{unknownByte}, d.b[:uplinktest.HeaderSize(d.b)]...), d.from)
		}
	})
	settle(100 * ms)
	uplinktest.Must(s.t, thief.Close())
}

// oldKeys sends the datagrams of a client's earlier session to both ends of its present one.
func oldKeys(s *scenario) {
	home := place(0)
	var mu sync.Mutex
	var seen []flight
	s.Watch(func(from, to netip.AddrPort, b []byte) {
		if uplinktest.Kind(b) >= 0 && (from == home || to == home) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, flight{from, to, bytes.Clone(b)})
		}
	})
	connect := func() *raw {
		return dialRawAt(s.t, hostAddr.String(), endpoint.Config{Network: at{s.Network, home.String()}, Token: s.issue(firstAttacker)}, 100*ms)
	}
	talk := func(c *raw, n int) {
		for range n {
			uplinktest.Must(s.t, c.Send([]byte{0xc0})) // counted as malformed
			settle(5 * ms)
		}
	}
	first := connect()
	talk(first, 100)
	uplinktest.Must(s.t, first.Close())
	settle(100 * ms)
	s.Watch(s.noteHello)
	second := connect()
	talk(second, 50)
	sockets := s.sockets()
	sockets[home] = s.Socket(home)
	dropped := second.Stats().Dropped.Total()
	for range 20 {
		for _, d := range seen {
			s.throw(sockets[d.from], d.to, d.b)
		}
		settle(10 * ms)
	}
	settle(100 * ms)
	s.elsewhere = map[string]uint64{"client": second.Stats().Dropped.Total() - dropped}
	talk(second, 1)
	uplinktest.Must(s.t, second.Send(nil))
	s.tried += 152 // the messages
}

// The attackers of this file are clients with a valid token and a session of their own.

const buttonsHz = 60

// insider connects an attacker and binds Buttons as RPC 0.
func (s *scenario) insider() *raw {
	r := dialRawAt(s.t, hostAddr.String(), endpoint.Config{Network: at{s.Network, place(0).String()}, Token: s.attacker()}, 100*ms)
	r.mustBind(request(0, s.schema, false))
	return r
}

// tell sends a message, which counts as tried.
func (s *scenario) tell(r *raw, b []byte) {
	s.tried++
	uplinktest.Must(s.t, r.Send(b))
}

// payloads returns a function that returns valid payloads of Buttons.
func (s *scenario) payloads() func() []byte {
	return payloadsOf(s.t, s.schema, rpcdelta.EncoderConfig{Redundancy: rpcdelta.RedundancyOff})
}

// serveFrames counts the attacker's delivered payloads as served, and frames above its rate limit
// as violations.
func (s *scenario) serveFrames() {
	settle(200 * ms)
	for _, r := range s.srv.Stats().RPCs {
		if r.RPC == s.schema.RPC() {
			s.served += r.Messages - r.Drops[ds.RateLimited]
		}
	}
	limit := uint64(2*buttonsHz*(2+(attackTime+time.Second)/time.Second) + rpcdelta.MaxHeld) // by the default RateSlack
	s.count(func(o *outcome) { o.in += max(o.frames, limit) - limit })
}

// falseFrames alters valid payloads: baseline, hash and number of frames first, then the sequence
// number and any bit, since these make later frames late.
func falseFrames(s *scenario) {
	r, next := s.insider(), s.payloads()
	s.pace(600, func(i int) {
		b := next()
		random := byte(s.rng.Uint32())
		switch kind := i % 4; {
		case kind == 0: // unaltered
		case kind == 1 && i < 300:
			b = append([]byte{0xa0, 0, b[2], b[3], random}, b[5:]...) // baseline
		case kind == 2 && i < 300:
			b = append([]byte{0xb0, 0, b[2], b[3], 2, random, random}, b[5:]...) // hash of a baseline
		case kind == 1:
			b[2], b[3] = random, byte(s.rng.Uint32()) // sequence number
		case kind == 2:
			b[s.rng.IntN(len(b))] ^= 1 << (random % 8)
		default:
			b = append(b[:5], s.random(1+s.rng.IntN(20))...) // number of frames
		}
		s.tell(r, b)
	})
	s.serveFrames()
}

func malformedBundles(s *scenario) {
	r := s.insider()
	s.pace(400, func(i int) {
		b := append([]byte{byte(message.Bundle) | byte(i&15)}, s.random(s.rng.IntN(40))...)
		if i%2 == 0 && len(b) > 1 {
			b[1] = 0xff // a length beyond the end
		}
		s.tell(r, b)
	})
	s.serveFrames()
}

func invalidBinds(s *scenario) {
	r := s.insider()
	requests := []func(*message.BindRequest){
		func(q *message.BindRequest) { q.RateHz = math.NaN() },
		func(q *message.BindRequest) { q.RateHz = math.Inf(1) },
		func(q *message.BindRequest) { q.RateHz = -60 },
		func(q *message.BindRequest) { q.RateHz = 1e9 },
		func(q *message.BindRequest) { q.PerTick = make([]int64, 100) }, // has no velocities
		func(q *message.BindRequest) { q.Ring = -1 },
		func(q *message.BindRequest) { q.Ring = math.MaxInt32 },
		func(q *message.BindRequest) { q.Frames = -1 },
		func(q *message.BindRequest) { q.Frames = math.MaxInt32 },
		func(q *message.BindRequest) { q.Codec = "morse" },
		func(q *message.BindRequest) { q.Name = strings.Repeat("x", 900) },
		func(q *message.BindRequest) { q.Fingerprint++; q.Fields = make([]uint16, 250) },
		func(q *message.BindRequest) { q.RPC, q.Reliable = 0, true }, // is bound otherwise
	}
	before := len(r.answers)
	s.pace(300, func(i int) {
		q := request(1+i%rpcdelta.MaxRPC, s.schema, false)
		if i%20 != 0 {
			requests[i%len(requests)](&q)
		}
		b, err := q.Append(nil)
		uplinktest.Must(s.t, err)
		if i%20 == 0 { // number 300, whose low 8 bits are valid; it is the array's first element
			const uint16Code, at, size = 0xcd, 2, 2
			b = slices.Concat(b[:at], []byte{uint16Code, 300 >> 8, 300 & 0xff}, b[at+size:])
		}
		s.tell(r, b)
	})
	s.serveBinds(r, before)
}

// serveBinds counts the answers to requests to bind, and bindings above the limit as violations.
func (s *scenario) serveBinds(r *raw, before int) {
	settle(200 * ms)
	const limit = 8
	granted, refused := map[uint8]bool{0: true}, uint64(0)
	for _, a := range r.answers[before:] {
		if a.Reason != message.ReasonNone {
			refused++
			continue
		}
		s.served++
		granted[a.RPC] = true
	}
	s.elsewhere = map[string]uint64{"bind": refused}
	s.count(func(o *outcome) { o.in += uint64(max(len(granted), limit) - limit) })
	if n := len(r.answers) - before; n > maxRequests {
		s.t.Errorf("%d requests are answered, want at most %d", n, maxRequests)
	}
}

// maxRequests is the number of requests to bind that the server handles during an attack: 50 a
// second, and at once 100 and one for each of the 8 bindings.
const maxRequests = int(50*(attackTime+time.Second)/time.Second) + 100 + 8

func serverMessages(s *scenario) {
	r := s.insider()
	bound, err := (&message.BindAnswer{Ring: 64}).Append(nil)
	uplinktest.Must(s.t, err)
	s.pace(400, func(i int) {
		ack := rpcdelta.Ack{Seq: uint16(s.rng.Uint32()), Window: s.rng.Uint64(), Len: 64, Whole: true}
		s.tell(r, [][]byte{ack.Append([]byte{byte(message.Acks)}), bound, {byte(message.Leaving)}}[i%3])
	})
}

// floodFrames calls Buttons 70 times as often as declared.
func floodFrames(s *scenario) {
	r, next := s.insider(), s.payloads()
	s.pace(many(20_000), func(int) { s.tell(r, next()) })
	s.serveFrames()
}

func floodDatagrams(s *scenario) {
	r := s.insider()
	full := message.NewBundler(transport.MaxPayload)
	for range message.MaxBundle {
		full.Add([]byte{0x80, 0, 0, 0, 0})
	}
	bundle := full.Take()
	s.pace(many(50_000), func(i int) {
		if i%2 == 0 {
			s.tell(r, bundle)
		} else {
			s.tell(r, s.random(1+s.rng.IntN(100)))
		}
	})
	s.serveFrames()
}

// bindAny returns a request to bind any number.
func bindAny(s *scenario, i int) []byte {
	q := request(i%(rpcdelta.MaxRPC+1), s.schema, i%2 == 1)
	b, err := q.Append(nil)
	uplinktest.Must(s.t, err)
	return b
}

func floodBinds(s *scenario) {
	r := s.insider()
	before := len(r.answers)
	s.pace(20_000, func(i int) { s.tell(r, bindAny(s, i)) })
	s.serveBinds(r, before)
}

// floodReliable sends messages over the reliable channel until the server ends the session.
func (s *scenario) floodReliable(r *raw, message func(i int) []byte) {
	s.pace(20_000, func(i int) {
		switch err := r.SendReliable(message(i)); {
		case err == nil:
			s.tried++
		case !errors.Is(err, transport.ErrBacklog) && !errors.Is(err, net.ErrClosed):
			s.t.Error(err)
		}
	})
	settle(100 * ms)
	if err := r.Send(nil); !errors.Is(err, transport.ErrLimit) {
		s.t.Errorf("the session continues: %v", err)
	}
}

func floodReliableBinds(s *scenario) {
	r := s.insider()
	before := len(r.answers)
	s.floodReliable(r, func(i int) []byte { return bindAny(s, i) })
	s.serveBinds(r, before)
	st := s.srv.Stats()
	handled := s.served + s.elsewhere["bind"] + st.Drops[ds.Malformed]
	s.elsewhere["end of the session"] = s.tried - handled - st.Drops[ds.RateLimited]
}

func floodMessages(size int) func(*scenario) {
	return func(s *scenario) {
		message := message.AppendMessage(nil, make([]byte, size))
		s.floodReliable(s.insider(), func(int) []byte { return message })
		st := s.srv.Stats()
		s.count(func(o *outcome) { s.served = o.messages })
		s.elsewhere = map[string]uint64{"end of the session": s.tried - s.served - st.Drops[ds.RateLimited] - st.Drops[ds.QueueFull]}
	}
}
