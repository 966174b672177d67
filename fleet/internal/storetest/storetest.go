// Package storetest checks that a store behaves as package fleet documents.
package storetest

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/fleetmember"
	"github.com/uplink-rpc/uplink/token"
)

// Attempts checks the use of a token by two servers for one request of a client. The server that
// asks first admits it, also when it repeats the call. The other server does not admit it, and
// neither server admits another request.
func Attempts(t *testing.T, s fleet.Store) {
	t.Helper()
	var members []*fleetmember.Member
	for _, name := range []string{"a", "b"} {
		m, err := fleetmember.New(fleet.Config{Store: s, Name: name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	request := fleet.Use{Token: token.ID{42}, Expires: time.Now().Add(time.Minute), Attempt: [32]byte{1}}
	another := request
	another.Attempt[0]++
	for i, c := range []struct {
		server int
		use    fleet.Use
		want   error
	}{
		{0, request, nil}, {1, request, token.ErrUsed}, {0, request, nil}, {0, another, token.ErrUsed}, {1, another, token.ErrUsed}, {0, request, nil},
	} {
		if err := members[c.server].Admit(t.Context(), c.use); !errors.Is(err, c.want) {
			t.Errorf("call %d: %v, want %v", i, err, c.want)
		}
	}
}

// Limits announces servers with each field beyond its limit. The error names field and limit, and
// the server is not in the directory.
func Limits(t *testing.T, s fleet.Store) {
	t.Helper()
	addr := func(text string) []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(text)} }
	valid := func() fleet.Server {
		return fleet.Server{Name: "a", Addrs: addr("203.0.113.7:7777"), MaxPlayers: 1 << 20, Route: make([]byte, token.MaxRoute), Key: "a1b2c3d4"}
	}
	labels := func(n int, name, value string) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("%s%d", name, i)] = value
		}
		return all
	}
	for want, change := range map[string]func(*fleet.Server){
		"name: ":                                     func(e *fleet.Server) { e.Name = "a.b" },
		"want 1 to 63":                               func(e *fleet.Server) { e.Name = strings.Repeat("a", 64) },
		"players: -1, want 0 to 1048576":             func(e *fleet.Server) { e.Players = -1 },
		"players: 1048577, want 0 to 1048576":        func(e *fleet.Server) { e.Players = 1<<20 + 1 },
		"max_players: -1, want 0 to 1048576":         func(e *fleet.Server) { e.MaxPlayers = -1 },
		"max_players: 2147483647, want 0 to 1048576": func(e *fleet.Server) { e.MaxPlayers = 1<<31 - 1 },
		"addrs: 9 addresses, want at most 8":         func(e *fleet.Server) { e.Addrs = make([]netip.AddrPort, 9) },
		"addrs: invalid AddrPort, want":              func(e *fleet.Server) { e.Addrs = make([]netip.AddrPort, 1) },
		"addrs: 0.0.0.0:7777, want":                  func(e *fleet.Server) { e.Addrs = addr("0.0.0.0:7777") },
		"addrs: [::]:7777, want":                     func(e *fleet.Server) { e.Addrs = addr("[::]:7777") },
		"addrs: 224.0.0.1:7777, want":                func(e *fleet.Server) { e.Addrs = addr("224.0.0.1:7777") },
		"addrs: 203.0.113.7:0, want":                 func(e *fleet.Server) { e.Addrs = addr("203.0.113.7:0") },
		"addrs: [fe80::1%eth0]:7777, want":           func(e *fleet.Server) { e.Addrs = addr("[fe80::1%eth0]:7777") },
		"route: 17 bytes, want at most 16":           func(e *fleet.Server) { e.Route = make([]byte, token.MaxRoute+1) },
		"key: \"A1B2C3D4\", want 8":                  func(e *fleet.Server) { e.Key = "A1B2C3D4" },
		"outage_seconds: -1, want 0 to 1073741824":   func(e *fleet.Server) { e.OutageSeconds = -1 },
		"outage_seconds: 1073741825, want 0":         func(e *fleet.Server) { e.OutageSeconds = 1<<30 + 1 },
		"labels: 33 labels, want at most 32":         func(e *fleet.Server) { e.Labels = labels(33, "l", "v") },
		"has 64 bytes and a value of 1, want":        func(e *fleet.Server) { e.Labels = labels(1, strings.Repeat("l", 63), "v") },
		"a value of 257, want names of 1 to 63":      func(e *fleet.Server) { e.Labels = labels(1, "l", strings.Repeat("v", 257)) },
		"has 0 bytes":                                func(e *fleet.Server) { e.Labels = map[string]string{"": "v"} },
	} {
		e := valid()
		change(&e)
		err := s.Announce(t.Context(), e)
		if !errors.Is(err, fleet.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that contains %q", err, want)
		}
	}
	if all, err := s.Servers(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d servers, %v", len(all), err)
	}
	e := valid()
	e.Labels, e.Addrs = labels(32, "l", "v"), make([]netip.AddrPort, 0, token.MaxServers)
	for i := range token.MaxServers {
		e.Addrs = append(e.Addrs, netip.AddrPortFrom(netip.MustParseAddr("203.0.113.7"), uint16(7000+i)))
	}
	if err := s.Announce(t.Context(), e); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	if err := s.Withdraw(t.Context(), e.Name); err != nil {
		t.Error(err)
	}
}

