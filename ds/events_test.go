package ds_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestEvents checks what the events say of clients who join, move, call too often, leave and are
// refused, and that their counts are those of Stats.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 20*ms, simnet.Config{})
		key, err := token.NewKey()
		uplinktest.Must(t, err)
		var log bytes.Buffer // written on the server's goroutine, read when all is settled
		players := map[uint64]*ds.Player{}
		srv := serve(t, network, ds.Config{
			Key: key, MaxPlayers: 2, Transport: ds.Transport{Timeout: 5 * time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Joined:    func(p *ds.Player) { players[p.ClientID()] = p },
			OnMessage: func(*ds.Player, []byte) { panic(bug) },
		}, handles("Fast", func(*ds.Player, frame) {}, ds.TimeCheck{}))
		config := func(id uint64) client.Config {
			tok, err := token.Issue(key.Issuer(), token.Claims{
				ClientID: id, Issued: time.Now(), Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)},
			})
			uplinktest.Must(t, err)
			return client.Config{Network: network, Token: tok}
		}
		dial := func(id uint64) *client.Conn { return uplinktest.Dial(t, network, config(id)) }
		refused := func(cfg client.Config) {
			if conn, err := client.Dial(t.Context(), uplinktest.Addr, cfg); err == nil {
				t.Errorf("a client is connected: %v", conn)
			}
		}

		first, _ := dial(1), dial(2)
		settle(time.Second)
		refused(config(3)) // the server is full
		used := config(4)
		uplinktest.Must(t, first.Rebind())
		settle(time.Second)
		move := uplinktest.Bind(t, first, "Fast", client.BindConfig{RateHz: 60})
		for n := range uint64(120) {
			send(t, move, 1, n)
			settle(5 * ms)
		}
		if _, err := client.Bind[uplinktest.Move](t.Context(), first, "Slow\x00", client.BindConfig{}); err == nil {
			t.Error("an unknown RPC is bound")
		}
		players[2].Kick("enough")
		settle(time.Second)
		again := uplinktest.Dial(t, network, used)
		uplinktest.Must(t, again.Close())
		settle(time.Second)
		refused(used)
		back := dial(2)
		settle(time.Second)
		uplinktest.Must(t, back.SendReliable([]byte{1}))
		settle(time.Second)
		network.Crash(t, players[1].Addr().String())
		settle(10 * time.Second)

		got := srv.Events()
		var text []string
		counts := map[string]uint64{}
		for _, e := range slices.Backward(got) {
			what := strings.TrimSuffix(e.Kind+" "+e.Cause, " ")
			counts[what] += e.Count
			text = append(text, fmt.Sprintf("%d %s", e.Client, what))
			if p := players[e.Client]; e.Player != 0 && p == nil || e.Kind != "refused" && e.Player == 0 || e.At.IsZero() || time.Since(e.At) > time.Minute {
				t.Errorf("%+v", e)
			}
		}
		want := []string{
			"1 joined", "2 joined", "3 refused server_full", "1 moved", "1 ahead_of_time", "1 bind_refused unknown_rpc", "2 left kicked",
			"4 joined", "4 left quit", "2 reconnected", "2 panic", "2 left panic", "1 refused token_used", "1 left timeout", // of two who have used their tokens, the last
		}
		if !slices.Equal(text, want) {
			t.Errorf("events %q,\nwant   %q", text, want)
		}
		for i, part := range map[int]string{2: "2 players", 4: `"Fast": `, 5: `"Slow\x00": unknown RPC`, 6: "enough", 10: bug} {
			if e := got[len(got)-1-i]; !strings.Contains(e.Text, part) {
				t.Errorf("%+v, want %q", e, part)
			}
		}
		for _, line := range []string{
			fmt.Sprintf(`msg="player connected" player=%d client=1 addr=`, players[1].ID()),
			fmt.Sprintf(`msg="player disconnected" player=%d client=1 cause=`, players[1].ID()),
			`msg="client refused" client=3 cause=server_full error=`, `msg="client refused" client=4 cause=token_used error=`,
		} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("no line %q in the log:\n%s", line, &log)
			}
		}
		if n := counts["ahead_of_time"]; n < 2 {
			t.Errorf("%d time detections in one event", n)
		}
		total := map[string]uint64{}
		for _, e := range srv.Stats().Events {
			if e.Count > 0 {
				total[strings.TrimSuffix(e.Kind+" "+e.Cause, " ")] = e.Count
			}
		}
		if !maps.Equal(total, counts) {
			t.Errorf("counts %v, of the events %v", total, counts)
		}
	})
}

// TestEventsAreBounded checks that the oldest events are discarded, and that one client who is
// refused again and again has one event.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		srv := serve(t, network, ds.Config{Transport: ds.Transport{Suites: []transport.Suite{transport.AES128GCM}}})
		for range 20 {
			_, err := endpoint.Dial(t.Context(), uplinktest.Addr, endpoint.Config{Network: network, Suites: []transport.Suite{transport.ChaCha20Poly1305}}, &raw{t: t})
			if err == nil {
				t.Fatal("no suite in common, but connected")
			}
		}
		if got := srv.Events(); len(got) != 1 || got[0].Count != 20 || got[0].Cause != "no_suite" || !strings.Contains(got[0].Text, "chacha20") {
			t.Errorf("%+v", got)
		}
		const clients = 300
		for range clients {
			uplinktest.Must(t, uplinktest.Dial(t, network, client.Config{}).Close())
			settle(100 * ms)
		}
		got := srv.Events()
		for i, e := range got {
			if want := [...]string{"left", "joined"}[i%2]; e.Kind != want {
				t.Fatalf("event %d: %+v, want %s", i, e, want)
			}
		}
		total := uint64(0)
		for _, e := range srv.Stats().Events {
			total += e.Count
		}
		if len(got) != 256 || total != 20+2*clients {
			t.Errorf("%d events of %d", len(got), total)
		}
	})
}
