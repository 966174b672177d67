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
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
)

// TestBindOverBadLinks loses requests and answers.
func TestBindOverBadLinks(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0.3, 100+seed)
			journal := uplinktest.NewJournal(t, 1)
			serve(t, network, journal)
			conn := uplinktest.Dial(t, network, client.Config{})
			for range 3 {
				uplinktest.Bind(t, conn, "Move")
			}
			if st := conn.Stats(); len(st.RPCs) != 3 || st.Malformed != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// moveLike differs from Move in the fields that a test names.
type moveLike struct {
	Location schema.Vec3 `uplink:"resolution=1"`
	Buttons  uint16
}

type longer struct {
	moveLike
	Extra bool
}

type otherButtons struct {
	Location schema.Vec3 `uplink:"resolution=1"`
	Buttons  uint32
}

type shorter struct {
	Location schema.Vec3 `uplink:"resolution=1"`
}

// TestSchemaMismatch names the field and what both sides have there.
func TestSchemaMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[moveLike]) {})
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		mismatch(t, conn, client.Bind[otherButtons], "Buttons", "Buttons uint width=32", "Buttons uint width=16")
		mismatch(t, conn, client.Bind[shorter], "Buttons", "", "Buttons uint width=16")
		mismatch(t, conn, client.Bind[longer], "Extra", "Extra bool", "")
		if _, err := client.Bind[moveLike](t.Context(), conn, "Move", client.BindConfig{}); err != nil {
			t.Errorf("the same schema: %v", err)
		}
		if n := len(conn.Stats().RPCs); n != 1 {
			t.Errorf("%d RPCs are counted, want the one that is bound", n)
		}
	})
}

func mismatch[T any](t *testing.T, conn *client.Conn, bind func(context.Context, *client.Conn, string, client.BindConfig) (*client.Stream[T], error), field, here, there string) {
	t.Helper()
	_, err := bind(t.Context(), conn, "Move", client.BindConfig{})
	var e *client.SchemaError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a SchemaError", err)
	}
	if *e != (client.SchemaError{RPC: "Move", Field: field, Here: here, There: there}) {
		t.Errorf("got %+v", *e)
	}
	for _, s := range []string{"Move", field, here, there} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not mention %q", err, s)
		}
	}
}

// TestUnknownRPC lists the known ones, as many as fit.
func TestUnknownRPC(t *testing.T) {
	for _, c := range []struct{ known, listed int }{{0, 0}, {1, 1}, {30, 30}, {200, 50}} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 2)
			uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
				for i := range c.known {
					if err := ds.Handle(s, fmt.Sprintf("ServerMoveNumber%03d", i), func(*ds.Player, ds.Frame[moveLike]) {}); err != nil {
						return err
					}
				}
				return nil
			})
			_, err := client.Bind[moveLike](t.Context(), uplinktest.Dial(t, network, client.Config{}), "ServerJump", client.BindConfig{})
			var e *client.UnknownRPCError
			if !errors.As(err, &e) || e.RPC != "ServerJump" || !strings.Contains(err.Error(), "ServerJump") {
				t.Fatalf("%d known: got %v", c.known, err)
			}
			if len(e.Known) < c.listed || c.known > 0 && (e.Known[0] != "ServerMoveNumber000" || !strings.Contains(err.Error(), e.Known[0])) {
				t.Errorf("%d known: %d listed: %v", c.known, len(e.Known), err)
			}
			if cut := len(e.Known) < c.known; cut && e.Known[len(e.Known)-1] != "..." {
				t.Errorf("%v does not show that there are more", err)
			}
		})
	}
}

