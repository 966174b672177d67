package client_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestLinkStats holds what a connection says of its link against the link.
func TestLinkStats(t *testing.T) {
	for _, link := range []simnet.Config{{}, {Loss: 0.1}, {Loss: 0.2, Burst: 6}} {
		synctest.Test(t, func(t *testing.T) {
			up := link
			up.Delay, up.Seed = 40*ms, 3
			down := simnet.Config{Delay: 40 * ms, Loss: link.Loss / 2, Seed: 4}
			network := uplinktest.NewNetwork(t, up, down)
			journal := uplinktest.NewJournal(t, 1)
			serve(t, network, journal)
			conn := uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyAuto})
			move := uplinktest.Bind(t, conn, "Move")
			var loss, burst, up1, down1, n float64
			for i := range uint64(6000) {
				m := uplinktest.MoveAt(1, i)
				uplinktest.Must(t, move.Send(&m))
				time.Sleep(time.Second / 60)
				if i > 1000 && i%10 == 0 {
					st := conn.Stats()
					loss, burst, n = loss+st.RPCs[0].Loss, burst+st.RPCs[0].Burst, n+1
					up1, down1 = up1+st.SentBitsPerSecond, down1+st.ReceivedBitsPerSecond
				}
			}
			st := conn.Stats()
			mean := func(sum float64) float64 { return sum / n }
			if got := mean(loss); math.Abs(got-link.Loss) > 0.15*link.Loss {
				t.Errorf("loss %v", got)
			}
			// Of single losses, some happen to follow one another.
			want := max(link.Burst, 1/(1-link.Loss))
			if got := mean(burst); math.Abs(got/want-1) > 0.3 || link.Loss == 0 && got != 1 {
				t.Errorf("burst %v, want %v", got, want)
			}
			if r := st.RPCs[0].Redundancy; (r > 0) != (link.Loss > 0) {
				t.Errorf("redundancy %d", r)
			}
			if math.Abs(st.Loss-down.Loss) > 0.25*down.Loss || st.RTT < 80*ms || st.RTT > 90*ms {
				t.Errorf("the server's loss is %v, the round trip %v", st.Loss, st.RTT)
			}
			tr := st.Transport
			for what, bits := range map[string][2]float64{
				"up":   {mean(up1), 8 * float64(tr.BytesSent+transport.IPSize*tr.DatagramsSent) / 100},
				"down": {mean(down1), 8 * float64(tr.BytesReceived+transport.IPSize*tr.DatagramsReceived) / 100},
			} {
				if math.Abs(bits[0]/bits[1]-1) > 0.05 {
					t.Errorf("%s: %v bits a second, want %v", what, bits[0], bits[1])
				}
			}
		})
	}
}

// TestNoReconnect: a lost connection ends for good, with the reason.
func TestNoReconnect(t *testing.T) {
	for want, end := range map[error]func(*uplinktest.Network, *uplinktest.Server, *ds.Player){
		client.ErrTimeout:  func(n *uplinktest.Network, _ *uplinktest.Server, _ *ds.Player) { n.Crash(t, uplinktest.Addr) },
		client.ErrShutdown: func(_ *uplinktest.Network, s *uplinktest.Server, _ *ds.Player) { uplinktest.Must(t, s.Close()) },
		client.ErrKicked:   func(_ *uplinktest.Network, _ *uplinktest.Server, p *ds.Player) { p.Kick("enough") },
	} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newNetwork(t, 0, 9)
				var player *ds.Player
				srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }}, func(s *ds.Server) error {
					return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
				})
				conn := uplinktest.Dial(t, network, client.Config{NoReconnect: true})
				move := uplinktest.Bind(t, conn, "Move")
				m := uplinktest.MoveAt(1, 0)
				uplinktest.Must(t, move.Send(&m))
				uplinktest.Must(t, conn.Err())
				end(network, srv, player)
				settle(15 * time.Second)
				lost := !errors.Is(want, client.ErrKicked)
				_, bind := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{})
				for what, err := range map[string]error{"Err": conn.Err(), "Send": move.Send(&m), "Flush": conn.Flush(), "message": conn.SendReliable(nil), "Bind": bind} {
					if !errors.Is(err, want) || errors.Is(err, client.ErrLost) != lost {
						t.Errorf("%s: %v", what, err)
					}
				}
				uplinktest.Must(t, conn.Close())
				if err := move.Send(&m); !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
		})
	}
}
