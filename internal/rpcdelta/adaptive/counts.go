package adaptive

import "github.com/uplink-rpc/uplink/internal/codec/fnv"

// Shape describes which frames a payload contains.
type Shape struct {
	// Frames is the number of frames in the payload.
	Frames uint8
	// Repeats reports that an earlier payload contains some of the frames.
	Repeats bool
}

// countModel predicts the shape of a payload from the shapes of the accepted payloads.
type countModel struct {
	// probs[c][i-1] is the probability, in units of 1/65536, that a payload with at least i frames
	// has exactly i. c compares the number of frames of the last payload with i.
	probs [3][MaxFrames - 1]uint16
	last  uint8 // number of frames of the newest payload learned
	// repeats[r] is the probability, in units of 1/65536, that a payload of several frames repeats
	// none. r is the field repeated.
	repeats  [2]uint16
	repeated uint8 // 1 if the last payload of several frames repeated one, otherwise 0
}

// Initial probabilities: most payloads have a single frame.
const (
	oneFrame     = 60500
	enoughFrames = 1 << 15
)

// repeatsNone are the initial probabilities that a payload repeats no frame.
var repeatsNone = [2]uint16{60500, 5000}

func (m *countModel) reset() {
	for i := range m.probs {
		for j := range m.probs[i] {
			m.probs[i][j] = enoughFrames
		}
		m.probs[i][0] = oneFrame
	}
	m.last, m.repeats, m.repeated = 1, repeatsNone, 0
}

// enough returns the probability that a payload with at least i frames has exactly i.
func (m *countModel) enough(i int) *uint16 {
	context := 0
	switch {
	case int(m.last) == i:
		context = 1
	case int(m.last) > i:
		context = 2
	}
	return &m.probs[context][i-1]
}

// learn learns the shape of an accepted payload. It ignores shapes without frames.
func (m *countModel) learn(s Shape) {
	n := int(s.Frames)
	if n == 0 {
		return
	}
	for i := 1; i <= min(n, MaxFrames-1); i++ {
		adaptProb(m.enough(i), i == n)
	}
	m.last = s.Frames
	if n == 1 {
		return
	}
	adaptProb(&m.repeats[m.repeated], !s.Repeats)
	if m.repeated = 0; s.Repeats {
		m.repeated = 1
	}
}

func (m *countModel) hash(h fnv.Hash) fnv.Hash {
	for i := range m.probs {
		h = fold16(h, m.probs[i][:])
	}
	h = fold16(h, m.repeats[:])
	return h.Add(uint64(m.last) | uint64(m.repeated)<<8)
}
