package adaptive

// valueList is a component's frequent values, most frequent first.
type valueList struct {
	frequentValues
	count [listSize]uint8
	gain  int16 // mean bits saved by asking, Q10
}

// frequent is what coding reads of a list.
type frequentValues struct {
	values   [listSize]int32
	rankProb [listSize]uint16 // chance of each when the ones before are ruled out
	anyProb  uint16           // chance that a changed value is among them
	n        uint8            // values known
	enabled  bool             // whether asking saves bits
}

const listSize = 6

func (l *valueList) reset() {
	*l = valueList{gain: -200}
	l.anyProb = 8000
	for i := range l.rankProb {
		l.rankProb[i] = 26000
	}
}

// find is the rank of x, or -1.
func (l *frequentValues) rank(x int32) int {
	for i := range min(l.n, listSize) {
		if l.values[i] == x {
			return int(i)
		}
	}
	return -1
}

// last is the rank of the last value that is not base: its chance needs no
// bits once the others are ruled out.
func (l *frequentValues) lastRank(base int32) int {
	n := int(min(l.n, listSize)) - 1
	if n >= 0 && l.values[n] == base {
		n--
	}
	return n
}

// learn counts x, which is not base; miss is the residual that it would have
// cost instead.
func (l *valueList) learn(x, base int32, miss int64) {
	save := log2(max(miss, -miss)) + 1600
	at := l.rank(x)
	if at < 0 {
		l.addGain(log2(65535-int64(l.anyProb)) - 16<<10)
		l.anyProb -= l.anyProb >> 5
		l.insert(x)
		return
	}
	l.addGain(save + log2(int64(l.anyProb)) - 16<<10 - 1100)
	l.anyProb += (65500 - l.anyProb) >> 5
	for i := range at {
		if l.values[i] != base {
			l.rankProb[i] -= l.rankProb[i] >> 5
		}
	}
	l.rankProb[at] += (65500 - l.rankProb[at]) >> 5
	l.count[at] += 2
	if l.count[at] > 200 {
		for i := range l.count {
			l.count[i] = (l.count[i] + 1) / 2
		}
	}
	if at > 0 && l.count[at] > l.count[at-1] {
		l.values[at], l.values[at-1] = l.values[at-1], l.values[at]
		l.count[at], l.count[at-1] = l.count[at-1], l.count[at]
	}
}

// judge notes what asking would have saved.
func (l *valueList) addGain(saved int32) {
	l.gain += int16((saved - int32(l.gain)) >> 5)
	l.enabled = l.gain > 0
}

// admit makes room for x: the last value gives way once it is worn.
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
