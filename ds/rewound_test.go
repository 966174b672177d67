package ds_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// rewoundObject runs to and fro, jumps, and blinks each 0.9 s.
type rewoundObject struct {
	Position schema.Vec3 `uplink:"resolution=0.001,min=-100,max=1000" interpolate:"position"`
	Jumps    uint8       `interpolate:"teleports"`
}

func rewoundObjectAt(tick uint64) rewoundObject {
	t := float64(tick) / 60
	u, z := math.Mod(t, 46.0/60), math.Mod(t, 1.02)
	k := tick / 53
	return rewoundObject{schema.Vec3{X: 5 * min(u, 46.0/60-u), Y: float64(8 * k), Z: 5*z - 4.9*z*z}, uint8(k)}
}

// TestRewound compares what a client shows with the history of the server, which has each tick of
// the game, a while after the client has shown it: for worlds that are sent in each tick and less
// often.
func TestRewound(t *testing.T) {
	const ticks = 1800
	for _, hz := range []float64{60, 30, 20, 10} {
		delay := max(200*ms, time.Duration(4*float64(time.Second)/hz)) // for bursts of three
		for _, areas := range []bool{false, true} {
			for _, link := range []simnet.Config{{}, {Loss: 0.1, Jitter: 5 * ms}} {
				if testing.Short() && hz != 20 {
					continue
				}
				bubble(t, fmt.Sprintf("%v Hz/areas=%v/loss=%v", hz, areas, link.Loss), func(t *testing.T) {
					network := linkedBy(t, 60*ms, link)
					joined := make(chan *ds.Player, 1)
					var world *ds.World[rewoundObject]
					serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(s *ds.Server) (err error) {
						world, err = ds.NewWorld(s, "movers", ds.WorldConfig[rewoundObject]{SendHz: hz, Areas: areas})
						return err
					})
					conn := uplinktest.Dial(t, network, client.Config{})
					stream, err := world.Offer(<-joined)
					uplinktest.Must(t, err)
					stream.See(1)
					view, err := client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[rewoundObject]{Interpolate: &interpolate.Config{Delay: delay}})
					uplinktest.Must(t, err)
					adapter, err := interpolate.Tagged[rewoundObject]()
					uplinktest.Must(t, err)
					past, err := rewind.New(adapter, rewind.Config{TickHz: 60})
					uplinktest.Must(t, err)

					type picture struct {
						at    time.Duration
						where schema.Vec3
					}
					var shown []picture // of the last ticks
					worst, off, all := 0.0, 0, 0
					for tick := uint64(1); tick <= ticks; tick++ {
						o := rewoundObjectAt(tick)
						var in []area.ID
						if areas {
							in = []area.ID{1}
						}
						now := time.Duration(tick) * time.Second / 60
						uplinktest.Must(t, world.Begin(tick))
						uplinktest.Must(t, world.Put(7, 1, &o, in...))
						_, err := world.Send()
						uplinktest.Must(t, err)
						uplinktest.Must(t, past.Add(now, []uint32{7<<8 | 1}, []rewoundObject{o}))

						var s interpolate.Sample[rewoundObject]
						if view.Sample(time.Now(), &s) && len(s.Objects) == 1 && !s.Starved && tick > 120 {
							shown = append(shown, picture{s.Time, s.Objects[0].Position})
						}
						if len(shown) > 6 { // the shot arrives 100 ms later
							p, v := shown[0], stream.Viewer(now)
							shown, v.Delay = shown[1:], delay
							var got rewoundObject
							if !past.Object(v, p.at, 7<<8|1, &got) {
								t.Fatalf("the history lacks the object at %v", p.at)
							}
							a, b := p.where, got.Position
							d := math.Hypot(math.Hypot(a.X-b.X, a.Y-b.Y), a.Z-b.Z)
							worst = max(worst, d)
							if all++; d > 0.005 {
								off++
							}
						}
						settle(time.Second / 60)
					}
					t.Logf("shown and rewound differ by up to %.3f m, by more than 5 mm in %d of %d frames", worst, off, all)
					if all < ticks*8/10 || off > 0 && link.Loss == 0 || off > all/100 {
						t.Error("the server does not rewind to what was shown")
					}
				})
			}
		}
	}
}
