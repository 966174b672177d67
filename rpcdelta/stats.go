package rpcdelta

// AgeBounds are the upper bounds of the buckets of [Stats.BaselineAge], in
// frames; a last bucket has what is older.
var AgeBounds = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128}

// Stats counts frames. The zero value has counted none. It is a plain value:
// whoever shares it locks it.
type Stats struct {
	// Frames of each kind.
	Delta, Intra, Reset uint64
	// Sums over all frames of what [Info] has for each.
	FullBits, HeaderBits, PayloadBits uint64
	// BaselineAge counts deltas by the age of their baseline, in the buckets of
	// AgeBounds, and AgeSum adds the ages up.
	BaselineAge [len(AgeBounds) + 1]uint64
	AgeSum      uint64
	// Older is the sum of Info.Older: the frames that rode along in payloads.
	Older uint64
}

// Count adds one frame, and those that were held back for it: each of them is the
// difference from the one before or after it.
func (s *Stats) Count(i *Info) {
	s.Delta += uint64(i.Held)
	s.BaselineAge[0] += uint64(i.Held)
	s.AgeSum += uint64(i.Held)
	s.Older += uint64(i.Older)
	s.FullBits += uint64(i.FullBits)
	s.HeaderBits += uint64(i.HeaderBits)
	s.PayloadBits += uint64(i.PayloadBits)
	switch i.Kind {
	case Delta:
		s.Delta++
		b := 0
		for b < len(AgeBounds) && i.BaselineAge > AgeBounds[b] {
			b++
		}
		s.BaselineAge[b]++
		s.AgeSum += uint64(i.BaselineAge)
	case Intra:
		s.Intra++
	case Reset:
		s.Reset++
	}
}

// Add adds all that o counted.
func (s *Stats) Add(o *Stats) {
	s.Delta += o.Delta
	s.Intra += o.Intra
	s.Reset += o.Reset
	s.FullBits += o.FullBits
	s.HeaderBits += o.HeaderBits
	s.PayloadBits += o.PayloadBits
	s.AgeSum += o.AgeSum
	s.Older += o.Older
	for i, n := range o.BaselineAge {
		s.BaselineAge[i] += n
	}
}

// Frames is the number of frames of all kinds.
func (s *Stats) Frames() uint64 { return s.Delta + s.Intra + s.Reset }
