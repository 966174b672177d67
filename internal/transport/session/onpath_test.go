package session

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// observer is the schedule of an on-path attacker. He sees every datagram, copies and delays the
// copies, forges unauthenticated datagrams and sends from any address, but drops nothing.
type observer struct {
	addrs          []Path
	start, stop    time.Duration // of copying and forging
	relayUntil     time.Duration // end of relaying from his addresses to the client
	copies         float64       // probability that a datagram of the client is copied, per address
	relays         bool          // whether datagrams to his addresses reach the client
	up, down       time.Duration // delays of copies to the server and of relayed datagrams to the client
	late           time.Duration // additional delay of one copy in eight
	hints          float64       // probability that a datagram of the client is answered by a forged hint
	spoofs         bool          // whether copies also come from the client's first address
	delayResponses time.Duration // additional delay of copies of responses
}

// relaying reports whether the observer relays to the client at a time.
func (o *observer) relaying(at time.Duration) bool {
	return o.relays && at >= o.start && at <= min(o.stop, o.relayUntil)
}

// modelEvent is the arrival of a datagram.
type modelEvent struct {
	at       time.Time
	toServer bool
	from     Path
	dest     Path
	data     []byte
	original bool // sent by the client itself
	sent     time.Duration
}

// model is a client, a server, the direct path between them, and an observer. It runs in virtual
// time.
type model struct {
	rng            *rand.Rand
	began, now     time.Time
	events         []modelEvent // the earliest first
	client, server *Session
	addr           Path // of the client
	moves          int
	movedAt        time.Duration // the last change of the client's address; 0: none
	namedAt        time.Duration // the first long header after that
	foundAt        time.Duration // the server's first migration to the new address; 0: none
	lastFound      time.Duration // the last one
	stolen         int           // datagrams to the observer, without challenges
	lateResponses  int           // responses that arrived more than 3 s after they were sent
	rate           time.Duration // between two datagrams of an end
	delay, jitter  time.Duration // of the direct path, one direction
	loss           float64       // of the direct path, probability
	deafUntil      time.Duration // end of an outage of the direct path's downlink
	observer       *observer     // nil: none
	buffers        Buffers
	heardDirect    time.Duration     // the server's last datagram from the direct path
	gap            bool              // whether that was ever more than 250 ms ago
	delivered      map[uint64]bool   // payloads, by the time when they were sent
	dropped        map[uint64]string // payloads that the server refused, likewise
	violation      string            // the first one
}

const modelRun = 7 * time.Second

func newModel(seed uint64) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 3)), began: time.Unix(1_000_000, 0), addr: clientAddr, delivered: map[uint64]bool{}, dropped: map[uint64]string{}}
	m.now = m.began
	var secrets seal.Secrets
	binary.LittleEndian.PutUint64(secrets.ToClient[:], seed)
	binary.LittleEndian.PutUint64(secrets.ToServer[:], ^seed)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	cfg := Config{Timeout: testTimeout, Buffers: &m.buffers, Random: random}
	cfg.Output = func(to Path, b []byte) { m.fromClient(to, b) }
	m.client = &Session{cfg: cfg, client: true, long: true, remote: serverAddr, start: m.now, received: m.now, served: m.now}
	cfg.Output = func(to Path, b []byte) { m.fromServer(to, b) }
	m.server = &Session{cfg: cfg, remote: clientAddr, start: m.now, received: m.now, served: m.now}
	m.delay = time.Duration(5+m.rng.IntN(95)) * time.Millisecond
	m.jitter = time.Duration(m.rng.IntN(5)) * time.Millisecond
	m.rate = []time.Duration{time.Second / 60, time.Second / 20}[m.rng.IntN(2)]
	for _, s := range []*Session{m.client, m.server} {
		s.begin(testID, seal.AES128CTRHMAC8, secrets)
	}
	return m
}

// open begins the exchange of heartbeats and runs until a time.
func (m *model) open(until time.Duration) {
	m.client.open(m.now)
	m.server.open(m.now)
	m.run(until)
}

func (m *model) at() time.Duration { return m.now.Sub(m.began) }

func (m *model) push(delay time.Duration, e modelEvent) {
	e.at, e.sent, e.data = m.now.Add(delay), m.at(), bytes.Clone(e.data)
	i := sort.Search(len(m.events), func(i int) bool { return m.events[i].at.After(e.at) })
	m.events = slices.Insert(m.events, i, e)
}

