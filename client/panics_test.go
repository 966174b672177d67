package client_test

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// panickingClient is a client whose game has a bug in one callback, and its server.
type panickingClient struct {
	t            *testing.T
	name         string // of the callback
	calls        int    // of it
	events       []client.Event
	log          strings.Builder
	left         []error
	players      []*ds.Player
	crates       *ds.World[crate]
	worldObjects *ds.World[worldObject]
	conn         *client.Conn
}

// call is called by each callback. The first call of the one with the bug panics.
func (b *panickingClient) call(name string) {
	if name != b.name {
		return
	}
	if b.calls++; b.calls == 1 {
		panic("a bug in the game\x1b")
	}
}

func newPanickingClient(t *testing.T, name string, reconnect bool) *panickingClient {
	b := &panickingClient{t: t, name: name}
	network := newNetwork(t, 0, 1)
	uplinktest.Serve(t, network, ds.Config{
		Joined: func(p *ds.Player) { b.players = append(b.players, p) },
		Left:   func(_ *ds.Player, err error) { b.left = append(b.left, err) },
	}, func(s *ds.Server) (err error) {
		if b.crates, err = ds.NewWorld(s, "crates", ds.WorldConfig[crate]{TickHz: 60, SendHz: 60}); err == nil {
			b.worldObjects, err = ds.NewWorld(s, "worldObjects", ds.WorldConfig[worldObject]{TickHz: 60, SendHz: 60})
		}
		return err
	})
	handlers := new(client.Handlers)
	uplinktest.Must(t, client.Handle(handlers, "Blast", func(client.Call[uplinktest.Move]) { b.call("call") }))
	uplinktest.Must(t, client.Handle(handlers, "Boom", func(client.Call[uplinktest.Move]) { b.call("reliable call") }))
	b.conn = uplinktest.Dial(t, network, client.Config{
		Handlers:    handlers,
		NoReconnect: !reconnect,
		Logger:      slog.New(slog.NewTextHandler(&b.log, nil)),
		OnMessage:   func([]byte) { b.call("OnMessage") },
		Hooks: client.Hooks{
			OnUnreliable: func([]byte) { b.call("OnUnreliable") },
			OnStream: func(r transport.StreamReader) {
				b.call("OnStream")
				_, _ = io.ReadAll(r)
			},
		},
		OnQuality: func(client.Quality) { b.call("OnQuality") },
		OnEvent: func(e client.Event) {
			b.events = append(b.events, e)
			b.call("OnEvent")
		},
	})
	return b
}

// subscribe subscribes to both worlds, once they are offered.
func (b *panickingClient) subscribe() {
	_, err := client.SubscribeSnapshots(b.t.Context(), b.conn, "crates", client.SnapshotConfig[crate]{
		Handle:    func(*client.Snapshot[crate]) { b.call("snapshot") },
		OnMessage: func(uint64, []byte) { b.call("message of a world") },
	})
	uplinktest.Must(b.t, err)
	_, err = client.SubscribeState(b.t.Context(), b.conn, "worldObjects", client.StateConfig[worldObject]{
		Handle: func(*client.StateUpdate[worldObject]) { b.call("state") },
	})
	uplinktest.Must(b.t, err)
}

// offer offers both worlds to the newest player.
func (b *panickingClient) offer() (messages func([]byte) error) {
	p := b.players[len(b.players)-1]
	s, err := b.crates.Offer(p)
	uplinktest.Must(b.t, err)
	_, err = b.worldObjects.OfferState(p, ds.StateConfig{})
	uplinktest.Must(b.t, err)
	settle(time.Second)
	return func(m []byte) error { return s.SendReliable(1, m) }
}

