package client_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type thing struct{ N int32 }

// TestPanicInPoll: a panic of the function that Poll calls, or runtime.Goexit, ends Poll. The next
// Poll goes on with the updates after that one, so that none of what the server takes for known is
// lost.
func TestPanicInPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		var world *ds.World[thing]
		var stream *ds.StateStream[thing]
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			var err error
			stream, err = world.OfferState(p, ds.StateConfig{Bandwidth: 10_000_000})
			uplinktest.Must(t, err)
		}}, func(s *ds.Server) (err error) {
			world, err = ds.NewWorld(s, "Things", ds.WorldConfig[thing]{})
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		view, err := client.SubscribeState(t.Context(), conn, "Things", client.StateConfig[thing]{})
		uplinktest.Must(t, err)
		var got []uint64
		poll := func(fails func()) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				view.Poll(func(u *client.StateUpdate[thing]) {
					got = append(got, u.Tick)
					if len(got)%10 == 4 {
						fails()
					}
				})
			}()
			<-done
		}
		time.Sleep(time.Second)
		synctest.Wait()
		fails := []func(){func() { panic("a bug in the game") }, runtime.Goexit, func() {}}
		for tick := range uint64(30) {
			uplinktest.Must(t, world.Begin(tick))
			uplinktest.Must(t, world.Put(1, 0, &thing{N: int32(tick)}))
			world.Commit()
			uplinktest.Must(t, stream.Prioritize(1, 1))
			if _, err := world.Send(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second / 60)
			synctest.Wait()
			if tick%10 == 9 {
				poll(fails[tick/10])
			}
		}
		if len(got) != 30 || !slices.IsSorted(got) || got[29] != 29 {
			t.Errorf("got updates of ticks %v", got)
		}
	})
}

// TestGoexitInOnMessage: a callback on the connection's goroutine that ends it, as FailNow does,
// does not end the connection.
func TestGoexitInOnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		var player *ds.Player
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }}, func(*ds.Server) error { return nil })
		var got []byte
		conn := uplinktest.Dial(t, network, client.Config{OnMessage: func(b []byte) {
			got = append(got, b...)
			runtime.Goexit()
		}})
		time.Sleep(time.Second)
		synctest.Wait()
		for i := range byte(5) {
			uplinktest.Must(t, errors.Join(player.SendReliable([]byte{i}), conn.Err()))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if !slices.Equal(got, []byte{0, 1, 2, 3, 4}) {
			t.Errorf("got messages %v", got)
		}
	})
}
