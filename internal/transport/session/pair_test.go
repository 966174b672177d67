package session

import (
	"bytes"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"))
}

const (
	testNonce   = 0x1111
	testID      = 0x8877_6655_4433_2211
	testTimeout = 10 * time.Second
	oneWay      = 20 * time.Millisecond
)

var (
	clientAddr = Path{Addr: netip.MustParseAddrPort("192.0.2.1:4000")}
	serverAddr = Path{Addr: netip.MustParseAddrPort("203.0.113.1:7000")}
	serverKey  = seal.NewStaticKey([32]byte{1})
	testToken  = []byte("a token, which sessions do not look into")
)

// end is one end of a pair, with the payloads and messages that it received.
type end struct {
	name     string
	s        *Session
	addr     Path // where its datagrams come from
	payloads []string
	messages []string
	verdicts []Verdict
	// cut drops what is sent to this end.
	cut bool
	// drop, if not nil, reports whether a datagram to this end is lost.
	drop func(b []byte) bool
	// limit is the size of the longest datagram that arrives; 0: any.
	limit int
	// heartbeats counts those that this end sent.
	heartbeats uint64
}

type flight struct {
	at   time.Time
	from Path
	dest Path
	to   *end
	data []byte
}

// pair is a client and the session that a listener makes for its hello, oneWay apart. It runs in
// the virtual time of a synctest bubble, which is KCP's too.
type pair struct {
	t              *testing.T
	client, server *end
	flying         []flight
	delay          time.Duration // one way
	suite          seal.Suite
	code           wire.Code // of the grant
	buffers        Buffers
}

// inPair runs a test in a synctest bubble with a pair whose client has sent its hello.
func inPair(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{
			t: t, suite: seal.AES128GCM, delay: oneWay,
			client: &end{name: "client", addr: clientAddr}, server: &end{name: "server", addr: serverAddr},
		}
		p.client.s = NewClient(time.Now(), testRequest(), p.config(p.client, p.server))
		f(t, p)
	})
}

// inOpenPair runs a test with a pair whose ends are open.
func inOpenPair(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Helper()
	inPair(t, func(t *testing.T, p *pair) {
		p.connect()
		f(t, p)
	})
}

func testRequest() Request {
	return Request{
		Remote: serverAddr, ServerKey: serverKey.Public(), Token: testToken, Nonce: testNonce,
		Suites: 1<<seal.None | 1<<seal.AES128GCM | 1<<seal.AES128CTRHMAC8 | 1<<seal.ChaCha20SipHash8,
	}
}

// config returns the configuration of an end that sends to the other.
func (p *pair) config(from, to *end) Config {
	return Config{Timeout: testTimeout, Buffers: &p.buffers, Output: func(addr Path, b []byte) {
		if h, err := wire.ParseHeader(b); err == nil && h.Kind == wire.HeartbeatKind {
			from.heartbeats++
		}
		p.flying = append(p.flying, flight{time.Now().Add(p.delay), from.addr, addr, to, bytes.Clone(b)})
	}}
}

// testGrant returns a listener's grant for a hello.
func testGrant(h wire.Hello, from Path, grant wire.Grant) (Grant, error) {
	r := seal.NewResponder(nil, serverKey, Prologue)
	if _, err := r.Hello(h.Message); err != nil {
		return Grant{}, err
	}
	msg, secrets, err := r.Welcome(nil, wire.AppendGrant(nil, grant))
	return Grant{
		Remote: from, ID: grant.ID, Suite: seal.Suite(grant.Suite), Secrets: secrets,
		Welcome: wire.AppendWelcome(nil, wire.Welcome{Nonce: h.Nonce, Message: msg}),
	}, err
}

