package adaptive

import (
	"bytes"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// flagInputs are the inputs of the model of a flag: the bit that is set if a field or a component
// differs from its reference.
type flagInputs uint8

const (
	refChanged     flagInputs = 1 << iota // the reference differs from its predecessor
	refChangedFar                         // the reference differs from the frame dist before it
	lastFlagSet                           // the last flag coded was set
	buttonsChanged                        // a bit set of the frame differs from its reference
	frameChanged                          // the frame differs from its reference; not an input
)

const numFlagInputs = 4

// flagWeights are the weights of the inputs: log odds in Q11.
type flagWeights [numFlagInputs]int16

// groupFlag is the model of a field's flag.
type groupFlag struct {
	bias [classes]int16
	w    flagWeights
}

// compFlag is the model of a component's flag.
type compFlag struct {
	bias int16
	w    flagWeights
}

// lastFlagInput returns the input that the next flag reads: whether this one was set.
func lastFlagInput(changed bool) (x flagInputs) {
	if changed {
		x = lastFlagSet
	}
	return x
}

// differs returns 1 if a and b differ, otherwise 0.
func differs(a, b int32) (x flagInputs) {
	if a != b {
		x = 1
	}
	return x
}

// bytesInputs returns the inputs of a byte string.
func bytesInputs(base, prev, b []byte) (x flagInputs) {
	if !bytes.Equal(base, prev) {
		x = refChanged
	}
	if !bytes.Equal(base, b) {
		x |= frameChanged
	}
	return x
}

func unionInputs(moved []byte) (x flagInputs) {
	for _, m := range moved {
		x |= flagInputs(m)
	}
	return x
}

// probability returns the probability that the flag is set, in units of 1/65536.
func (w *flagWeights) probability(bias int16, x flagInputs) uint32 {
	m := &inputMasks[x&(1<<numFlagInputs-1)]
	s := int32(bias) + int32(w[0])&m[0] + int32(w[1])&m[1] + int32(w[2])&m[2] + int32(w[3])&m[3]
	return uint32(squash[(max(-1<<14, min(1<<14-1, s))+1<<14)>>squashBits])
}

// learn adds step to the bias and to the weights of the inputs that are set.
func (w *flagWeights) learn(bias *int16, x flagInputs, step int32) {
	m := &inputMasks[x&(1<<numFlagInputs-1)]
	addClamped(bias, step)
	addClamped(&w[0], step&m[0])
	addClamped(&w[1], step&m[1])
	addClamped(&w[2], step&m[2])
	addClamped(&w[3], step&m[3])
}

// inputMasks has, for each set of inputs, all bits set for the inputs in it.
var inputMasks = func() (t [1 << numFlagInputs][numFlagInputs]int32) {
	for x := range t {
		for i := range t[x] {
			t[x][i] = -int32(x >> i & 1)
		}
	}
	return t
}()

func addClamped(w *int16, d int32) {
	*w = int16(max(-20000, min(20000, int32(*w)+d)))
}

// flagStep returns the step of the weights after a flag with the given predicted probability, in
// units of 1/65536. A larger shift means slower learning.
func flagStep(changed bool, probability uint32, shift int) int32 {
	e := -int32(probability)
	if changed {
		e += 1 << 16
	}
	s := (4 + shift) & 31
	return (e + 1<<s>>1) >> s
}

// squashBits is the number of low bits of log odds in Q11 that are ignored.
const squashBits = 6

// squash maps log odds in Q5 to a probability in units of 1/65536, limited to 48 through 65488.
var squash = func() (t [1 << (15 - squashBits)]uint16) {
	// 65536/(1+exp(-i)) for i = -9..10, interpolated by cubics
	knots := [20]int64{
		8, 22, 60, 162, 439, 1179, 3108, 7812, 17625, 32768,
		47911, 57724, 62428, 64357, 65097, 65374, 65476, 65514, 65528, 65533,
	}
	for i := range t {
		k, f := i>>5, int64(i&31)
		p0, p1, p2, p3 := knots[k], knots[k+1], knots[k+2], knots[k+3]
		a := 2 * p1
		b := p2 - p0
		c := 2*p0 - 5*p1 + 4*p2 - p3
		d := 3*(p1-p2) + p3 - p0
		v := (a + (b+(c+d*f/32)*f/32)*f/32) / 2
		t[i] = uint16(max(48, min(1<<16-48, v)))
	}
	return t
}()

// valueList learns a component's frequent values, the most frequent first.
type valueList struct {
	frequentValues
	count [listSize]uint8
	gain  int16 // mean bits saved by using the list, Q10
}

// frequentValues is the part of a valueList that coding reads.
type frequentValues struct {
	values   [listSize]int32
	rankProb [listSize]uint16 // probability of a rank, given that no lower rank matched
	anyProb  uint16           // probability that a changed value is in the list
	n        uint8            // number of values
	enabled  bool             // the list saves bits
}

const listSize = 6

func (l *valueList) reset() {
	*l = valueList{gain: -200}
	l.anyProb = 8000
	for i := range l.rankProb {
		l.rankProb[i] = 26000
	}
}

// rank returns the rank of x, or -1.
func (l *frequentValues) rank(x int32) int {
	for i := range min(l.n, listSize) {
		if l.values[i] == x {
			return int(i)
		}
	}
	return -1
}

// lastRank returns the last rank whose value is not ref. If no lower rank matched, the value has
// this rank for certain, so its bit is not coded.
func (l *frequentValues) lastRank(ref int32) int {
	n := int(min(l.n, listSize)) - 1
	if n >= 0 && l.values[n] == ref {
		n--
	}
	return n
}

// learn counts x, which differs from the reference; residual is the residual without the
// list.
func (l *valueList) learn(x, ref int32, residual int64) {
	save := log2(max(residual, -residual)) + 1600
	rank := l.rank(x)
	if rank < 0 {
		l.addGain(log2(65535-int64(l.anyProb)) - 16<<10)
		l.anyProb -= l.anyProb >> 5
		l.insert(x)
		return
	}
	l.addGain(save + log2(int64(l.anyProb)) - 16<<10 - 1100)
	l.anyProb += (65500 - l.anyProb) >> 5
	for i := range rank {
		if l.values[i] != ref {
			l.rankProb[i] -= l.rankProb[i] >> 5
		}
	}
	l.rankProb[rank] += (65500 - l.rankProb[rank]) >> 5
	l.count[rank] += 2
	if l.count[rank] > 200 {
		for i := range l.count {
			l.count[i] = (l.count[i] + 1) / 2
		}
	}
	if rank > 0 && l.count[rank] > l.count[rank-1] {
		l.values[rank], l.values[rank-1] = l.values[rank-1], l.values[rank]
		l.count[rank], l.count[rank-1] = l.count[rank-1], l.count[rank]
	}
}

// addGain adds the bits that the list would have saved.
func (l *valueList) addGain(saved int32) {
	l.gain += int16((saved - int32(l.gain)) >> 5)
	l.enabled = l.gain > 0
}

// insert adds x. If the list is full, x decrements the count of the last value and replaces it once
// that count is 0.
func (l *valueList) insert(x int32) {
	if l.n < listSize {
		l.values[l.n], l.count[l.n] = x, 1
		l.n++
		return
	}
	end := listSize - 1
	if l.count[end] > 1 {
		l.count[end]--
		return
	}
	l.values[end], l.count[end] = x, 1
}

// adaptProb moves a probability towards the outcome.
func adaptProb(p *uint16, yes bool) {
	if yes {
		*p += (65500 - *p) >> 4
	} else {
		*p -= *p >> 4
	}
}

// bytesModel holds the probabilities of a byte string.
type bytesModel struct {
	// unchanged is the probability that a byte does not change, by whether the byte before it
	// changes and whether this byte changed in the reference.
	unchanged [4]uint16
	// bitUnchanged is the probability that a bit of a changed byte does not change, by position and
	// whether a higher bit changes.
	bitUnchanged [16]uint16
}

// sameLengthProb is the probability that a changed byte string keeps its length, of 65536.
const sameLengthProb = 57000

func (b *bytesModel) reset() {
	b.unchanged = [4]uint16{58000, 36000, 30000, 16000}
	for i := range b.bitUnchanged {
		b.bitUnchanged[i] = 36000
	}
}

// context returns the probability for byte i. neighbor reports whether the byte before it changes.
func (b *bytesModel) context(neighbor bool, i int, ref, prev []byte) *uint16 {
	k := 0
	if neighbor {
		k = 1
	}
	if i >= len(prev) || prev[i] != ref[i] {
		k |= 2
	}
	return &b.unchanged[k]
}

// learn learns the string x, given the strings of the reference and of the frame before it.
func (b *bytesModel) learn(x, ref, prev []byte) {
	neighbor := false
	for i := range min(len(x), len(ref)) {
		v := x[i] ^ ref[i]
		adaptProb(b.context(neighbor, i, ref, prev), v == 0)
		neighbor = v != 0
		if !neighbor {
			continue
		}
		high := 0
		for j := 7; j >= 0; j-- {
			set := v>>j&1 == 1
			adaptProb(&b.bitUnchanged[j<<1|high], !set)
			if set {
				high = 1
			}
		}
	}
}

func (l *valueList) hash(h fnv.Hash) fnv.Hash {
	for i, v := range l.values {
		h = h.Add(uint64(uint32(v))<<32 | uint64(l.rankProb[i])<<16 | uint64(l.count[i]))
	}
	return h.Add(uint64(l.anyProb)<<32 | uint64(uint16(l.gain))<<16 | uint64(l.n))
}