func (m *model) fromClient(to Path, b []byte) {
	if m.rng.Float64() >= m.loss {
		m.push(m.directDelay(), modelEvent{toServer: true, from: m.addr, dest: to, data: b, original: true})
	}
	h, err := wire.ParseHeader(b)
	if err != nil {
		return
	}
	if m.movedAt > 0 && m.namedAt < m.movedAt && h.Long {
		m.namedAt = m.at()
	}
	o := m.observer
	if o == nil || m.at() < o.start || m.at() > o.stop {
		return
	}
	from := o.addrs
	if o.spoofs && m.movedAt > 0 {
		from = append(from[:len(from):len(from)], clientAddr)
	}
	for _, a := range from {
		if m.rng.Float64() < o.copies {
			delay := o.up
			if m.rng.IntN(8) == 0 {
				delay += o.late
			}
			if h.Kind == wire.ResponseKind {
				delay += o.delayResponses
			}
			m.push(delay, modelEvent{toServer: true, from: a, dest: to, data: b})
		}
	}
	if m.rng.Float64() < o.hints {
		m.push(o.down, modelEvent{from: to, dest: m.addr, data: wire.AppendUnknown(nil, wire.Unknown{Echo: h})})
	}
}

// directDelay is the direct path's delay of one datagram.
func (m *model) directDelay() time.Duration {
	return m.delay + time.Duration(m.rng.Int64N(int64(m.jitter)+1)) - m.jitter/2
}

func (m *model) fromServer(to Path, b []byte) {
	if m.rng.Float64() >= m.loss && m.at() >= m.deafUntil {
		m.push(m.directDelay(), modelEvent{from: serverAddr, dest: to, data: b})
	}
	h, err := wire.ParseHeader(b)
	o := m.observer
	if err != nil || o == nil {
		return
	}
	for _, a := range o.addrs {
		if a == to {
			m.reached(h)
		}
		if (a == to || o.spoofs && to == clientAddr) && o.relaying(m.at()) {
			m.push(o.down, modelEvent{from: serverAddr, dest: m.addr, data: b})
		}
	}
}

// reached records a violation if a datagram must not be sent to the observer.
func (m *model) reached(h wire.Header) {
	if h.Kind == wire.ChallengeKind {
		return
	}
	o, at := m.observer, m.at()
	m.stolen++
	switch {
	case m.moves == 0 && !m.gap:
		m.fail("kind %d reached the observer although the client never moved", h.Kind)
	case m.moves == 0:
	case !o.relays:
		m.fail("kind %d reached an observer who relays nothing", h.Kind)
	case at > min(o.stop, o.relayUntil)+time.Second:
		m.fail("kind %d reached the observer %v after he stopped", h.Kind, at-min(o.stop, o.relayUntil))
	case m.loss == 0 && m.deafUntil == 0 && o.up+o.down > 2*(m.delay+m.jitter):
		m.fail("kind %d reached an observer who is slower than the direct path", h.Kind)
	}
}

func (m *model) fail(format string, args ...any) {
	if m.violation == "" {
		m.violation = fmt.Sprintf("at %v: ", m.at()) + fmt.Sprintf(format, args...)
	}
}

// move changes the client's address. known is whether the client notices.
func (m *model) move(known bool) {
	m.moves++
	m.addr = withPort(movedAddr, uint16(5000+m.moves))
	m.movedAt, m.foundAt, m.namedAt = m.at(), 0, 0
	if known {
		m.client.Rebound(m.now)
	}
}

// run advances the time while both ends send payloads, and stops at a violation.
func (m *model) run(until time.Duration) {
	end := m.began.Add(until)
	var payload [8]byte
	nextSend := m.now
	for !m.now.After(end) && m.violation == "" {
		next := earliest(end.Add(1), nextSend)
		if len(m.events) > 0 {
			next = earliest(next, m.events[0].at)
		}
		for _, s := range []*Session{m.client, m.server} {
			if s.State() == Open {
				next = earliest(next, s.Next())
			}
		}
		if next.After(m.now) {
			m.now = next
		}
		for len(m.events) > 0 && !m.events[0].at.After(m.now) {
			e := m.events[0]
			m.events = m.events[1:]
			m.arrive(e)
		}
		if !m.now.Before(nextSend) {
			nextSend = m.now.Add(m.rate)
			binary.LittleEndian.PutUint64(payload[:], uint64(m.at()))
			_ = m.client.Send(time.Now(), payload[:])
			_ = m.server.Send(time.Now(), payload[:])
		}
		m.client.Advance(m.now)
		m.server.Advance(m.now)
		if m.client.TakeUnanswered() {
			m.move(true)
		}
		if m.client.State() != Open || m.server.State() != Open {
			m.fail("states %d and %d: %v, %v", m.client.State(), m.server.State(), m.client.Err(), m.server.Err())
		}
		if m.at()-m.heardDirect > 250*time.Millisecond {
			m.gap = true
		}
	}
}