// TestBindTimeout has nobody answer, then answers come too late, then in time.
func TestBindTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 3)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		conn := uplinktest.Dial(t, network, client.Config{BindTimeout: 2 * time.Second})
		settle(100 * ms)
		dead, slow := newLink(1), newLink(0)
		slow.Delay = 1500 * ms
		for _, link := range []struct{ name string }{{"dead"}, {"slow"}} {
			if link.name == "dead" {
				uplinktest.Must(t, network.Set(dead, dead))
			} else {
				uplinktest.Must(t, network.Set(slow, slow))
			}
			start := time.Now()
			_, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{})
			if took := time.Since(start); !errors.Is(err, client.ErrBindTimeout) || !strings.Contains(err.Error(), "Move") || took != 2*time.Second {
				t.Errorf("%s link: %v after %v", link.name, err, took)
			}
		}
		settle(3 * time.Second)
		uplinktest.Must(t, network.Set(newLink(0), newLink(0)))
		s := uplinktest.Bind(t, conn, "Move")
		m := uplinktest.MoveAt(1, 0)
		uplinktest.Must(t, s.Send(&m))
		settle(time.Second)
		if n := journal.Only().Frames(); n != 1 {
			t.Errorf("%d frames, want 1", n)
		}
		if st := conn.Stats(); len(st.RPCs) != 1 || st.Malformed != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestBindTwice binds one RPC several times over a connection, as for the two
// players of a split screen: each stream has its own numbers. There is a limit.
func TestBindTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 4)
		count := map[uint64]int{}
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[moveLike]) { count[f.Seq]++ })
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		const most = 8
		for i := range most {
			s, err := client.Bind[moveLike](t.Context(), conn, "Move", client.BindConfig{})
			uplinktest.Must(t, err)
			for range i + 1 {
				uplinktest.Must(t, s.Send(&moveLike{Buttons: uint16(i)}))
			}
		}
		if _, err := client.Bind[moveLike](t.Context(), conn, "Move", client.BindConfig{}); err == nil || !strings.Contains(err.Error(), "too often") {
			t.Errorf("the ninth time: %v", err)
		}
		settle(time.Second)
		for seq := range uint64(most) {
			if count[seq] != most-int(seq) {
				t.Errorf("frame %d came %d times, want %d", seq, count[seq], most-seq)
			}
		}
	})
}

// TestServerChanges restarts the server with another schema, without the RPC,
// and as it was.
func TestServerChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 5)
		same := func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[moveLike]) {})
		}
		srv := uplinktest.Serve(t, network, ds.Config{}, same)
		s, err := client.Bind[moveLike](t.Context(), uplinktest.Dial(t, network, client.Config{}), "Move", client.BindConfig{})
		uplinktest.Must(t, err)
		uplinktest.Must(t, s.Send(&moveLike{}))
		restart := func(setup func(*ds.Server) error) error {
			uplinktest.Must(t, srv.Close())
			srv = uplinktest.Serve(t, network, ds.Config{}, setup)
			settle(5 * time.Second)
			return s.Send(&moveLike{})
		}
		var schemaErr *client.SchemaError
		if err := restart(func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[otherButtons]) {})
		}); !errors.As(err, &schemaErr) || schemaErr.Field != "Buttons" {
			t.Errorf("another schema: %v", err)
		}
		var unknown *client.UnknownRPCError
		if err := restart(func(*ds.Server) error { return nil }); !errors.As(err, &unknown) {
			t.Errorf("without the RPC: %v", err)
		}
		if err := restart(same); err != nil {
			t.Errorf("as it was: %v", err)
		}
	})
}

// TestBindWhileReconnecting waits for the new connection.
func TestBindWhileReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 6)
		srv := serve(t, network, uplinktest.NewJournal(t, 1))
		conn := uplinktest.Dial(t, network, client.Config{})
		uplinktest.Must(t, srv.Close())
		settle(time.Second)
		bound := make(chan error)
		go func() {
			_, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{})
			bound <- err
		}()
		settle(time.Second)
		serve(t, network, uplinktest.NewJournal(t, 1))
		uplinktest.Must(t, <-bound)
	})
}

// TestCloseWhileBinding ends Bind.
func TestCloseWhileBinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 7)
		serve(t, network, uplinktest.NewJournal(t, 1))
		conn := uplinktest.Dial(t, network, client.Config{})
		uplinktest.Must(t, network.Set(newLink(1), newLink(1)))
		bound := make(chan error)
		go func() {
			_, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{})
			bound <- err
		}()
		settle(time.Second)
		uplinktest.Must(t, conn.Close())
		if err := <-bound; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestBadBind names what is wrong before anything is sent.
