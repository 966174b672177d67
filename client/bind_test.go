package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// bind binds an RPC whose arguments are a T.
func bind[T any](t *testing.T, conn *client.Conn, rpc string, cfg client.BindConfig) error {
	_, err := client.Bind[T](t.Context(), conn, rpc, cfg)
	return err
}

// handles registers an RPC whose arguments are a T.
func handles[T any](rpc string) func(*ds.Server) error {
	return func(s *ds.Server) error { return ds.Handle(s, rpc, func(*ds.Player, ds.Frame[T]) {}) }
}

type moveLike struct {
	Location schema.Vec3 `uplink:"resolution=1"`
	Buttons  uint16
}

type otherButtons struct {
	Location schema.Vec3 `uplink:"resolution=1"`
	Buttons  uint32
}

type narrow struct {
	Location schema.Vec3 `uplink:"resolution=1"`
	Buttons  uint8
}

type otherNames struct {
	Place schema.Vec3 `uplink:"resolution=1"`
}

// TestSchemaMismatch checks that the error names the field and its descriptions at both ends.
func TestSchemaMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		uplinktest.Serve(t, network, ds.Config{}, handles[moveLike]("Move"))
		conn := uplinktest.Dial(t, network, client.Config{})
		for _, c := range []struct {
			err  error
			want client.FieldError
		}{
			{bind[otherButtons](t, conn, "Move", client.BindConfig{}), client.FieldError{Field: "Buttons", Here: "Buttons uint width=32", There: "Buttons uint width=16"}},
			{bind[otherNames](t, conn, "Move", client.BindConfig{}), client.FieldError{Field: "Place", Here: "Place vec3 resolution=1"}},
		} {
			if e, ok := errors.AsType[*client.FieldError](c.err); !ok || e.Field != c.want.Field || e.Here != c.want.Here || e.There != c.want.There {
				t.Fatalf("got %v, want %+v", c.err, c.want)
			}
			for _, s := range []string{"Move", c.want.Field, c.want.Here, c.want.There} {
				if !strings.Contains(c.err.Error(), s) {
					t.Errorf("%q does not contain %q", c.err, s)
				}
			}
		}
		uplinktest.Must(t, bind[moveLike](t, conn, "Move", client.BindConfig{}))
		if n := len(conn.Stats().RPCs); n != 1 {
			t.Errorf("%d RPCs are counted, want the one that is bound", n)
		}
	})
}

// TestUnknownRPC checks that the error lists as many of the server's RPCs as fit.
func TestUnknownRPC(t *testing.T) {
	for _, c := range []struct{ known, listed int }{{0, 0}, {1, 1}, {200, 50}} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 2)
			uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) (err error) {
				for i := range c.known {
					err = errors.Join(err, handles[moveLike](fmt.Sprintf("ServerMoveNumber%03d", i))(s))
				}
				return err
			})
			err := bind[moveLike](t, uplinktest.Dial(t, network, client.Config{}), "ServerJump", client.BindConfig{})
			if !errors.Is(err, client.ErrUnknownRPC) || !strings.Contains(err.Error(), "ServerJump") {
				t.Fatalf("%d known: got %v", c.known, err)
			}
			_, list, _ := strings.Cut(err.Error(), "it has ")
			n := strings.Count(list, "ServerMoveNumber")
			if n < c.listed || c.known > 0 && !strings.HasPrefix(list, "ServerMoveNumber000") {
				t.Errorf("%d known: %d listed: %v", c.known, n, err)
			}
			if n < c.known && !strings.HasSuffix(list, "...") {
				t.Errorf("%v does not show that there are more", err)
			}
		})
	}
}