// hello answers a hello.
func (p *pair) hello(now time.Time, f flight) {
	p.t.Helper()
	h, err := wire.ParseHello(f.data)
	out := p.config(p.server, p.client).Output
	switch {
	case err != nil:
		p.t.Fatal(err)
	case len(h.Message) == 0:
		out(f.from, wire.AppendRetry(nil, wire.Retry{Nonce: h.Nonce, Cookie: [wire.CookieSize]byte{9}}))
	case p.server.s != nil:
		p.server.s.Hello(time.Now(), f.from)
	default:
		grant := wire.Grant{Code: p.code, ID: testID, Suite: uint8(p.suite)}
		g, err := testGrant(h, f.from, grant)
		if err != nil {
			p.t.Fatal(err)
		}
		if p.code != wire.Granted {
			out(f.from, g.Welcome)
			return
		}
		p.server.s = NewServer(now, g, p.config(p.server, p.client))
	}
}

// run advances the time by d; datagrams arrive and timers fire when they are due.
func (p *pair) run(d time.Duration) {
	p.t.Helper()
	until := time.Now().Add(d)
	for {
		next := p.next(until)
		time.Sleep(time.Until(next))
		now := time.Now()
		for len(p.flying) > 0 && !p.flying[0].at.After(now) {
			f := p.flying[0]
			p.flying = p.flying[1:]
			p.arrive(now, f)
		}
		for _, e := range []*end{p.client, p.server} {
			p.advance(now, e)
		}
		if !now.Before(until) {
			return
		}
	}
}

// next returns the time of the next event, at most until.
func (p *pair) next(until time.Time) time.Time {
	if len(p.flying) > 0 {
		until = earliest(until, p.flying[0].at)
	}
	for _, e := range []*end{p.client, p.server} {
		if e.s != nil { // the zero time, of a closed session, does not count
			until = earliest(until, e.s.Next())
		}
	}
	return until
}

func (p *pair) advance(now time.Time, e *end) {
	if e.s == nil {
		return
	}
	e.s.Advance(now)
	if e.s.State() != Closed && !e.s.Next().After(now) {
		p.t.Fatalf("%s: Next is %v, not after %v", e.name, e.s.Next(), now)
	}
}

// arrive passes a datagram to its end, as a listener or a dialer would.
func (p *pair) arrive(now time.Time, f flight) {
	e := f.to
	switch t, err := wire.ParseType(f.data); {
	case e.cut || e.drop != nil && e.drop(f.data) || f.dest != e.addr || e.limit != 0 && len(f.data) > e.limit:
	case e == p.server && err == nil && t == wire.HelloType:
		p.hello(now, f)
	case e.s != nil:
		e.inputFrom(now, f.from, f.data)
	}
}

// input passes a datagram to the session as if it came from the other end's first address.
func (e *end) input(now time.Time, b []byte) Verdict {
	if e.name == "client" {
		return e.inputFrom(now, serverAddr, b)
	}
	return e.inputFrom(now, clientAddr, b)
}

func (e *end) inputFrom(now time.Time, from Path, b []byte) Verdict {
	payload, v := e.s.Input(now, from, bytes.Clone(b))
	e.verdicts = append(e.verdicts, v)
	if v == Payload {
		e.payloads = append(e.payloads, string(payload))
	}
	for {
		msg, ok := e.s.Receive(now, nil)
		if !ok {
			return v
		}
		e.messages = append(e.messages, string(msg))
	}
}

// connect runs until both ends are open and have measured the RTT.
func (p *pair) connect() {
	p.t.Helper()
	p.run(8 * oneWay)
	if p.client.s.State() != Open || p.server.s.State() != Open {
		p.t.Fatalf("states %d and %d, want %d", p.client.s.State(), p.server.s.State(), Open)
	}
}

// last returns the datagram that was sent last.
func (p *pair) last() []byte { return p.flying[len(p.flying)-1].data }

func (p *pair) send(e *end, payload string) {
	p.t.Helper()
	if err := e.s.Send(time.Now(), []byte(payload)); err != nil {
		p.t.Fatal(err)
	}
}

// withPort returns the path with another port of the peer.
func withPort(p Path, port uint16) Path {
	p.Addr = netip.AddrPortFrom(p.Addr.Addr(), port)
	return p
}
