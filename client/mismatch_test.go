package client_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// misspelled is a moveLike with another name.
type misspelled struct {
	Loc     schema.Vec3 `uplink:"resolution=1"`
	Buttons uint16
}

// mistaken is a client and a server that log, and the mismatches of which the client was told.
type mistaken struct {
	server     *uplinktest.Server
	conn       *client.Conn
	atServer   uplinktest.Record
	atClient   uplinktest.Record
	mu         sync.Mutex
	mismatches []*client.MismatchError
}

func newMistaken(t *testing.T, seed uint64, cfg ds.Config, handlers *client.Handlers, setup func(*ds.Server) error) *mistaken {
	m := new(mistaken)
	network := newNetwork(t, 0, seed)
	cfg.Logger = slog.New(slog.NewTextHandler(&m.atServer, nil))
	m.server = uplinktest.Serve(t, network, cfg, setup)
	m.conn = uplinktest.Dial(t, network, client.Config{
		Handlers: handlers, Logger: slog.New(slog.NewTextHandler(&m.atClient, nil)),
		OnEvent: func(e client.Event) {
			if mismatch, ok := errors.AsType[*client.MismatchError](e.Mismatch); ok {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.mismatches = append(m.mismatches, mismatch)
			}
		},
	})
	return m
}

// told returns the mismatches of which the client was told.
func (m *mistaken) told() []*client.MismatchError {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mismatches)
}

// events returns the texts of the server's events of a kind and cause.
func (m *mistaken) events(kind, cause string) (texts []string) {
	for _, e := range m.server.Events() {
		if e.Kind == kind && e.Cause == cause {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// once checks that texts are one, which contains all parts.
func once(t *testing.T, what string, texts []string, parts ...string) {
	t.Helper()
	if len(texts) != 1 {
		t.Errorf("%s: told %d times: %q", what, len(texts), texts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(texts[0], part) {
			t.Errorf("%s: %s does not contain %s", what, texts[0], part)
		}
	}
}

// TestFieldsOfOneEnd binds an RPC with a misspelled field, and an RPC of the client likewise: both
// ends are told once, within two round trips, which fields only one of them has.
func TestFieldsOfOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		joined := make(chan *ds.Player, 1)
		handlers := new(client.Handlers)
		uplinktest.Must(t, client.Handle(handlers, "Hit", func(client.Call[misspelled]) {}))
		m := newMistaken(t, 1, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, handlers, handles[moveLike]("Move"))
		uplinktest.Must(t, bind[misspelled](t, m.conn, "Move", client.BindConfig{}))
		_, err := ds.Bind[moveLike](<-joined, "Hit", ds.BindConfig{})
		uplinktest.Must(t, err)
		settle(100 * ms)
		told := m.told()
		if len(told) != 2 {
			t.Fatalf("%d mismatches: %v", len(told), told)
		}
		for i, kind := range []string{"rpc", "call"} {
			e := told[i]
			name := map[string]string{"rpc": "Move", "call": "Hit"}[kind]
			if e.RPC != name || !strings.Contains(e.Error(), kind+" "+name) || errors.Is(e, client.ErrNotOffered) || !slices.Equal(e.Here, []string{"Loc"}) || !slices.Equal(e.There, []string{"Location"}) {
				t.Errorf("told %+v", e)
			}
			once(t, "client", m.atClient.Lines(e.RPC), `"Loc\", nearest \"Location\"`, "both ends differ", "level=WARN")
			once(t, "server", m.atServer.Lines(`both ends differ" kind=`+kind+" name="+name), `\"Loc\"`, `nearest \"Location\"`, "level=WARN")
		}
		once(t, "event", m.events("mismatch", "rpc"), `only the client has "Loc", nearest "Location"; only the server has "Location", nearest "Loc"`)
		once(t, "event", m.events("mismatch", "call"), `only the server has "Location", nearest "Loc"; only the client has "Loc"`)
		if n := m.conn.Stats().Mismatches; n != 2 {
			t.Errorf("%d mismatches are counted, want 2", n)
		}
	})
}

// TestConvertedFields binds an RPC of which one field has another resolution: the server's log says
// which, and how both ends describe it. Nothing is missing, so there is no warning.
func TestConvertedFields(t *testing.T) {
	type finer struct {
		Location schema.Vec3 `uplink:"resolution=0.5"`
		Buttons  uint16
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMistaken(t, 4, ds.Config{}, nil, handles[moveLike]("Move"))
		uplinktest.Must(t, bind[finer](t, m.conn, "Move", client.BindConfig{}))
		once(t, "server", m.atServer.Lines("rpc bound"), `converted="client {Location vec3 resolution=0.5}, server {Location vec3 resolution=1}"`)
		if n := m.atServer.Count("level=WARN") + m.atClient.Count("level=WARN"); n > 0 {
			t.Errorf("%d warnings", n)
		}
	})
}