// TestBindTimeout gets no answer within BindTimeout or the deadline of the context, then late
// answers, then one in time.
func TestBindTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMatch(t, 0, 3, ds.Config{})
		m.conn = uplinktest.Dial(t, m.network, client.Config{Transport: client.Transport{BindTimeout: 2 * time.Second}})
		settle(100 * ms)
		slow := newLink(0)
		slow.Delay = 1500 * ms
		m.setLinks(newLink(1))
		for _, timeout := range []time.Duration{2 * time.Second, 300 * ms, 7 * time.Second, 2 * time.Second} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if timeout != 2*time.Second {
				ctx, cancel = context.WithTimeout(ctx, timeout)
			}
			start := time.Now()
			_, err := client.Bind[uplinktest.Move](ctx, m.conn, "Move", client.BindConfig{})
			cancel()
			if elapsed := time.Since(start); !errors.Is(err, client.ErrBindTimeout) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Move") || elapsed != timeout {
				t.Errorf("%v after %v, want %v", err, elapsed, timeout)
			}
			m.setLinks(slow)
		}
		settle(3 * time.Second)
		m.setLinks(newLink(0))
		m.bindAndSend()
		if st := m.conn.Stats(); len(st.RPCs) != 1 || st.Malformed != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// bindAndSend binds Move and makes the first call, which must arrive.
func (m *match) bindAndSend() {
	m.t.Helper()
	m.move = uplinktest.Bind(m.t, m.conn, "Move")
	m.send()
	settle(time.Second)
	if n := m.journal.Only().Frames(); n != 1 {
		m.t.Errorf("%d frames, want 1", n)
	}
}

// TestBindTwice binds an RPC again: a connection has one binding of it. The first stream works on.
func TestBindTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0, 4, client.Config{})
		m.send()
		for _, cfg := range []client.BindConfig{{}, {Reliable: true}, {RateHz: 30}} {
			err := bind[moveLike](t, m.conn, "Move", cfg)
			if err == nil || !strings.Contains(err.Error(), "client: bind Move: it is bound already") {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
		m.send()
		settle(time.Second)
		if n := m.journal.Only().Frames(); n != 2 || len(m.conn.Stats().RPCs) != 1 {
			t.Errorf("%d frames, %+v", n, m.conn.Stats().RPCs)
		}
	})
}

// TestBindAgain binds an RPC whose first request the server granted, but without an answer in time.
// The same request is answered again. Another one is refused, since the server has bound the RPC.
func TestBindAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMatch(t, 0, 14, ds.Config{})
		m.conn = uplinktest.Dial(t, m.network, client.Config{Transport: client.Transport{BindTimeout: time.Second}})
		settle(100 * ms)
		uplinktest.Must(t, m.network.Set(newLink(0), newLink(1)))
		if err := bind[uplinktest.Move](t, m.conn, "Move", client.BindConfig{}); !errors.Is(err, client.ErrBindTimeout) {
			t.Fatal(err)
		}
		m.setLinks(newLink(0))
		err := bind[uplinktest.Move](t, m.conn, "Move", client.BindConfig{RateHz: 30})
		if err == nil || !strings.Contains(err.Error(), "Move is bound already, as number 0") {
			t.Errorf("another rate: %v", err)
		}
		m.bindAndSend()
	})
}

// TestServerChanges restarts the server with another schema, without the RPC, and as it was.
func TestServerChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 5)
		srv := uplinktest.Serve(t, network, ds.Config{}, handles[moveLike]("Move"))
		s, err := client.Bind[moveLike](t.Context(), uplinktest.Dial(t, network, client.Config{}), "Move", client.BindConfig{})
		uplinktest.Must(t, err)
		uplinktest.Must(t, uplinktest.Sent(s.Send(&moveLike{})))
		restart := func(setup func(*ds.Server) error) error {
			uplinktest.Must(t, srv.Close())
			srv = uplinktest.Serve(t, network, ds.Config{}, setup)
			settle(5 * time.Second)
			return uplinktest.Sent(s.Send(&moveLike{}))
		}
		err = restart(handles[narrow]("Move"))
		if e, ok := errors.AsType[*client.FieldError](err); !ok || e.Field != "Buttons" {
			t.Errorf("another schema: %v", err)
		}
		if err := restart(func(*ds.Server) error { return nil }); !errors.Is(err, client.ErrUnknownRPC) {
			t.Errorf("without the RPC: %v", err)
		}
		uplinktest.Must(t, restart(handles[moveLike]("Move")))
	})
}

