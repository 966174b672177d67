package session

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
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

// end is one end of a pair, with what the layer above would have got.
type end struct {
	name     string
	s        *Session
	payloads []string
	messages []string
	verdicts []Verdict
	// cut drops what is sent to this end.
	cut bool
}

type flight struct {
	at   time.Time
	to   *end
	data []byte
}

// pair is a client and the session that a listener makes for its hello, 20 ms apart. It runs in the
// virtual time of a synctest bubble, which is KCP's too.
type pair struct {
	t              *testing.T
	client, server *end
	flying         []flight
}

// inBubble runs a test with a pair whose client has sent its hello.
func inBubble(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{t: t, client: &end{name: "client"}, server: &end{name: "server"}}
		p.client.s = NewClient(time.Now(), testNonce, p.config(p.server))
		f(t, p)
	})
}

// config makes an end that sends to the other.
func (p *pair) config(to *end) Config {
	return Config{Timeout: testTimeout, Output: func(b []byte) {
		p.flying = append(p.flying, flight{time.Now().Add(oneWay), to, bytes.Clone(b)})
	}}
}

// run lets time pass: datagrams arrive and timers fire when they are due.
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

// next returns when something happens, at the latest at until.
func (p *pair) next(until time.Time) time.Time {
	if len(p.flying) > 0 {
		until = earlier(until, p.flying[0].at)
	}
	for _, e := range []*end{p.client, p.server} {
		if e.s != nil && e.s.State() != Closed {
			until = earlier(until, e.s.Next())
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

// arrive gives a datagram to its end, as a listener or a dialer would.
func (p *pair) arrive(now time.Time, f flight) {
	e := f.to
	h, body, err := wire.ParseHeader(f.data)
	if err != nil {
		p.t.Fatal(err)
	}
	switch {
	case e.cut:
		return
	case h.Kind == wire.HelloKind && e.s != nil:
		e.s.Hello()
		return
	case h.Kind == wire.HelloKind:
		hello, err := wire.ParseHello(body)
		if err != nil {
			p.t.Fatal(err)
		}
		e.s = NewServer(now, hello.Nonce, testID, p.config(p.client))
		return
	case e.s == nil:
		return
	}
	e.input(now, f.data)
}

func (e *end) input(now time.Time, b []byte) Verdict {
	payload, v := e.s.Input(now, b)
	e.verdicts = append(e.verdicts, v)
	if v == Payload {
		e.payloads = append(e.payloads, string(payload))
	}
	for {
		msg, ok := e.s.Receive(now)
		if !ok {
			return v
		}
		e.messages = append(e.messages, string(msg))
	}
}

// connect runs until both ends are open and know the round trip.
func (p *pair) connect() {
	p.t.Helper()
	p.run(5 * oneWay)
	if p.client.s.State() != Open || p.server.s.State() != Open {
		p.t.Fatalf("states %d and %d, want %d", p.client.s.State(), p.server.s.State(), Open)
	}
}

func (p *pair) send(e *end, payload string) {
	p.t.Helper()
	if err := e.s.Send([]byte(payload)); err != nil {
		p.t.Fatal(err)
	}
}