func (m *model) arrive(e modelEvent) {
	if !e.toServer {
		if e.dest == m.addr {
			m.client.Input(m.now, e.from, e.data)
		}
		return
	}
	h, _ := wire.ParseHeader(e.data)
	before := m.server.Remote()
	payload, v := m.server.Input(m.now, e.from, e.data)
	if h.Kind == wire.ResponseKind && m.at()-e.sent > 3*time.Second {
		m.lateResponses++
	}
	if v == Payload {
		m.delivered[binary.LittleEndian.Uint64(payload)] = true
	}
	if m.server.Remote() == m.addr && m.foundAt == 0 {
		m.foundAt = m.at()
	}
	if m.server.Remote() == m.addr && before != m.addr {
		m.lastFound = m.at()
	}
	if !e.original {
		return
	}
	if v == WrongSession { // the listener finds no session for it
		m.fromServer(e.from, wire.AppendUnknown(nil, wire.Unknown{Echo: h}))
	}
	m.heardDirect = m.at()
	unknown := e.sent >= m.movedAt && (m.namedAt < m.movedAt || e.sent < m.namedAt) // nobody can tell yet
	if h.Kind == wire.DataKind && !h.Report && v != Payload && v != Duplicate && (m.movedAt == 0 || !unknown) {
		m.dropped[uint64(e.sent)] = fmt.Sprintf("the payload sent at %v from %v: verdict %d at %v, the server had %v", e.sent, e.from, v, m.at(), m.server.Remote())
	}
}

// schedule draws the observer's schedule. late is whether some copies arrive late.
func (m *model) schedule(late bool) {
	r := m.rng
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(r.Int64N(int64(hi-lo))) }
	o := &observer{
		addrs: []Path{otherAddr, {Addr: netip.MustParseAddrPort("198.51.100.10:6001")}}[:1+r.IntN(2)],
		start: between(0, 2*time.Second), copies: []float64{0.2, 0.5, 1}[r.IntN(3)], relays: r.IntN(3) > 0,
		late: between(0, 2*time.Second), hints: []float64{0, 0.1, 1}[r.IntN(3)],
	}
	o.stop = o.start + between(0, 4*time.Second)
	o.relayUntil = o.stop
	if r.IntN(2) == 0 {
		o.relayUntil = between(o.start, o.stop+1)
	}
	direct := float64(m.delay)
	o.up, o.down = time.Duration(direct*1.5*r.Float64()), time.Duration(direct*1.5*r.Float64())
	if d := o.up + o.down - 2*m.delay; d > 0 && d <= 2*m.jitter {
		o.down += 4 * m.jitter // otherwise neither path is the faster one
	}
	if !late {
		o.late = 0
	}
	m.observer = o
}

var onPathSchedules = flag.Int("schedules", 2500, "number of schedules of TestOnPathObserver")

// TestOnPathObserver runs random schedules of the observer against clients that keep their address
// and clients that change it. The rules are those of reached. Besides, each payload of the client
// is accepted, from the direct path or as a copy, and the server has the client's address within a
// second after the observer stopped.
func TestOnPathObserver(t *testing.T) {
	schedules := *onPathSchedules
	if testing.Short() {
		schedules = 100
	}
	const first = 1
	hijacked, moves := 0, 0
	for i := range schedules {
		seed := uint64(first + i)
		m := newModel(seed)
		m.schedule(m.rng.IntN(2) == 0)
		if m.rng.IntN(2) == 0 {
			m.loss = 0.05
		}
		stays := i%3 == 0
		if stays && m.rng.IntN(4) == 0 {
			m.deafUntil = time.Duration(m.rng.IntN(900)) * time.Millisecond
		}
		m.observer.spoofs = !stays && m.rng.IntN(3) == 0
		m.open(time.Duration(500+m.rng.IntN(1500)) * time.Millisecond)
		if !stays {
			m.move(m.rng.IntN(2) == 0)
		}
		m.run(modelRun)
		for sent, what := range m.dropped {
			if !m.delivered[sent] {
				m.fail("%s", what)
			}
		}
		if m.violation == "" && m.server.Remote() != m.addr && m.observer.stop < modelRun-time.Second {
			m.fail("the server has %v, the client is at %v", m.server.Remote(), m.addr)
		}
		if m.violation != "" {
			t.Fatalf("seed %d, stays %v, direct path %v±%v, loss %v, observer %+v, moved %v named %v:\n%s", seed, stays, m.delay, m.jitter, m.loss, *m.observer, m.movedAt, m.namedAt, m.violation)
		}
		moves += m.moves
		if n := m.server.Stats().PathMigrations; n > uint64(m.moves) {
			hijacked++
		}
	}
	t.Logf("%d schedules from seed %d: clients changed their address %d times, the observer had the downlink in %d", schedules, first, moves, hijacked)
	if hijacked == 0 {
		t.Error("the model's observer never gets anything, which he can while he is faster")
	}
}