// provoke sends everything that a server can send. Errors of sessions that end are ignored.
func (b *panickingClient) provoke(tick uint64, worldMessage func([]byte) error) {
	p := b.players[len(b.players)-1]
	_ = p.SendReliable([]byte("x"))
	_ = p.SendUnreliable([]byte("x"))
	_ = worldMessage([]byte("x"))
	if w, err := p.OpenStream(b.t.Context(), "stream"); err == nil {
		go func() {
			_, _ = w.Write([]byte("x"))
			_ = w.Close()
		}()
	}
	for name, reliable := range map[string]bool{"Blast": false, "Boom": true} {
		s, err := ds.Bind[uplinktest.Move](p, name, ds.BindConfig{RateHz: 60, Reliable: reliable})
		if err != nil {
			continue
		}
		settle(200 * ms)
		m := uplinktest.MoveAt(1, 0)
		_, _ = s.Send(&m)
	}
	uplinktest.Must(b.t, b.crates.Begin(tick))
	uplinktest.Must(b.t, b.crates.Put(1, 0, &crate{Orientation: schema.Quat{W: 1}}))
	b.crates.Commit()
	uplinktest.Must(b.t, b.worldObjects.Begin(tick))
	uplinktest.Must(b.t, b.worldObjects.Put(1, 0, &worldObject{}))
	b.worldObjects.Commit()
	for _, send := range []func() (int, error){b.crates.Send, b.worldObjects.Send} {
		_, err := send()
		uplinktest.Must(b.t, err)
	}
	settle(3 * time.Second)
}

// check checks that the client counted, logged and reported one panic, as the end of one session.
func (b *panickingClient) check(reconnect bool) {
	t := b.t
	if n := b.conn.Stats().Panics; n != 1 {
		t.Errorf("%s: %d panics", b.name, n)
	}
	ends := 0
	for _, e := range b.events {
		if errors.Is(e.Err, transport.ErrPanic) {
			ends++
			if want := client.Reconnecting; reconnect && e.State != want || !strings.Contains(e.Err.Error(), `a bug in the game\x1b`) {
				t.Errorf("%s: %v with %v", b.name, e.State, e.Err)
			}
		}
	}
	if err := b.conn.Err(); ends != 1 || reconnect != (err == nil) || err != nil && (!errors.Is(err, client.ErrLost) || !errors.Is(err, transport.ErrPanic)) {
		t.Errorf("%s: events %+v, error %v", b.name, b.events, err)
	}
	if len(b.left) != 1 || !errors.Is(b.left[0], transport.ErrQuit) || !strings.Contains(b.left[0].Error(), "internal client error") {
		t.Errorf("%s: the server saw %v", b.name, b.left)
	}
	if log := b.log.String(); strings.Count(log, "handler panicked") != 1 || !strings.Contains(log, "panics_test.go") {
		t.Errorf("%s: logged %s", b.name, log)
	}
}

// TestCallbackPanics lets each callback that handles what a server sent panic once. The session
// ends for one reason and with one event; then the client reconnects, unless that is turned off,
// and calls the callback again.
func TestCallbackPanics(t *testing.T) {
	for _, name := range []string{
		"OnMessage", "OnUnreliable", "OnEvent", "OnQuality", "OnStream", "call", "reliable call", "snapshot", "message of a world", "state",
	} {
		for _, reconnect := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				b := newPanickingClient(t, name, reconnect)
				settle(500 * ms)
				if len(b.left) == 0 { // OnEvent has not panicked
					go b.subscribe()
					b.provoke(1, b.offer())
				}
				settle(time.Second)
				b.check(reconnect)
				if reconnect {
					b.provoke(2, b.offer())
					if b.calls < 2 {
						t.Errorf("%s: not called again", name)
					}
				}
			})
		}
	}
}

// TestPanicOfDecoder lets a decoder of a world panic with a message, and with an offer while the
// game subscribes, each time with the lock of all subscriptions held. The client can be used,
// reconnects and closes.
func TestPanicOfDecoder(t *testing.T) {
	for _, name := range []string{"message", "offer"} {
		synctest.Test(t, func(t *testing.T) {
			b := newPanickingClient(t, name, true)
			settle(500 * ms)
			messages := b.offer()
			subscribe := func() error {
				return client.SubscribeFaulty[crate](t.Context(), b.conn, "crates", func() { b.call("offer") }, func() { b.call("message") })
			}
			if err := subscribe(); errors.Is(err, transport.ErrPanic) != (name == "offer") {
				t.Error(err)
			}
			b.provoke(1, messages)
			b.check(true)
			b.offer()
			if err := subscribe(); (err == nil) != (name == "offer") { // the other one is subscribed already
				t.Error(err)
			}
			b.provoke(2, func([]byte) error { return nil })
			if n := len(b.conn.Stats().Replication); b.calls < 2 || n != 1 {
				t.Errorf("%s: called %d times, %d worlds", name, b.calls, n)
			}
		})
	}
}
