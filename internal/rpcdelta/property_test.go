package rpcdelta

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schematest"
)

// TestAnyStream combines random schemas, frames and links with restarts and outages. Each delivered
// frame is the one that was sent, once and in order, and only frames that were lost or arrived late
// are missing.
func TestAnyStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := func(limit int, name string) float64 { return float64(rapid.IntRange(0, limit).Draw(t, name)) / 100 }
		direction := func(name string) linkConfig {
			return linkConfig{
				Delay:  rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(40, 100)).Draw(t, name+" delay"),
				Jitter: rapid.IntRange(0, 20).Draw(t, name+" jitter"),
				Loss:   percent(50, name+" loss"), Duplicate: percent(20, name+" duplicate"),
				Burst: float64(rapid.IntRange(1, 10).Draw(t, name+" burst")),
			}
		}
		cfg := streamConfig{
			Seed:  rapid.Uint64().Draw(t, "seed"),
			Codec: rapid.SampledFrom(Codecs()).Draw(t, "codec"), Redundancy: rapid.IntRange(RedundancyOff, MaxRedundancy).Draw(t, "redundancy"),
			Ring: rapid.IntRange(2, MaxRing).Draw(t, "ring"), PeerRing: rapid.IntRange(2, MaxRing).Draw(t, "peer ring"),
			RPC:      rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(20, MaxRPC)).Draw(t, "rpc"),
			AckEvery: rapid.IntRange(1, 70).Draw(t, "ack every"),
			Every:    rapid.IntRange(-MaxHeld, MaxHeld).Draw(t, "every"),
			Up:       direction("up"), Down: direction("down"),
			DeliverLate: rapid.Bool().Draw(t, "deliver late"),
		}
		x := newStream(t, schematest.FromRapid(t).Schema(), cfg)
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			n := rapid.IntRange(1, 600).Draw(t, "frames")
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				x.run(t, n)
			case 1:
				x.up.down = true
				x.run(t, n)
				x.up.down = false
			case 2:
				x.down.down = true
				x.run(t, n)
				x.down.down = false
			case 3:
				x.restartDecoder(t)
				// Acks of the time before it knew anything ask for a reset each, and may
				// come after newer ones: then the epoch turns quickly.
				x.expected = []error{ErrBaselineMissing, ErrAck}
				x.run(t, n)
			}
		}
		if sum := x.delivered - x.late + x.missed; x.restarts == 0 && sum != uint64(x.last+1) {
			x.fatalf(t, "%d delivered, %d late, %d missed: %d in all", x.delivered, x.late, x.missed, x.last+1)
		}
		// In the end the network heals, and the stream with it.
		x.up.linkConfig, x.down.linkConfig, x.cfg.AckEvery = linkConfig{Delay: 1}, linkConfig{Delay: 1}, 1
		x.run(t, 100)
		x.cfg.Every = 1
		x.run(t, 2)
		x.expected = nil
		before := x.delivered
		x.run(t, 20)
		if x.delivered != before+20 {
			t.Fatalf("%+v: %d of 20 frames are delivered", cfg, x.delivered-before)
		}
	})
}
