package adaptive

// valueList learns a component's frequent values, the most frequent first.
type valueList struct {
	frequentValues
	count [listSize]uint8
	gain  int16 // mean bits saved by using the list, Q10
}

// frequentValues is the part of a valueList that coding reads.
type frequentValues struct {
	values   [listSize]int32
	rankProb [listSize]uint16 // probability of a rank, if it is none of the ranks before
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

// lastRank returns the last rank whose value is not ref. If the value is none of the ranks before,
// it is this one.
func (l *frequentValues) lastRank(ref int32) int {
	n := int(min(l.n, listSize)) - 1
	if n >= 0 && l.values[n] == ref {
		n--
	}
	return n
}

// learn counts x, which differs from the reference; residual is what would be coded without the
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

// insert adds x. If the list is full, x replaces the last value once the count of that has worn
// off.
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
