package ds_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestBandwidth verifies that a connection reduces redundancy and then batches frames until it
// keeps to its bandwidth limit, loses no frame by that, and returns when the limit permits it.
func TestBandwidth(t *testing.T) {
	measures(t)
	for _, c := range []struct {
		limit, redundancy, hz int
		every                 float64 // frames per payload
		want                  int     // redundancy
		over                  bool
	}{
		{limit: 100_000, redundancy: 3, hz: 60, every: 1, want: rpcdelta.MaxRedundancy},
		{limit: 31_000, redundancy: 3, hz: 60, every: 1.5, want: 2},
		{limit: 22_900, redundancy: 3, hz: 60, every: 2, want: 2},
		{limit: 5_000, redundancy: 3, hz: 60, every: 4, over: true},
		{limit: 15_000, redundancy: rpcdelta.RedundancyOff, hz: 120, every: 4, over: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := linkedBy(t, 60*ms, simnet.Config{})
			journal := uplinktest.NewJournal(t, 1)
			serve(t, network, ds.Config{}, handles("Move", journal.Handle))
			conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive, Redundancy: c.redundancy}, Bandwidth: c.limit})
			moves, next := uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: float64(c.hz)}), 0
			call := func(hz, calls int) (mean float64) {
				before := conn.Stats().Transport
				play(t, moves, 1, uint64(next), calls, time.Duration(hz))
				next += calls
				after := conn.Stats().Transport
				bytes := after.BytesSent - before.BytesSent + endpoint.IPSize*(after.DatagramsSent-before.DatagramsSent)
				return 8 * float64(bytes) * float64(hz) / float64(calls)
			}
			call(c.hz, 15*c.hz)
			over := conn.Stats().Budget.OverBits
			mean, got := call(c.hz, 10*c.hz), conn.Stats().Budget
			if got.Limit != c.limit || got.FramesPerPayload != c.every || got.Redundancy != c.want {
				t.Errorf("%+v, want %+v", got, c)
			}
			if above := mean > 1.02*float64(c.limit); above != c.over || (got.OverBits > over+uint64(c.limit)/10) != c.over || math.Abs(got.BitsPerSecond/mean-1) > 0.2 {
				t.Errorf("%.0f bits a second above a limit of %d: %+v", mean, c.limit, got)
			}
			call(10, 600) // room
			if got := conn.Stats().Budget; !c.over && (got.FramesPerPayload != 1 || got.Redundancy < 3) {
				t.Errorf("with room for all: %+v", got)
			}
			time.Sleep(time.Second)
			if l := journal.Only(); l.Frames() != uint64(next) || l.Missed != 0 {
				t.Errorf("%d frames came, %d are missed", l.Frames(), l.Missed)
			}
		})
	}
}