func TestBadBind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 8)
		serve(t, network, uplinktest.NewJournal(t, 1))
		conn := uplinktest.Dial(t, network, client.Config{})
		type noResolution struct{ Speed float64 }
		type unsupported struct{ Updates chan int }
		type misspelled struct {
			Speed float64 `uplink:"stepsize=1"`
		}
		type empty struct{}
		for want, bind := range map[string]func() error{
			"Speed": func() error {
				_, err := client.Bind[noResolution](t.Context(), conn, "Move", client.BindConfig{})
				return err
			},
			"Updates": func() error {
				_, err := client.Bind[unsupported](t.Context(), conn, "Move", client.BindConfig{})
				return err
			},
			"stepsize": func() error {
				_, err := client.Bind[misspelled](t.Context(), conn, "Move", client.BindConfig{})
				return err
			},
			"no fields": func() error { _, err := client.Bind[empty](t.Context(), conn, "Move", client.BindConfig{}); return err },
			"struct":    func() error { _, err := client.Bind[int](t.Context(), conn, "Move", client.BindConfig{}); return err },
			"name":      func() error { _, err := client.Bind[moveLike](t.Context(), conn, "", client.BindConfig{}); return err },
			"rate": func() error {
				_, err := client.Bind[moveLike](t.Context(), conn, "Move", client.BindConfig{RateHz: -1})
				return err
			},
			"description": func() error {
				_, err := client.BindSchema(t.Context(), conn, wideSchema(t), client.BindConfig{})
				return err
			},
		} {
			if err := bind(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "client: ") {
				t.Errorf("got %v, want an error that mentions %q", err, want)
			}
		}
		if n := len(conn.Stats().RPCs); n != 0 {
			t.Errorf("%d RPCs are counted", n)
		}
	})
}

// wideSchema has more fields than a request to bind has room for.
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

// TestRefusedBindsAreForgotten is refused more often than there are numbers.
func TestRefusedBindsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 9)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		conn := uplinktest.Dial(t, network, client.Config{})
		for range 300 {
			var unknown *client.UnknownRPCError
			if _, err := client.Bind[moveLike](t.Context(), conn, "Jump", client.BindConfig{}); !errors.As(err, &unknown) {
				t.Fatal(err)
			}
		}
		s := uplinktest.Bind(t, conn, "Move")
		m := uplinktest.MoveAt(1, 0)
		uplinktest.Must(t, s.Send(&m))
		settle(time.Second)
		if n := journal.Only().Frames(); n != 1 {
			t.Errorf("%d frames, want 1", n)
		}
	})
}

// TestRefusedBindOverSlowLinks asks several times before the first answer comes:
// the others, which come later, are not taken for answers to the next bind.
func TestRefusedBindOverSlowLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 10)
		serve(t, network, uplinktest.NewJournal(t, 1))
		conn := uplinktest.Dial(t, network, client.Config{})
		slow := newLink(0)
		slow.Delay = 700 * ms
		uplinktest.Must(t, network.Set(slow, slow))
		for range 3 {
			var unknown *client.UnknownRPCError
			if _, err := client.Bind[moveLike](t.Context(), conn, "Jump", client.BindConfig{}); !errors.As(err, &unknown) {
				t.Fatal(err)
			}
			uplinktest.Bind(t, conn, "Move")
		}
	})
}

// TestBindSchemaTakesNoRate says so instead of ignoring it.
func TestBindSchemaTakesNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 11)
		serve(t, network, uplinktest.NewJournal(t, 1))
		conn := uplinktest.Dial(t, network, client.Config{})
		if _, err := client.BindSchema(t.Context(), conn, wideSchema(t), client.BindConfig{RateHz: 30}); err == nil || !strings.Contains(err.Error(), "RateHz") {
			t.Errorf("got %v", err)
		}
	})
}
