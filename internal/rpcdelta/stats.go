package rpcdelta

import (
	"slices"
)

// AgeBounds are the upper bounds of the buckets of [Stats].BaselineAge, in frames. The last
// bucket counts older baselines.
var AgeBounds = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128}

// Stats counts frames. Not safe for concurrent use.
type Stats struct {
	// Delta, Keyframe and Reset count the frames of each kind.
	Delta, Keyframe, Reset uint64
	// FullBits, HeaderBits and PayloadBits are the sums of these fields of [Info].
	FullBits, HeaderBits, PayloadBits uint64
	// BaselineAge counts delta frames by the age of their baseline, in the buckets of
	// [AgeBounds]. AgeSum is the sum of the ages.
	BaselineAge [len(AgeBounds) + 1]uint64
	AgeSum      uint64
	// Redundant counts the redundant frames in payloads: Info.Redundant without Info.Held.
	Redundant uint64
}

// Count adds a frame and the i.Held frames that were held back for its payload. Each of these
// counts as a delta frame whose baseline has age 1.
func (s *Stats) Count(i *Info) {
	s.Delta += uint64(i.Held)
	s.BaselineAge[0] += uint64(i.Held)
	s.AgeSum += uint64(i.Held)
	s.Redundant += uint64(i.Redundant - i.Held)
	s.FullBits += uint64(i.FullBits)
	s.HeaderBits += uint64(i.HeaderBits)
	s.PayloadBits += uint64(i.PayloadBits)
	switch i.Kind {
	case Delta:
		s.Delta++
		bucket, _ := slices.BinarySearch(AgeBounds[:], i.BaselineAge)
		s.BaselineAge[bucket]++
		s.AgeSum += uint64(i.BaselineAge)
	case Keyframe:
		s.Keyframe++
	case Reset:
		s.Reset++
	}
}

// Add adds the counts of o.
func (s *Stats) Add(o *Stats) {
	s.Delta += o.Delta
	s.Keyframe += o.Keyframe
	s.Reset += o.Reset
	s.FullBits += o.FullBits
	s.HeaderBits += o.HeaderBits
	s.PayloadBits += o.PayloadBits
	s.AgeSum += o.AgeSum
	s.Redundant += o.Redundant
	for i, n := range o.BaselineAge {
		s.BaselineAge[i] += n
	}
}

// Frames returns the number of frames of all kinds.
func (s *Stats) Frames() uint64 { return s.Delta + s.Keyframe + s.Reset }

// DeliveryStats counts the payloads and frames of an encoder by delivery status, as far as acks
// report it. Payloads in flight at the end of an epoch are not counted.
type DeliveryStats struct {
	// Processed and Lost count payloads. A lost payload never arrived or arrived too late. Payloads
	// lost before the first processed payload of their epoch are not counted.
	Processed, Lost uint64
	// Delivered counts frames that the decoder returned in order. Missed counts frames between them
	// of which no copy arrived in time.
	Delivered, Missed uint64
}

// Add adds the counts of o.
func (f *DeliveryStats) Add(o *DeliveryStats) {
	f.Processed += o.Processed
	f.Lost += o.Lost
	f.Delivered += o.Delivered
	f.Missed += o.Missed
}
