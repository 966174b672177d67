package fleet

import (
	"math"
	"net/netip"
	"testing"
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
		{Name: "c", Addrs: at, Players: math.MinInt, MaxPlayers: maxPlayers},
		{Name: "d", Addrs: at, Players: -1, MaxPlayers: math.MaxInt},
	}
	if s, ok := Choose(hostile, nil); ok {
		t.Errorf("%+v", s)
	}
	honest := make([]Server, MaxServers)
	for i := range honest {
		honest[i] = Server{Name: "a", Addrs: at, MaxPlayers: maxPlayers}
	}
	if _, ok := Choose(append(hostile, honest...), nil); !ok {
		t.Error("no server of a full directory is chosen")
	}
}
