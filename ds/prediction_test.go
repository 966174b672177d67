package ds_test

import (
	"math"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/predict"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// steer is the input of a boat, and boat its state. Where it is depends on all inputs so far.
type steer struct {
	Turn int8
}

type boat struct {
	X, Speed int32
}

func (b *boat) step(in *steer) {
	b.Speed = b.Speed*7/8 + int32(in.Turn)
	b.X += b.Speed
}

// TestPrediction plays a boat that its client predicts. Where the server handles each input once,
// no state of the server corrects the prediction. Where it loses some and repeats others, the
// prediction is right again as soon as the server has processed all inputs.
func TestPrediction(t *testing.T) {
	bad := simnet.Config{Loss: 0.15, Burst: 3, Jitter: 10 * ms}
	for name, c := range map[string]struct {
		link   simnet.Config
		synced bool
	}{
		"snapshots":       {},
		"snapshots, loss": {link: bad},
		"state":           {synced: true},
		"state, loss":     {bad, true},
	} {
		bubble(t, name, func(t *testing.T) {
			link := c.link
			network := linkedBy(t, 100*ms, link)
			server := boat{}
			joined := make(chan *ds.Player, 1)
			srv := serve(t, network, ds.Config{Poll: true, TickHz: 60, Joined: func(p *ds.Player) { joined <- p }},
				handles("Steer", func(_ *ds.Player, f ds.Frame[steer]) { server.step(&f.Value) }, ds.JitterBuffer{Depth: 15 * ms, Repeat: 3}, ds.ForPrediction{}))
			world, err := ds.NewWorld(srv.Server, "sea", ds.WorldConfig[boat]{TickHz: 60})
			uplinktest.Must(t, err)
			tick := uint64(0)
			polling(t, time.Second/60, func() {
				srv.Poll()
				select {
				case p := <-joined:
					var err error
					if c.synced {
						_, err = world.OfferState(p, ds.StateConfig{})
					} else {
						_, err = world.Offer(p)
					}
					uplinktest.Must(t, err)
				default:
				}
				tick++
				uplinktest.Must(t, world.Begin(tick))
				uplinktest.Must(t, world.Put(0, 0, &server))
				uplinktest.Must(t, world.Prioritize(0, 1))
				world.Commit()
				_, err := world.Send()
				uplinktest.Must(t, err)
			})

			conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Redundancy: 0}})
			move, err := client.Bind[steer](t.Context(), conn, "Steer", client.BindConfig{RateHz: 60})
			uplinktest.Must(t, err)
			me, err := predict.New(boat{}, predict.Config[boat, steer]{
				Step:     (*boat).step,
				Distance: func(a, b *boat) float64 { return math.Abs(float64(a.X - b.X)) },
			})
			uplinktest.Must(t, err)
			var seen boat // newest state of the server
			correctTo := func(tick uint64, p client.Processed, state boat) {
				processed, ok := move.Processed(p)
				if !ok {
					t.Fatalf("the state of tick %d does not tell what was processed", tick)
				}
				seen = state
				me.Correct(processed, &state)
			}
			var correct func()
			if c.synced {
				view, err := client.SubscribeState(t.Context(), conn, "sea", client.StateConfig[boat]{})
				uplinktest.Must(t, err)
				correct = func() {
					view.Poll(func(u *client.StateUpdate[boat]) {
						if !u.Late && len(u.Objects) == 1 {
							correctTo(u.Tick, u.Processed, u.Objects[0].State)
						}
					})
				}
			} else {
				view, err := client.SubscribeSnapshots(t.Context(), conn, "sea", client.SnapshotConfig[boat]{})
				uplinktest.Must(t, err)
				var s client.Snapshot[boat]
				correct = func() {
					if before := s.Tick; view.Latest(&s) && s.Tick != before {
						correctTo(s.Tick, s.Processed, s.Objects[0])
					}
				}
			}
			next := time.Now()
			for seq := range uint64(1800) {
				in := steer{int8(seq*seq%15) - 7}
				if seq >= 1500 {
					in = steer{}
				}
				uplinktest.Must(t, uplinktest.Sent(move.Send(&in)))
				uplinktest.Must(t, me.Apply(seq, &in))
				next = next.Add(move.Pace().Interval(time.Second / 60))
				settle(time.Until(next))
				correct()
			}
			st := me.Stats()
			buffer := srv.Stats().RPCs[0].Buffer
			t.Logf("%+v, server %+v", st, buffer)
			if n := me.Waiting(); n < 3 || n > 40 {
				t.Errorf("%d inputs wait for the server, with a round-trip time of 100 ms", n)
			}
			if faults := buffer.Missing + buffer.Late; link.Loss == 0 && st.Corrections > faults+3 || link.Loss > 0 && (st.Corrections == 0 || buffer.Repeated == 0) || st.Dropped != 0 || st.States < 1000 {
				t.Errorf("%+v, server %+v", st, buffer)
			}
			settle(time.Second) // nothing is sent: all is processed, and then repeated
			correct()
			if got, want := *me.State(), seen; me.Waiting() != 0 && link.Loss == 0 || me.Waiting() == 0 && got != want {
				t.Errorf("predicted %+v, the server's is %+v; %d inputs wait", got, want, me.Waiting())
			}
		})
	}
}
