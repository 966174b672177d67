package ds_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
)

// TestWorldMessages sends a message with every tenth tick of a world over a link that loses
// snapshots and repeats reliable messages late. A client that handles snapshots gets each message
// before those from its tick on, or later at once. A client that plays them back gets it with the
// first picture of its tick.
func TestWorldMessages(t *testing.T) {
	for _, plays := range []bool{false, true} {
		bubble(t, fmt.Sprintf("plays=%t", plays), func(t *testing.T) {
			network := lossy(t)
			a, _, joined := serveArena(t, network, 40, never, ds.WorldConfig[mover]{TickHz: 60})
			conn := uplinktest.Dial(t, network, client.Config{})
			stream, err := a.Offer(<-joined)
			uplinktest.Must(t, err)
			if err := stream.SendReliable(1, nil); !errors.Is(err, ds.ErrNotReady) {
				t.Error(err)
			}
			var checked, messages, late int
			var ticks []uint64
			// check checks the new messages, which came between two ticks that the client showed.
			check := func(before, shown uint64) {
				for ; checked < len(ticks); checked++ {
					if tick := ticks[checked]; tick > shown {
						t.Errorf("the message of tick %d came at tick %d", tick, shown)
					} else if tick <= before {
						late++
					}
				}
			}
			shown := uint64(0)
			cfg := client.SnapshotConfig[mover]{
				OnMessage: func(tick uint64, b []byte) {
					if messages++; tick != uint64(10*messages) || binary.LittleEndian.Uint64(b) != tick {
						t.Errorf("message %d is of tick %d: %x", messages, tick, b)
					}
					ticks = append(ticks, tick)
				},
			}
			if plays {
				cfg.Interpolate = &interpolate.Config{}
			} else {
				cfg.Handle = func(s *client.Snapshot[mover]) {
					check(shown, max(shown, s.Tick))
					shown = max(shown, s.Tick)
				}
			}
			view, err := client.SubscribeSnapshots(t.Context(), conn, "movers", cfg)
			uplinktest.Must(t, err)
			const last = 600
			var out interpolate.Sample[mover]
			for tick := uint64(1); tick <= last+60; tick++ {
				if tick <= last {
					a.put(tick)
					if tick%10 == 0 {
						uplinktest.Must(t, stream.SendReliable(tick, binary.LittleEndian.AppendUint64(nil, tick)))
					}
					_, err := a.Send()
					uplinktest.Must(t, err)
				}
				settle(time.Second / 60)
				if plays && view.Sample(time.Now(), &out) {
					now := uint64(out.Time.Seconds()*60 + 1e-6)
					check(shown, now)
					shown = now
				}
			}
			if messages != last/10 || plays && late > last/10/6 || !plays && late == 0 {
				t.Errorf("%d of %d messages came, %d of them after the snapshot of their tick", messages, last/10, late)
			}
		})
	}
}
