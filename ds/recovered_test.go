package ds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestRecovered verifies that only frames whose first datagram is missing count as recovered, and
// only copies as redundant, however many frames wait for later ones.
func TestRecovered(t *testing.T) {
	lossy := simnet.Config{Loss: 0.1, Burst: 1, Seed: 17}
	for name, c := range map[string]struct {
		link       simnet.Config
		preset     client.Preset
		redundancy int
		recovers   bool
	}{
		"without batching":             {link: lossy, preset: client.LowLatency, redundancy: 2, recovers: true},
		"with batching":                {link: lossy, preset: client.Balanced, redundancy: 2, recovers: true},
		"with repair":                  {link: lossy, preset: client.LowBandwidth, redundancy: rpcdelta.RedundancyAuto, recovers: true},
		"batching, without redundancy": {link: lossy, preset: client.Balanced, redundancy: rpcdelta.RedundancyOff},
		"congestion":                   {link: simnet.Config{Loss: 0.5, Burst: 1, Seed: 18}, preset: client.LowLatency, redundancy: rpcdelta.RedundancyOff},
		"batching, without loss":       {preset: client.Balanced, redundancy: rpcdelta.RedundancyAuto},
		"redundancy without loss":      {preset: client.Balanced, redundancy: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := linked{rpcs: 1, rtt: 40 * time.Millisecond, link: c.link}
				x.client.Preset, x.client.Redundancy = c.preset, c.redundancy
				p := x.play(t, 3000)
				got, sent := &p.got[0], &p.sent[0]
				later := got.Frames() - got.Messages // at most: each payload has a frame that none had before
				t.Logf("seed %d: %d frames, %d payloads of %d, %d recovered, %d of %d redundant", c.link.Seed, got.Frames(), got.Messages, sent.Messages, got.Recovered, got.Redundant, sent.Redundant)
				// A lost heartbeat seems to be repaired if frames wait because of congestion
				// only.
				switch lost := sent.Messages - got.Messages; {
				case !c.recovers && got.Recovered > lost/300, !c.preset.Repair && got.Recovered > later:
					t.Errorf("%d recovered, at most %d", got.Recovered, later)
				case c.recovers && got.Recovered < lost*8/10:
					t.Errorf("%d recovered, but %d payloads were lost", got.Recovered, lost)
				}
				if got.Redundant > sent.Redundant+got.Recovered || c.link.Loss == 0 && got.Redundant != sent.Redundant {
					t.Errorf("%d redundant frames received, %d sent", got.Redundant, sent.Redundant)
				}
			})
		})
	}
}
