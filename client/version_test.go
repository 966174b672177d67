package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// call is a version of an RPC. Its values follow from the sequence number; fields that a version
// lacks have the value that they have at an end with a version that has them.
type call interface {
	older | newer | renamed
}

type older struct {
	Location schema.Vec3 `uplink:"resolution=0.5"`
	Buttons  uint16
}

type newer struct {
	Crouched bool
	Buttons  uint16
	Facing   schema.Quat `uplink:"bits=10"`
	Height   float64     `uplink:"resolution=0.25,min=1,max=3"`
	Location schema.Vec3 `uplink:"resolution=0.5"`
}

type renamed struct {
	Place   schema.Vec3 `uplink:"resolution=0.5"`
	Buttons uint16
}

func location(n uint64) schema.Vec3 { return schema.Vec3{X: float64(n) / 2, Z: float64(n % 8)} }

func newCall[T call](n uint64) *T {
	var v T
	switch v := any(&v).(type) {
	case *older:
		*v = older{location(n), uint16(n)}
	case *newer:
		*v = newer{true, uint16(n), schema.Quat{X: 1}, 2, location(n)}
	case *renamed:
		*v = renamed{location(n), uint16(n)}
	}
	return &v
}

// received returns a call as a server of version S gets it from a client of version C.
func received[C, S call](n uint64) S {
	v := *newCall[S](n)
	switch v := any(&v).(type) {
	case *older:
		if _, ok := any(*new(C)).(renamed); ok {
			v.Location = schema.Vec3{}
		}
	case *newer:
		if _, ok := any(*new(C)).(newer); !ok {
			*v = newer{Buttons: uint16(n), Facing: schema.Quat{W: 1}, Height: 1, Location: location(n)}
		}
		if _, ok := any(*new(C)).(renamed); ok {
			v.Location = schema.Vec3{}
		}
	case *renamed:
		if _, ok := any(*new(C)).(renamed); !ok {
			v.Place = schema.Vec3{}
		}
	}
	return v
}

// TestVersionsOfWorlds sends worlds, with and without areas, as snapshots and as state, to clients
// with other versions of the objects, over a link that loses 10 %.
func TestVersionsOfWorlds(t *testing.T) {
	watchVersions[older, newer](t)
	watchVersions[newer, older](t)
	watchVersions[older, renamed](t)
	watchVersions[renamed, newer](t)
}

func watchVersions[S, C call](t *testing.T) {
	for _, how := range []string{"snapshots", "areas", "state"} {
		t.Run(fmt.Sprintf("%T to %T %s", *new(S), *new(C), how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newNetwork(t, 0.1, 1)
				joined := make(chan *ds.Player, 1)
				srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(*ds.Server) error { return nil })
				world, err := ds.NewWorld(srv.Server, "world", ds.WorldConfig[S]{Areas: how == "areas"})
				uplinktest.Must(t, err)
				conn := uplinktest.Dial(t, network, client.Config{})
				received := watch[S, C](t, world, <-joined, conn, how)
				for n := range uint64(300) {
					uplinktest.Must(t, world.Begin(n))
					uplinktest.Must(t, world.Put(1, 0, newCall[S](n)))
					if how == "state" {
						uplinktest.Must(t, world.Prioritize(1, 1))
					}
					world.Commit()
					_, err := world.Send()
					uplinktest.Must(t, err)
					time.Sleep(time.Second / 60)
				}
				settle(time.Second)
				if *received < 200 {
					t.Errorf("%d messages", *received)
				}
			})
		})
	}
}

// watch subscribes to a world of one object, and counts and checks the messages.
func watch[S, C call](t *testing.T, world *ds.World[S], player *ds.Player, conn *client.Conn, how string) *int {
	count := new(int)
	check := func(tick uint64, objects int, v C) {
		*count++
		if want := received[S, C](tick); objects != 1 || v != want {
			t.Errorf("tick %d: %d objects, %+v, want %+v", tick, objects, v, want)
		}
	}
	if how == "state" {
		_, err := world.OfferState(player, ds.StateConfig{})
		uplinktest.Must(t, err)
		_, err = client.SubscribeState(t.Context(), conn, "world", client.StateConfig[C]{Handle: func(u *client.StateUpdate[C]) {
			for _, o := range u.Objects {
				check(u.Tick, len(u.Objects), o.State)
			}
		}})
		uplinktest.Must(t, err)
		return count
	}
	_, err := world.Offer(player)
	uplinktest.Must(t, err)
	_, err = client.SubscribeSnapshots(t.Context(), conn, "world", client.SnapshotConfig[C]{Handle: func(s *client.Snapshot[C]) {
		check(s.Tick, len(s.Objects), s.Objects[0])
	}})
	uplinktest.Must(t, err)
	return count
}

// TestVersions plays between clients and servers with different versions of an RPC, over a link
// that loses 10 %.
func TestVersions(t *testing.T) {
	playVersions[older, newer](t)
	playVersions[newer, older](t)
	playVersions[older, renamed](t)
	playVersions[renamed, older](t)
	playVersions[newer, renamed](t)
	playVersions[renamed, newer](t)
}

func playVersions[C, S call](t *testing.T) {
	balanced := client.Balanced.DelayPolicy
	for name, c := range map[string]struct {
		server  ds.Config
		options []ds.HandleOption
		bind    client.BindConfig
	}{
		"at once":       {},
		"reliable":      {bind: client.BindConfig{Reliable: true}},
		"batched":       {bind: client.BindConfig{Delay: balanced}},
		"jitter buffer": {server: ds.Config{Poll: true, TickHz: 60}, options: []ds.HandleOption{ds.JitterBuffer{Repeat: 2}}},
	} {
		t.Run(fmt.Sprintf("%T to %T %s", *new(C), *new(S), name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, frames := newNetwork(t, 0.1, 1), 0
				srv := uplinktest.Serve(t, network, c.server, func(s *ds.Server) error {
					return ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[S]) {
						seq := f.Seq
						if f.Repeated {
							return
						}
						frames++
						if want := received[C, S](seq); f.Value != want {
							t.Errorf("frame %d: %+v, want %+v", seq, f.Value, want)
						}
					}, c.options...)
				})
				conn := uplinktest.Dial(t, network, client.Config{})
				move, err := client.Bind[C](t.Context(), conn, "Move", c.bind)
				uplinktest.Must(t, err)
				const calls = 600
				for n := range uint64(calls + 60) {
					if n < calls {
						uplinktest.Must(t, uplinktest.Sent(move.Send(newCall[C](n))))
					}
					time.Sleep(time.Second / 60)
					if c.server.Poll {
						srv.Poll()
					}
				}
				settle(time.Second)
				if want := map[bool]int{true: calls, false: calls * 98 / 100}[c.bind.Reliable]; frames < want {
					t.Errorf("%d frames, want %d", frames, want)
				}
			})
		})
	}
}
