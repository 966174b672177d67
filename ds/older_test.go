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

// TestOlder: where nothing is lost no frame comes with a newer one, although all are sent four times; where payloads
// are, each of the others has one frame of its own, and what else comes is older.
func TestOlder(t *testing.T) {
	for _, poll := range []bool{false, true} {
		for _, loss := range []float64{0, 0.3} {
			t.Run(fmt.Sprintf("poll=%v, loss %v", poll, loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					up, down := symmetric(40*ms, simnet.Config{Loss: loss, Seed: 7})
					network := uplinktest.NewNetwork(t, up, down)
					var own, older, last uint64
					srv := uplinktest.Serve(t, network, ds.Config{Poll: poll}, func(s *ds.Server) error {
						return ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
							if own+older > 0 && f.Seq != last+1+f.Missed {
								t.Errorf("frame %d after %d", f.Seq, last)
							}
							last = f.Seq
							if f.Redundant {
								older++
							} else {
								own++
							}
						})
					})
					move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{Redundancy: 3}), "Move")
					for i := range uint64(1000) {
						m := uplinktest.MoveAt(1, i)
						uplinktest.Must(t, move.Send(&m))
						settle(time.Second / 60)
						srv.Poll()
					}
					settle(time.Second)
					srv.Poll()
					st := srv.Stats().RPCs[0]
					if own != st.Messages || own+older != st.Frames() || (older > 0) != (loss > 0) {
						t.Errorf("%d frames of their own payloads, %d with newer ones; %d payloads, %d frames", own, older, st.Messages, st.Frames())
					}
				})
			})
		}
	}
}