// TestUnknownNames asks for an RPC, and is called by an RPC, that the other end does not have, and
// subscribes to a world that is not offered: there are errors with the nearest names, at both ends.
func TestUnknownNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		joined := make(chan *ds.Player, 1)
		handlers := new(client.Handlers)
		uplinktest.Must(t, client.Handle(handlers, "Hit", func(client.Call[moveLike]) {}))
		balls, err := ds.NewWorld[moveLike](nil, "balls", ds.WorldConfig[moveLike]{TickHz: 60})
		uplinktest.Must(t, err)
		m := newMistaken(t, 2, ds.Config{Joined: func(p *ds.Player) {
			if _, err := balls.Offer(p); err != nil {
				t.Error(err)
			}
			joined <- p
		}}, handlers, handles[moveLike]("ServerMove"))
		err = bind[moveLike](t, m.conn, "ServerMoove", client.BindConfig{})
		if err == nil || !strings.Contains(err.Error(), `nearest "ServerMove"`) {
			t.Errorf("an unknown RPC: %v", err)
		}
		once(t, "event", m.events("bind_refused", "unknown_rpc"), "ServerMoove", "ServerMove")
		hits, err := ds.Bind[moveLike](<-joined, "Hitt", ds.BindConfig{})
		uplinktest.Must(t, err)
		settle(100 * ms)
		if _, err := hits.Send(&moveLike{}); err == nil || !strings.Contains(err.Error(), `nearest "Hit"`) {
			t.Errorf("an unknown call: %v", err)
		}
		once(t, "event", m.events("call_refused", "unknown_rpc"), "Hitt", `nearest "Hit"`)

		start, subscribed := time.Now(), make(chan error, 1)
		go func() {
			_, err := client.SubscribeSnapshots(t.Context(), m.conn, "ballz", client.SnapshotConfig[moveLike]{})
			subscribed <- err
		}()
		settle(2100 * ms)
		told := m.told()
		if len(told) != 1 || !errors.Is(told[0], client.ErrNotOffered) || !strings.Contains(told[0].Error(), `nearest "balls"; it offers balls`) {
			t.Fatalf("told %v", told)
		}
		once(t, "client", m.atClient.Lines("ballz"), "both ends differ")
		once(t, "event", m.events("world_refused", "unknown_world"), "ballz", `nearest "balls"`)
		once(t, "server", m.atServer.Lines("world refused"), "ballz", "balls")
		if err := <-subscribed; !errors.Is(err, client.ErrNotOffered) || time.Since(start) > 6*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// TestWorldsThatDiffer subscribes to worlds whose fields differ, and cannot be converted: both ends
// are told once.
func TestWorldsThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		balls, err := ds.NewWorld[moveLike](nil, "balls", ds.WorldConfig[moveLike]{TickHz: 60})
		uplinktest.Must(t, err)
		m := newMistaken(t, 3, ds.Config{Joined: func(p *ds.Player) {
			if _, err := balls.Offer(p); err != nil {
				t.Error(err)
			}
		}}, nil, handles[moveLike]("Move"))
		view, err := client.SubscribeSnapshots(t.Context(), m.conn, "balls", client.SnapshotConfig[misspelled]{})
		uplinktest.Must(t, err)
		settle(100 * ms)
		told := m.told()
		if len(told) != 1 || told[0].World != "balls" || !slices.Equal(told[0].Here, []string{"Loc"}) || !slices.Equal(told[0].There, []string{"Location"}) {
			t.Fatalf("told %v", told)
		}
		once(t, "event", m.events("mismatch", "world"), `"balls": only the server has "Location", nearest "Loc"; only the client has "Loc"`)
		uplinktest.Must(t, view.Close())
		settle(100 * ms)
		_, err = client.SubscribeSnapshots(t.Context(), m.conn, "balls", client.SnapshotConfig[otherNames]{})
		if _, ok := errors.AsType[*client.FieldError](err); !ok || !strings.Contains(err.Error(), `at the server no such field, nearest "Location"`) {
			t.Errorf("no field in common: %v", err)
		}
		settle(100 * ms)
		once(t, "event", m.events("world_refused", "schema"), "balls", "Place", "Location")
		_, err = client.SubscribeState(t.Context(), m.conn, "balls", client.StateConfig[moveLike]{})
		if err == nil || !strings.Contains(err.Error(), "codec") {
			t.Errorf("another codec: %v", err)
		}
		settle(100 * ms)
		once(t, "event", m.events("world_refused", "codec"), "balls", "snapshot", "state")
	})
}
