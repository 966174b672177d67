package ds_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestStatesRejoin checks that a client that resubscribes at once, as when a level is loaded, soon
// receives the new stream, after messages and acks of the old one that are still in flight: objects
// that were removed in between are gone. In some rounds the server stops the stream too.
func TestStatesRejoin(t *testing.T) {
	for _, cfg := range []ds.StateConfig{{}, {NoDelta: true}} {
		t.Run(fmt.Sprintf("nodelta=%v", cfg.NoDelta), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up, down := symmetric(150*ms, simnet.Config{Loss: 0.05, Jitter: 30 * ms})
				network := uplinktest.NewNetwork(t, up, down)
				a, srv, joined := serveArena(t, network, 30, 1<<40, ds.WorldConfig[mover]{})
				conn := uplinktest.Dial(t, network, client.Config{})
				player := <-joined
				a.offer(player, cfg)
				tick := uint64(1)
				for round := range 12 {
					if round%5 == 4 {
						a.stop(player)
						a.offer(player, cfg)
					}
					got := newCopier(t, a)
					v, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: got.take})
					uplinktest.Must(t, err)
					if round%3 == 2 { // within the first round trip
						a.run(tick, tick+9)
						tick += 10
						uplinktest.Must(t, v.Close())
						continue
					}
					last := tick + 200
					a.setRest(tick + 20) // some vanish
					a.run(tick, last)
					got.whole(last)
					if got.newest+30 < last {
						t.Errorf("round %d: the newest update is of tick %d, want about %d: %+v", round, got.newest, last, v.Stats())
					}
					a.setRest(1 << 40) // and are back
					a.run(last+1, last+100)
					tick = last + 101
					uplinktest.Must(t, v.Close())
				}
				if st := srv.Stats().Replication[0]; st.InvalidAcks != 0 || st.Messages == 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestStatesConcurrent restarts the stream at either end while another goroutine makes ticks, with
// and without deltas in turn: no ack of an earlier stream is mistaken for one of the new stream.
func TestStatesConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(150*ms, simnet.Config{Loss: 0.05, Jitter: 30 * ms})
		network := uplinktest.NewNetwork(t, up, down)
		a, srv, joined := serveArena(t, network, 30, 1<<40, ds.WorldConfig[mover]{})
		conn := uplinktest.Dial(t, network, client.Config{})
		player := <-joined
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for tick := uint64(1); ; tick++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Second / 60):
					a.step(tick)
				}
			}
		}()
		a.offer(player, ds.StateConfig{NoDelta: true})
		for round := range 20 {
			got := newCopier(t, a)
			v, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: got.take})
			uplinktest.Must(t, err)
			settle(time.Duration(50+37*round) * ms)
			if round%5 == 4 {
				a.stop(player)
				a.offer(player, ds.StateConfig{NoDelta: round%10 == 4})
			}
			uplinktest.Must(t, v.Close())
		}
		close(stop)
		<-stopped
		settle(time.Second)
		if st := srv.Stats().Replication[0]; st.InvalidAcks != 0 || st.Messages == 0 || st.Ready != 0 {
			t.Errorf("%+v", st)
		}
	})
}
