package adaptive

// valueList is a component's frequent values, most frequent first.
type valueList struct {
	frequent
	count [listSize]uint8
	gain  int16 // mean bits saved by asking, Q10
}

// frequent is what coding reads of a list.
type frequent struct {
	v   [listSize]int32
	hit [listSize]uint16 // chance of each when the ones before are ruled out
	any uint16           // chance that a changed value is among them
	n   uint8            // values known
	on  bool             // whether asking saves bits
}

const listSize = 6

func (l *valueList) reset() {
	*l = valueList{gain: -200}
	l.any = 8000
	for i := range l.hit {
		l.hit[i] = 26000
	}
}

// find is the rank of x, or -1.
func (l *frequent) find(x int32) int {
	for i := range min(l.n, listSize) {
		if l.v[i] == x {
			return int(i)
		}
	}
	return -1
}

// last is the rank of the last value that is not base: its chance needs no
// bits once the others are ruled out.
func (l *frequent) last(base int32) int {
	n := int(min(l.n, listSize)) - 1
	if n >= 0 && l.v[n] == base {
		n--
	}
	return n
}

// learn counts x, which is not base; miss is the residual that it would have
// cost instead.
func (l *valueList) learn(x, base int32, miss int64) {
	save := log2(max(miss, -miss)) + 1600
	at := l.find(x)
	if at < 0 {
		l.judge(log2(65535-int64(l.any)) - 16<<10)
		l.any -= l.any >> 5
		l.admit(x)
		return
	}
	l.judge(save + log2(int64(l.any)) - 16<<10 - 1100)
	l.any += (65500 - l.any) >> 5
	for i := range at {
		if l.v[i] != base {
			l.hit[i] -= l.hit[i] >> 5
		}
	}
	l.hit[at] += (65500 - l.hit[at]) >> 5
	l.count[at] += 2
	if l.count[at] > 200 {
		for i := range l.count {
			l.count[i] = (l.count[i] + 1) / 2
		}
	}
	if at > 0 && l.count[at] > l.count[at-1] {
		l.v[at], l.v[at-1] = l.v[at-1], l.v[at]
		l.count[at], l.count[at-1] = l.count[at-1], l.count[at]
	}
}

// judge notes what asking would have saved.
func (l *valueList) judge(saved int32) {
	l.gain += int16((saved - int32(l.gain)) >> 5)
	l.on = l.gain > 0
}

// admit makes room for x: the last value gives way once it is worn.
func (l *valueList) admit(x int32) {
	if l.n < listSize {
		l.v[l.n], l.count[l.n] = x, 1
		l.n++
		return
	}
	end := listSize - 1
	if l.count[end] > 1 {
		l.count[end]--
		return
	}
	l.v[end], l.count[end] = x, 1
}
