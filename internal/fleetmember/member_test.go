package fleetmember

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

func TestConfig(t *testing.T) {
	for want, cfg := range map[string]fleet.Config{
		"Store is nil":        {Name: "a"},
		"Name":                {Name: "a.b", Store: fleet.NewMemory()},
		"Interval is 6s":      {Name: "a", Store: fleet.NewMemory(), Interval: 6 * time.Second},
		"Outage is -1s":       {Name: "a", Store: fleet.NewMemory(), Outage: -time.Second},
		"Timeout is -1s":      {Name: "a", Store: fleet.NewMemory(), Timeout: -time.Second},
		"Config.Labels: ":     {Name: "a", Store: fleet.NewMemory(), Labels: map[string]string{"": "a"}},
		"want 1 to 63":        {Name: strings.Repeat("a", 64), Store: fleet.NewMemory()},
		"the name \"\": want": {Store: fleet.NewMemory()},
	} {
		if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that contains %q", err, want)
		}
	}
}

// TestNotify tells a member of sessions elsewhere: the newer one replaces its own, and an older
// one, of which it learns late, does not. Nor does its own.
func TestNotify(t *testing.T) {
	var ended []uint64
	m, err := New(fleet.Config{Store: fleet.NewMemory(), Name: "a"}, func(client uint64) { ended = append(ended, client) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	m.Begin(fleet.Session{Client: 1, ID: 5, Issued: now})
	for i, c := range []struct {
		fleet.Session
		ends bool
	}{
		{fleet.Session{Client: 1, Server: "b", ID: 9, Issued: now.Add(-time.Second)}, false},
		{fleet.Session{Client: 1, Server: "b", ID: 4, Issued: now}, false},
		{fleet.Session{Client: 1, Server: "a", ID: 9, Issued: now.Add(time.Second)}, false},
		{fleet.Session{Client: 2, Server: "b", ID: 9, Issued: now.Add(time.Second)}, false},
		{fleet.Session{Client: 1, Server: "b", ID: 6, Issued: now}, true},
	} {
		if m.notify(c.Session); len(ended) == 1 != c.ends {
			t.Errorf("session %d: %v ended", i, ended)
		}
	}
	if got := m.Stats().Replaced; got != 1 {
		t.Errorf("%d replaced", got)
	}
}

// down is a store that fails.
type down struct{ fleet.Store }

func (down) Use(context.Context, fleet.Use) error     { return errors.New("down") }
func (down) End(context.Context, fleet.Session) error { return errors.New("down") }

// TestUnrecorded joins and ends more sessions during an outage than are recorded after it.
func TestUnrecorded(t *testing.T) {
	m, err := New(fleet.Config{Store: down{fleet.NewMemory()}, Name: "a", Outage: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(maxUnrecorded + 10) {
		var id token.ID
		binary.LittleEndian.PutUint64(id[:], i)
		if err := m.Admit(t.Context(), fleet.Use{Token: id, Expires: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Stats().Unrecorded; got != maxUnrecorded {
		t.Errorf("%d tokens to be recorded, want %d", got, maxUnrecorded)
	}
	for i := range uint64(maxUnrecorded + 10) {
		s := fleet.Session{Client: i, ID: 1}
		m.Begin(s)
		m.End(s)
	}
	if got := m.Stats().Unrecorded; got != 2*maxUnrecorded {
		t.Errorf("%d tokens and sessions to be recorded, want %d", got, 2*maxUnrecorded)
	}
}

// emptied is a store whose state can be replaced by an empty one, which breaks the watches.
type emptied struct {
	fleet.Store
	lost chan struct{}
}

func (e *emptied) Replaced(ctx context.Context, server string, f func(fleet.Session)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case <-ctx.Done():
		return nil
	case <-e.lost:
		return errors.New("lost")
	}
}

// TestEmptied lets the store lose its state: more sessions than are recorded between two
// announcements are recorded again, so that a newer session replaces one of them.
func TestEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &emptied{fleet.NewMemory(), make(chan struct{})}
		m, err := New(fleet.Config{Store: store, Name: "a"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx, func() fleet.Server { return fleet.Server{} }) }()
		const players = 3 * maxCalls
		for i := range uint64(players) {
			m.Begin(fleet.Session{Client: i, ID: 1, Issued: time.Now()})
		}
		time.Sleep(time.Second)
		if n := m.Stats().Unrecorded; n != 0 {
			t.Errorf("%d sessions are not recorded", n)
		}
		synctest.Wait()
		store.Store = fleet.NewMemory()
		store.lost <- struct{}{}
		time.Sleep(time.Second)
		for i := range uint64(players) {
			if err := store.Begin(t.Context(), fleet.Session{Client: i, Server: "b", Issued: time.Now().Add(-time.Hour)}); !errors.Is(err, fleet.ErrNewer) {
				t.Fatalf("session %d: %v", i, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
