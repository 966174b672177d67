package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

func TestChoose(t *testing.T) {
	at := []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}
	all := []Server{
		{Name: "half", Addrs: at, Players: 5, MaxPlayers: 10},
		{Name: "third", Addrs: at, Players: 30, MaxPlayers: 90},
		{Name: "full", Addrs: at, Players: 1, MaxPlayers: 1},
		{Name: "draining", Addrs: at, MaxPlayers: 10, Draining: true},
		{Name: "without-address", MaxPlayers: 10},
	}
	const rounds = 6500
	chosen := map[string]int{}
	for range rounds {
		if s, ok := Choose(all, nil); ok {
			chosen[s.Name]++
		}
	}
	// 5 of 65, with a standard deviation of 21
	if n := chosen["half"]; n+chosen["third"] != rounds || n < 350 || n > 650 {
		t.Errorf("%v", chosen)
	}
	if s, ok := Choose(all, func(s *Server) bool { return s.Players < 30 }); !ok || s.Name != "half" {
		t.Errorf("%+v, %v", s, ok)
	}
	if s, ok := Choose(all[2:], nil); ok {
		t.Errorf("%+v", s)
	}
}

// TestChooseHostile chooses among servers whose numbers are beyond their limits: they are not
// chosen, and no sum overflows.
func TestChooseHostile(t *testing.T) {
	at := []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}
	hostile := []Server{
		{Name: "a", Addrs: at, MaxPlayers: math.MaxInt},
		{Name: "b", Addrs: at, MaxPlayers: math.MaxInt},
		{Name: "c", Addrs: at, Players: math.MinInt, MaxPlayers: MaxPlayers},
		{Name: "d", Addrs: at, Players: -1, MaxPlayers: math.MaxInt},
	}
	if s, ok := Choose(hostile, nil); ok {
		t.Errorf("%+v", s)
	}
	honest := make([]Server, MaxServers)
	for i := range honest {
		honest[i] = Server{Name: "a", Addrs: at, MaxPlayers: MaxPlayers}
	}
	if _, ok := Choose(append(hostile, honest...), nil); !ok {
		t.Error("no server of a full directory is chosen")
	}
}

func TestConfig(t *testing.T) {
	for want, cfg := range map[string]Config{
		"Store is nil":        {Name: "a"},
		"Name":                {Name: "a.b", Store: NewMemory()},
		"Interval is 6s":      {Name: "a", Store: NewMemory(), Interval: 6 * time.Second},
		"Outage is -1s":       {Name: "a", Store: NewMemory(), Outage: -time.Second},
		"Timeout is -1s":      {Name: "a", Store: NewMemory(), Timeout: -time.Second},
		"Config.Labels: ":     {Name: "a", Store: NewMemory(), Labels: map[string]string{"": "a"}},
		"want 1 to 63":        {Name: strings.Repeat("a", 64), Store: NewMemory()},
		"the name \"\": want": {Store: NewMemory()},
	} {
		if _, err := NewMember(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that contains %q", err, want)
		}
	}
}

// TestNotify tells a member of sessions elsewhere: the newer one replaces its own, and an older
// one, of which it learns late, does not. Nor does its own.
func TestNotify(t *testing.T) {
	var ended []uint64
	m, err := NewMember(Config{Store: NewMemory(), Name: "a"}, func(client uint64) { ended = append(ended, client) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	m.Begin(Session{Client: 1, ID: 5, Issued: now})
	for i, c := range []struct {
		Session
		ends bool
	}{
		{Session{Client: 1, Server: "b", ID: 9, Issued: now.Add(-time.Second)}, false},
		{Session{Client: 1, Server: "b", ID: 4, Issued: now}, false},
		{Session{Client: 1, Server: "a", ID: 9, Issued: now.Add(time.Second)}, false},
		{Session{Client: 2, Server: "b", ID: 9, Issued: now.Add(time.Second)}, false},
		{Session{Client: 1, Server: "b", ID: 6, Issued: now}, true},
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
type down struct{ *Memory }

func (down) Use(context.Context, Use) error     { return errors.New("down") }
func (down) End(context.Context, Session) error { return errors.New("down") }

// TestUnrecorded joins and ends more sessions during an outage than are recorded after it.
func TestUnrecorded(t *testing.T) {
	m, err := NewMember(Config{Store: down{NewMemory()}, Name: "a", Outage: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(maxUnrecorded + 10) {
		var id token.ID
		binary.LittleEndian.PutUint64(id[:], i)
		if err := m.Admit(t.Context(), Use{Token: id, Expires: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Stats().Unrecorded; got != maxUnrecorded {
		t.Errorf("%d tokens to be recorded, want %d", got, maxUnrecorded)
	}
	for i := range uint64(maxUnrecorded + 10) {
		s := Session{Client: i, ID: 1}
		m.Begin(s)
		m.End(s)
	}
	if got := m.Stats().Unrecorded; got != 2*maxUnrecorded {
		t.Errorf("%d tokens and sessions to be recorded, want %d", got, 2*maxUnrecorded)
	}
}
