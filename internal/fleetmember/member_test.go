package fleetmember

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
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
type down struct{ *fleet.Memory }

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