// TestBindWhileReconnecting waits for the new session; Close and the context end the waiting.
func TestBindWhileReconnecting(t *testing.T) {
	for want, end := range map[error]func(*match, context.CancelFunc){
		nil:              func(m *match, _ context.CancelFunc) { m.serve(ds.Config{}) },
		net.ErrClosed:    func(m *match, _ context.CancelFunc) { uplinktest.Must(m.t, m.conn.Close()) },
		context.Canceled: func(_ *match, cancel context.CancelFunc) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			m := dialMatch(t, 0, 6, client.Config{})
			uplinktest.Must(t, m.srv.Close())
			settle(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			bound := make(chan error)
			go func() {
				_, err := client.Bind[uplinktest.Move](ctx, m.conn, "Turn", client.BindConfig{})
				bound <- err
			}()
			settle(time.Second)
			end(m, cancel)
			if err := <-bound; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

// TestInvalidBind checks that errors name the invalid argument.
func TestInvalidBind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 8)
		uplinktest.Serve(t, network, ds.Config{}, handles[uplinktest.Move]("Move"))
		conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive}})
		rle := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Codec: rpcdelta.RLE}})
		bindWide := func(cfg client.BindConfig) error {
			_, err := client.BindSchema(t.Context(), conn, wideSchema(t), cfg)
			return err
		}
		type noResolution struct{ Speed float64 }
		type unsupported struct{ Updates chan int }
		type misspelled struct {
			Speed float64 `uplink:"stepsize=1"`
		}
		type empty struct{}
		for want, err := range map[string]error{
			"Speed":        bind[noResolution](t, conn, "Move", client.BindConfig{}),
			"Updates":      bind[unsupported](t, conn, "Move", client.BindConfig{}),
			"stepsize":     bind[misspelled](t, conn, "Move", client.BindConfig{}),
			"no fields":    bind[empty](t, conn, "Move", client.BindConfig{}),
			"struct":       bind[int](t, conn, "Move", client.BindConfig{}),
			"name":         bind[moveLike](t, conn, "", client.BindConfig{}),
			"rate":         bind[moveLike](t, conn, "Move", client.BindConfig{RateHz: -1}),
			"description":  bindWide(client.BindConfig{}),
			"RateHz is 30": bindWide(client.BindConfig{RateHz: 30}),
			"codec rle":    bind[uplinktest.Move](t, rle, "Move", client.BindConfig{Delay: uplinktest.Wait(1, 60)}),
		} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "client: ") {
				t.Errorf("got %v, want an error that contains %q", err, want)
			}
		}
		if n := len(conn.Stats().RPCs); n != 0 {
			t.Errorf("%d RPCs are counted", n)
		}
		uplinktest.Must(t, errors.Join(bind[uplinktest.Move](t, rle, "Move", client.BindConfig{}), bind[uplinktest.Move](t, conn, "Move", client.BindConfig{Reliable: true})))
	})
}

// wideSchema returns a schema with more fields than fit in a bind request.
func wideSchema(t *testing.T) *schema.Schema {
	t.Helper()
	var fields []schema.Field
	for i := range schema.MaxFields {
		fields = append(fields, schema.Field{Name: fmt.Sprint("F", i), Kind: schema.KindBool})
	}
	s, err := schema.New(strings.Repeat("Move", 200), 60, fields)
	uplinktest.Must(t, err)
	return s
}

// TestRefusedBinds is refused more often than there are RPC numbers, then over a slow link, where
// several requests are sent before the first answer: late answers do not count for the next
// binding.
func TestRefusedBinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMatch(t, 0, 9, ds.Config{})
		m.conn = uplinktest.Dial(t, m.network, client.Config{})
		slow := newLink(0)
		slow.Delay = 700 * ms
		refuse := func() {
			err := bind[moveLike](t, m.conn, "Jump", client.BindConfig{})
			if !errors.Is(err, client.ErrUnknownRPC) {
				t.Fatal(err)
			}
		}
		for range 300 {
			refuse()
		}
		m.setLinks(slow)
		refuse()
		uplinktest.Bind(t, m.conn, "Turn")
		refuse()
		m.bindAndSend()
	})
}
