//go:build native

package session

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// boosted is number with a field that the client does not have.
type boosted struct {
	N     float32 `uplink:"resolution=1"`
	Boost bool
}

// TestMistakes lets a client ask for what the server does not have, or has with other fields: both
// ends are told, with the names at both ends.
func TestMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const addr = "127.0.0.1:7777"
		network := uplinktest.NewNetwork(t, simnet.Config{Delay: 25 * time.Millisecond}, simnet.Config{Delay: 25 * time.Millisecond})
		town, err := ds.NewWorld(nil, "town", ds.WorldConfig[number]{TickHz: 60, Areas: true})
		uplinktest.Must(t, err)
		_, err = ds.AddType[boosted](town, "goals")
		uplinktest.Must(t, err)
		other, err := ds.NewWorld(nil, "other", ds.WorldConfig[boosted]{TickHz: 60})
		uplinktest.Must(t, err)
		s, err := ds.Listen(addr, ds.Config{
			Network: network, Addrs: []netip.AddrPort{netip.MustParseAddrPort(addr)}, Key: token.Development(),
			Joined: func(p *ds.Player) {
				stream, err := town.Offer(p)
				_, err2 := other.Offer(p)
				if errors.Join(err, err2) != nil {
					t.Error(err, err2)
					return
				}
				stream.See(1)
			},
		})
		uplinktest.Must(t, err)
		uplinktest.Must(t, ds.Handle(s, "Step", func(*ds.Player, ds.Frame[boosted]) {}))
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(ctx)
		}()
		defer func() {
			cancel()
			_ = s.Close()
			<-served
		}()
		c, err := newNative(network, netip.MustParseAddrPort(addr))
		uplinktest.Must(t, err)
		defer c.close()
		for _, rpc := range []string{"Step", "Stepp"} {
			uplinktest.Must(t, c.bind(rpc, false))
		}
		for _, world := range []string{"town", "towm", "other"} {
			uplinktest.Must(t, c.subscribe(world))
		}
		now := time.Now()
		tok, err := token.Issue(token.Development().Issuer(), token.Claims{
			ClientID: 7, Issued: now, Expires: now.Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(addr)},
		})
		uplinktest.Must(t, err)
		text, err := tok.MarshalText()
		uplinktest.Must(t, err)
		uplinktest.Must(t, c.connect(string(text)))
		var told []string
		for range 3000 {
			c.run(func(e *event) {
				if e.kind == eventBindFailed || e.kind == eventMismatch || e.kind == eventWorld && e.status == 1 {
					told = append(told, string(e.data))
				}
			})
			time.Sleep(time.Millisecond)
			if tick := uint64(time.Since(now) / (time.Second / 60)); town.Begin(tick) == nil {
				uplinktest.Must(t, town.Put(1, 0, &number{N: float32(tick % 100)}, area.ID(1)))
				town.Commit()
				_, _ = town.Send()
			}
		}
		want := []string{
			`only the server has "Boost"`,
			`the server has no RPC "Stepp", nearest "Step"; it has "Step"`,
			`objects are dropped of type "goals", which the program does not have`,
			`the program has no field "Boost" of the server, in objects of type "other"`,
			`the server has not offered a world "towm" within 2 s, nearest "town"; it offers "town", "other"`,
		}
		slices.Sort(told)
		slices.Sort(want)
		if !slices.Equal(told, want) {
			t.Errorf("the client was told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
		if tick, objects := c.snapshot(0); tick == 0 || len(objects) != 1 {
			t.Errorf("the world is not received: tick %d, %v", tick, objects)
		}
		events := map[string]string{}
		for _, e := range s.Events() {
			if e.Cause != "" {
				events[e.Kind+" "+e.Cause] = e.Text
			}
		}
		for kind, part := range map[string]string{
			"mismatch rpc": `only the server has "Boost"`, "bind_refused unknown_rpc": `"Stepp"`, "mismatch world": `only the server has "goals/"`,
			"world_refused schema": "Boost", "world_refused unknown_world": `nearest "town"`,
		} {
			if !strings.Contains(events[kind], part) {
				t.Errorf("event %s: %q, want %s", kind, events[kind], part)
			}
		}
	})
}
