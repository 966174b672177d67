package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// deaf is a transport.Handler that does nothing.
type deaf struct{}

func (deaf) Opened(*transport.Conn)                      {}
func (deaf) Closed(*transport.Conn, error)               {}
func (deaf) Datagram(*transport.Conn, []byte, time.Time) {}
func (deaf) Message(*transport.Conn, []byte, time.Time)  {}
func (deaf) Tick(time.Time)                              {}

// newTestConn makes a connection with two streams and no link: number 0 is
// bound, number 1 waits for its answer.
func newTestConn(t testing.TB) *Conn {
	t.Helper()
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(cfg, "")
	move, err := schema.New("Move", 60, []schema.Field{{Name: "Buttons", Kind: schema.KindBits, Width: 8}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := newStream(c, move, BindConfig{})
		if err != nil {
			t.Fatal(err)
		}
		s.link = new(transport.Conn)
	}
	c.streams[0].answered(&control.BindAnswer{Ring: 64, Prior: prior.Generic().Hash()})
	if c.streams[0].enc == nil {
		t.Fatal("not bound")
	}
	return c
}

// TestSendOverDyingLink sends when the link is over but nobody has been told
// yet: that is no reason to give up.
func TestSendOverDyingLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := transport.Config{Network: network}
		l, err := transport.Listen("127.0.0.1:7777", cfg)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = l.Serve(context.Background(), deaf{}) }()
		defer l.Close()
		link, err := transport.Dial(t.Context(), "127.0.0.1:7777", cfg, deaf{})
		if err != nil {
			t.Fatal(err)
		}
		_ = link.Close()
		c := newTestConn(t)
		s := c.streams[0]
		s.link = link
		for _, s.reliable = range []bool{false, true} {
			before := s.stats
			if err := s.sendFrame(s.frame); !errors.Is(err, ErrReconnecting) {
				t.Errorf("reliable %v: got %v, want ErrReconnecting", s.reliable, err)
			}
			if s.stats.Frames() != before.Frames() || s.stats.Reconnecting != before.Reconnecting+1 {
				t.Errorf("counted %+v", s.stats)
			}
		}
		close(c.closed)
		if err := s.sendFrame(s.frame); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestLostAtOnce has a link end before it was installed.
func TestLostAtOnce(t *testing.T) {
	c := newTestConn(t)
	link := new(transport.Conn)
	e := &events{Conn: c, closed: errors.New("too late")}
	if err := c.install(e, link); !errors.Is(err, e.closed) || c.current() != nil {
		t.Errorf("installed: %v", err)
	}
	if err := c.install(&events{Conn: c}, link); err != nil || c.current() != link || c.streams[1].link != link {
		t.Errorf("not installed: %v", err)
	}
	close(c.closed)
	if err := c.install(&events{Conn: c}, new(transport.Conn)); !errors.Is(err, net.ErrClosed) || c.current() != link {
		t.Errorf("installed after Close: %v", err)
	}
}

// FuzzDatagram throws what a hostile server may send at a connection.
func FuzzDatagram(f *testing.F) {
	ack := rpcdelta.Ack{Seq: 3, Window: 5, Len: 3, Whole: true}
	f.Add(ack.Append([]byte{byte(control.Acks)}), []byte{byte(control.Acks)})
	f.Add([]byte{byte(control.Leaving)}, []byte{byte(control.Leaving)})
	none := rpcdelta.Ack{None: true, ResetReason: rpcdelta.ErrDesync}
	f.Add(none.Append([]byte{byte(control.Acks)}), none.Append(ack.Append([]byte{byte(control.Acks)})))
	for _, a := range []control.BindAnswer{
		{RPC: 1, Ring: 2, Prior: prior.Generic().Hash()},
		{RPC: 1, Ring: 2, Prior: 7},
		{RPC: 1, Ring: -1},
		{RPC: 1, Reason: control.ReasonSchema, Field: -7, Theirs: "Buttons bits"},
		{RPC: 200},
		{RPC: 1, Reason: control.ReasonUnknown, Known: []string{"a", "b"}},
		{RPC: 1, Reason: 99},
	} {
		b, err := a.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		c := newTestConn(t)
		e := &events{Conn: c, wake: func(time.Time) {}}
		bound, asking := c.streams[0], c.streams[1]
		var buf []byte
		for range 10 {
			var err error
			if buf, _, err = bound.enc.AppendFrame(buf[:0], bound.frame); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range [][]byte{first, second, first} {
			e.Datagram(nil, b, time.Time{})
			if _, _, err := bound.enc.AppendFrame(buf[:0], bound.frame); err != nil {
				t.Fatal(err)
			}
		}
		if asking.enc != nil && asking.refused != nil {
			t.Error("bound and refused")
		}
		if asking.refused != nil && len(asking.refused.Error()) > 2000+len(first)+len(second) {
			t.Errorf("an error of %d bytes", len(asking.refused.Error()))
		}
		if n := c.Stats().Malformed; n > 3 {
			t.Errorf("%d of 3 messages are malformed", n)
		}
	})
}