// TestObservers changes the client's address, without its knowledge, while one of certain observers
// acts.
func TestObservers(t *testing.T) {
	const moved, stop, end = time.Second, 18 * time.Second, 20 * time.Second
	addrs := make([]Path, 12)
	for i := range addrs {
		addrs[i] = withPort(otherAddr, uint16(6000+i))
	}
	for name, c := range map[string]struct {
		observer observer
		loss     float64
		found    time.Duration // by when the server has the client's address
		share    float64       // of the server's datagrams that reach the observer at most
	}{
		"relays for long, then stops":         {observer{addrs: addrs[:1], copies: 1, relays: true, relayUntil: 16 * time.Second}, 0, 17 * time.Second, 1},
		"copies from the old address":         {observer{copies: 1, spoofs: true}, 0, moved + 4*time.Second, 0},
		"copies from many addresses":          {observer{addrs: addrs, copies: 1}, 0, moved + time.Second, 0},
		"relays slower, packet loss":          {observer{addrs: addrs[:1], copies: 1, relays: true, relayUntil: stop, up: 60 * time.Millisecond, down: 60 * time.Millisecond}, 0.05, moved + 2*time.Second, 0.02},
		"copies a second later":               {observer{addrs: addrs[:1], copies: 1, relays: true, relayUntil: stop, up: 1200 * time.Millisecond}, 0, moved + time.Second, 0},
		"forges hints that the session ended": {observer{addrs: addrs[:1], copies: 1, hints: 1}, 0.05, moved + time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(7)
			m.rate, m.delay, m.jitter, m.loss = time.Second/60, 40*time.Millisecond, 0, c.loss
			m.observer = &c.observer
			m.observer.stop = stop
			m.open(moved)
			sent := m.server.Stats().DatagramsSent
			m.move(false)
			m.run(end)
			if m.violation != "" {
				t.Fatal(m.violation)
			}
			if m.server.Remote() != m.addr || m.foundAt == 0 || m.lastFound > c.found {
				t.Errorf("the server has %v since %v, want %v by %v", m.server.Remote(), m.lastFound, m.addr, c.found)
			}
			if share := float64(m.stolen) / float64(m.server.Stats().DatagramsSent-sent); share > c.share {
				t.Errorf("%.3f of the server's datagrams reached the observer, want %v at most", share, c.share)
			}
		})
	}
}

// TestOldResponses verifies that responses to challenges of maxRounds ago have no effect.
func TestOldResponses(t *testing.T) {
	m := newModel(1)
	m.rate, m.delay, m.jitter = time.Second/60, 10*time.Millisecond, 0
	m.observer = &observer{addrs: []Path{otherAddr}, copies: 1, stop: time.Minute, relays: true, relayUntil: 300 * time.Millisecond}
	m.observer.delayResponses = 4 * time.Second
	m.client.useLongHeaders(m.now.Add(time.Minute))
	m.open(5 * time.Second)
	v := m.server.validation
	if v == nil || m.lateResponses == 0 {
		t.Fatalf("%d responses came late; validation %v", m.lateResponses, v)
	}
	for _, c := range v.candidates {
		if !c.responded.IsZero() {
			t.Errorf("a response was taken at %v", c.responded.Sub(m.began))
		}
	}
}

// TestGenuineMoves verifies that at 20 % loss 99 % of migrations complete within one second.
func TestGenuineMoves(t *testing.T) {
	for _, known := range []bool{true, false} {
		const runs = 1000
		slow := 0
		for i := range runs {
			m := newModel(uint64(50_000 + i))
			m.loss = 0.2
			m.open(time.Second)
			m.move(known)
			m.run(2 * time.Second)
			if m.violation != "" {
				t.Fatalf("seed %d: %s", 50_000+i, m.violation)
			}
			if m.foundAt == 0 || m.foundAt > m.movedAt+time.Second {
				slow++
			}
		}
		t.Logf("the client knows: %v: %d of %d moves took more than a second", known, slow, runs)
		if slow > runs/100 {
			t.Errorf("the client knows: %v: %d of %d moves took more than a second, want 1 %% at most", known, slow, runs)
		}
	}
}