// Receipt announces two servers whose clocks are wrong by years. It calls until twice: until both
// servers are in the directory with the times of receipt, and then until neither is.
func Receipt(t *testing.T, s fleet.Store, until func(what string, done func() bool)) {
	t.Helper()
	before := time.Now()
	for i, name := range []string{"slow", "fast"} {
		e := fleet.Server{Name: name, Updated: before.AddDate(20*i-10, 0, 0)}
		if err := s.Announce(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	list := func() []fleet.Server {
		all, err := s.Servers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	until("both servers are listed", func() bool { return len(list()) == 2 })
	for _, e := range list() {
		if d := e.Updated.Sub(before); d < -time.Second || d > time.Minute {
			t.Errorf("%s: updated %v after the announcement", e.Name, d)
		}
	}
	until("they have expired", func() bool { return len(list()) == 0 })
}

// Owners announces servers with the same name: the one at another address is refused, also if it
// started later, and a restarted one at the same address is not. The one that it replaced is.
func Owners(t *testing.T, s fleet.Store) {
	t.Helper()
	server := func(port uint16, started int64) fleet.Server {
		return fleet.Server{Name: "a", Addrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("203.0.113.7"), port)}, Started: time.Unix(started, 0)}
	}
	for i, c := range []struct {
		fleet.Server
		want error
	}{
		{server(1, 100), nil},
		{server(2, 99), fleet.ErrTaken},
		{server(2, 101), fleet.ErrTaken},
		{server(1, 100), nil},
		{server(1, 102), nil},
		{server(1, 100), fleet.ErrTaken},
		{server(3, 102), nil},
		{server(1, 102), nil},
	} {
		err := s.Announce(t.Context(), c.Server)
		if !errors.Is(err, c.want) || err != nil && (!errors.Is(err, fleet.ErrInvalid) || !strings.Contains(err.Error(), "a is the server at [203.0.113.7:1], started at 1970-01-01T00:01:4")) {
			t.Errorf("call %d: %v, want %v", i, err, c.want)
		}
	}
	if err := s.Withdraw(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if err := s.Announce(t.Context(), server(4, 1)); err != nil {
		t.Errorf("after the withdrawal: %v", err)
	}
	if err := s.Withdraw(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// Room announces servers until the directory is full. Servers already in it can still be announced.
func Room(t *testing.T, s fleet.Store) {
	t.Helper()
	name := func(i int) string { return fmt.Sprintf("s%d", i) }
	for i := range fleet.MaxServers {
		if err := s.Announce(t.Context(), fleet.Server{Name: name(i)}); err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
	}
	err := s.Announce(t.Context(), fleet.Server{Name: "another"})
	if !errors.Is(err, fleet.ErrInvalid) || !strings.Contains(err.Error(), "4096 servers") {
		t.Errorf("one more: %v", err)
	}
	if err := s.Announce(t.Context(), fleet.Server{Name: name(fleet.MaxServers - 1)}); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := s.Withdraw(t.Context(), name(0)); err != nil {
		t.Error(err)
	}
}
