package adaptive

import "github.com/uplink-rpc/uplink/internal/codec/fnv"

// countModel predicts the number of frames of a payload from those of the accepted payloads.
type countModel struct {
	// probs are the probabilities, of 65536, that a payload has no more than i frames if it has at
	// least i: by comparison of the last payload's number with i, and by i-1.
	probs [3][MaxFrames - 1]uint16
	last  uint8 // number of frames of the newest payload learned
}

// Initial probabilities: most payloads have a single frame.
const (
	oneFrame     = 60500
	enoughFrames = 1 << 15
)

func (m *countModel) reset() {
	for i := range m.probs {
		for j := range m.probs[i] {
			m.probs[i][j] = enoughFrames
		}
		m.probs[i][0] = oneFrame
	}
	m.last = 1
}

// enough returns the probability that a payload with at least i frames has no more.
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

// learn learns from an accepted payload of n frames; 0 is none.
func (m *countModel) learn(n int) {
	if n == 0 {
		return
	}
	for i := 1; i <= min(n, MaxFrames-1); i++ {
		adaptProb(m.enough(i), i == n)
	}
	m.last = uint8(n)
}

func (m *countModel) hash(h fnv.Hash) fnv.Hash {
	for i := range m.probs {
		h = fold16(h, m.probs[i][:])
	}
	return h.Add(uint64(m.last))
}
