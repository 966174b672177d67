package client_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestUrgentUnderLimit checks that urgent frames leave at once while a limit puts four frames into
// each payload, unless another one did just before, and that the limit is nearly kept.
func TestUrgentUnderLimit(t *testing.T) {
	for _, preset := range []client.Preset{client.LowLatency, client.Balanced} {
		t.Run(preset.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := dialMatch(t, 0, 1, client.Config{Preset: preset, Bandwidth: 5_000}) // less than it needs
				m.call(20 * time.Second)
				left := 0
				m.network.Watch(func(from, _ netip.AddrPort, b []byte) {
					if from.String() != uplinktest.Addr && uplinktest.Kind(b) == uplinktest.DataKind {
						left++
					}
				})
				before := m.move.Stats()
				urgent, late, waited := 0, 0, 0
				for last := uplinktest.MoveAt(1, m.next-1); urgent < 100; time.Sleep(time.Second / 60) {
					now := uplinktest.MoveAt(1, m.next)
					sent := left
					m.send()
					switch leaves := left > sent; {
					case now.Buttons != last.Buttons || now.Crouched != last.Crouched:
						if urgent++; !leaves {
							late++
						}
					case !leaves:
						waited++
					}
					last = now
				}
				after := m.move.Stats()
				frames, payloads := after.Frames()-before.Frames(), after.Messages-before.Messages
				if every := float64(frames) / float64(payloads); m.conn.Stats().Budget.FramesPerPayload != 4 || every < 3.4 {
					t.Errorf("%.3f frames per payload, want nearly 4", every)
				}
				if late > 20 || waited < 2*int(payloads) {
					t.Errorf("%d of %d urgent frames waited, and %d others", late, urgent, waited)
				}
			})
		})
	}
}
