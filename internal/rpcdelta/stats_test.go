package rpcdelta

import (
	"testing"

	"pgregory.net/rapid"
)

// TestDeliveryStats compares the delivery statistics of the encoder with the decoder's counts.
func TestDeliveryStats(t *testing.T) {
	s := smallSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		link := linkConfig{Delay: 2, Loss: rapid.Float64Range(0, 0.3).Draw(t, "loss")}
		x := newStream(t, s, streamConfig{
			Seed: rapid.Uint64().Draw(t, "seed"), Codec: Adaptive, AckEvery: 3,
			Redundancy: rapid.IntRange(RedundancyOff, 3).Draw(t, "redundancy"), Every: rapid.IntRange(1, 2).Draw(t, "every"),
			Up: link, Down: link,
		})
		x.run(t, 200)
		x.up.Loss, x.down.Loss = 0, 0
		x.run(t, 60)
		if x.enc.epoch != 0 {
			t.Skip("what was on its way at the end of an epoch is not known")
		}
		f, newer := x.enc.DeliveryStats(), uint64(x.last)-x.enc.base // newer ones were all delivered
		if want := x.delivered - newer; f.Delivered != want || f.Missed != x.missed {
			t.Errorf("%+v, want %d frames delivered and %d missed", f, want, x.missed)
		}
		payloads := uint64(0)
		for _, n := range x.names {
			if n <= x.enc.base {
				payloads++
			}
		}
		if sum := f.Processed + f.Lost; sum > payloads || sum+30 < payloads { // those before the first that came
			t.Errorf("%+v, want the status of %d payloads", f, payloads)
		}
		if x.older == 0 && x.cfg.Every == 1 && f.Processed != f.Delivered {
			t.Errorf("%+v, though each payload has one frame", f)
		}
	})
}

// TestDeliveryStatsOfEpochs verifies that the counts never exceed the number of sent frames if
// restarts of the decoder end epochs.
func TestDeliveryStatsOfEpochs(t *testing.T) {
	x := newStream(t, smallSchema(t), streamConfig{Seed: 3, Codec: RLE, AckEvery: 3, Up: linkConfig{Delay: 2}, Down: linkConfig{Delay: 2}})
	x.expected, x.loose = []error{ErrBaselineMissing, ErrDesync, ErrAck}, true
	x.run(t, 100)
	before := x.enc.DeliveryStats()
	x.restartDecoder(t)
	x.run(t, 100)
	f := x.enc.DeliveryStats()
	if x.enc.epoch == 0 || f.Delivered <= before.Delivered || f.Delivered+f.Missed > x.sent || f.Processed+f.Lost > uint64(len(x.names)) {
		t.Errorf("%+v, then %+v of %d frames in epoch %d", before, f, x.sent, x.enc.epoch)
	}
}
