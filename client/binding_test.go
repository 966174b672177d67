package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLinkTo returns a transport connection to a server that does nothing.
func newLinkTo(t testing.TB, addr string, network transport.Network) *endpoint.Conn {
	t.Helper()
	l, err := endpoint.Listen(addr, endpoint.Config{Network: network})
	noError(t, err)
	go func() { _ = l.Serve(context.Background(), ignore.Handler{}) }()
	t.Cleanup(func() { _ = l.Close() })
	link, err := endpoint.Dial(t.Context(), l.Addr().String(), endpoint.Config{Network: network}, ignore.Handler{})
	noError(t, err)
	t.Cleanup(func() { _ = link.Close() })
	return link
}

// newTestConn returns a connection with two bindings whose link does nothing: number 0 is bound,
// number 1 waits for its answer.
func newTestConn(t testing.TB) *Conn {
	t.Helper()
	cfg, err := Config{}.withDefaults()
	noError(t, err)
	c := newConn(cfg, "")
	c.current = newTestLink(c)
	c.current.used = true
	for _, rpc := range []string{"Move", "Turn"} {
		typ, err := schema.New(rpc, 60, []schema.Field{{Name: "Buttons", Kind: schema.KindBits, Width: 8}})
		noError(t, err)
		_, err = c.addBinding(typ, BindConfig{})
		noError(t, err)
	}
	c.bindings[0].at.handleAnswer(&message.BindAnswer{Ring: 64, Prior: prior.Generic().Hash()})
	if c.bindings[0].at.enc == nil {
		t.Fatal("RPC 0 is not bound")
	}
	return c
}

// newTestLink returns a link that does nothing.
func newTestLink(c *Conn) *link {
	l := newLink(c, "")
	l.use(new(endpoint.Conn))
	return l
}

// use replaces the transport connection.
func (l *link) use(own *endpoint.Conn) {
	l.own, l.worlds = own, l.subscriptions.Open(own)
	l.out.worlds = l.worlds
}

// TestSendOverDyingLink sends when the link is closed, but the connection does not know yet: the
// error is temporary.
func TestSendOverDyingLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		noError(t, err)
		link := newLinkTo(t, "127.0.0.1:7777", network)
		noError(t, link.Close())
		c := newTestConn(t)
		b := c.bindings[0]
		c.current.use(link)
		for _, b.reliable = range []bool{false, true} {
			before := b.stats
			if _, err := b.send(b.frame); !errors.Is(err, ErrReconnecting) {
				t.Errorf("reliable %v: got %v, want ErrReconnecting", b.reliable, err)
			}
			if b.stats.Frames() != before.Frames() || b.stats.Reconnecting != before.Reconnecting+1 {
				t.Errorf("counted %+v", b.stats)
			}
		}
		close(c.closed)
		if _, err := b.send(b.frame); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestLostBeforeInstall ends a session before its link is installed.
func TestLostBeforeInstall(t *testing.T) {
	c := newTestConn(t)
	c.current = nil
	lost, l := newTestLink(c), newTestLink(c)
	lost.lost = errors.New("too late")
	if err := c.install(lost); !errors.Is(err, lost.lost) || c.current != nil {
		t.Errorf("installed: %v", err)
	}
	if err := c.install(l); err != nil || c.current != l || c.bindings[1].at.link != l {
		t.Errorf("not installed: %v", err)
	}
	close(c.closed)
	if err := c.install(newTestLink(c)); !errors.Is(err, net.ErrClosed) || c.current != l {
		t.Errorf("installed after Close: %v", err)
	}
}

// TestInvalidAckBeforeValidOne puts the ack of an RPC that is not bound before a valid one.
func TestInvalidAckBeforeValidOne(t *testing.T) {
	c := newTestConn(t)
	b := c.bindings[0]
	payload, _, err := b.at.enc.AppendFrame(nil, b.frame)
	noError(t, err)
	dec, err := rpcdelta.NewDecoder(b.schema, rpcdelta.DecoderConfig{})
	noError(t, err)
	_, err = dec.Decode(payload)
	noError(t, err)
	unbound := rpcdelta.Ack{RPC: 9}
	if err := c.current.acks(dec.AppendAck(unbound.Append(nil))); err == nil {
		t.Error("the ack of an RPC that is not bound is no error")
	}
	if _, info, err := b.at.enc.AppendFrame(nil, b.frame); err != nil || info.Kind != rpcdelta.Delta {
		t.Errorf("%+v, %v: the valid ack was dropped", info, err)
	}
}

// TestOtherBuiltinPrior answers with a built-in prior that this version does not have, which would
// cause a desync again and again.
func TestOtherBuiltinPrior(t *testing.T) {
	b := newTestConn(t).bindings[1]
	generic := prior.Generic()
	if p, fallback, err := b.agreed(&message.BindAnswer{Prior: generic.Hash()}); p != generic || fallback || err != nil {
		t.Errorf("%v, %v, %v", p, fallback, err)
	}
	_, _, err := b.agreed(&message.BindAnswer{Prior: 0xabc})
	if err == nil || !strings.Contains(err.Error(), "bind Turn: the server's built-in prior is 0000000000000abc, this one's "+generic.String()) {
		t.Errorf("%v", err)
	}
}

// TestPace checks that a report is used for two seconds, and that counts add up when they wrap
// around and over reconnections.
func TestPace(t *testing.T) {
	const ms = time.Millisecond
	var p pace
	var total Pace
	at := func(now time.Time) Pace {
		got := total
		got.Rate = p.rate(now)
		return got
	}
	now := time.Now()
	if got := at(now); got != (Pace{Rate: 1}) {
		t.Errorf("before any report: %+v", got)
	}
	for _, missing := range []uint16{30000, 60000} {
		p.report(now, &message.Buffered{Slack: 20 * ms, Target: 50 * ms, Rate: 1, Missing: missing, Late: 3}, &total)
	}
	now = now.Add(250 * ms)
	p.report(now, &message.Buffered{Slack: 20 * ms, Target: 50 * ms, Rate: 0.9, Missing: 1, Late: 3}, &total)
	for _, stale := range []message.Buffered{{Missing: 60000, Late: 3}, {Missing: 1, Late: 2}, {Missing: 0, Late: 3}} {
		p.report(now, &stale, &total) // it arrives after a newer one
	}
	var pacer jitter.Pacer
	pacer.Report(0, 20*ms, 50*ms, 0.9)
	want := Pace{Rate: pacer.Rate(0), Slack: 20 * ms, Target: 50 * ms, Missing: 65537, Late: 3}
	if got := at(now); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if d := (Pace{Rate: 1.01}).Interval(101 * ms); d != 100*ms {
		t.Errorf("an interval is %v", d)
	}
	if got := at(now.Add(3 * time.Second)); got.Rate != 1 {
		t.Errorf("long after: %+v", got)
	}
	p = pace{} // of another session
	p.report(now, &message.Buffered{Slack: -time.Second, Target: 50 * ms, Rate: 1, Missing: 2, Late: 2}, &total)
	if got := at(now); got.Missing != 65539 || got.Late != 5 || got.Rate != 1+jitter.MaxPace {
		t.Errorf("over another connection: %+v", got)
	}
	if d := (Pace{}).Interval(time.Second); d != time.Second {
		t.Errorf("without a pace an interval is %v", d)
	}
}
