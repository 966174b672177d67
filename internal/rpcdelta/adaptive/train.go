package adaptive

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Recording is a stream to learn from: all its frames, in order.
type Recording struct {
	Fields []Field
	RateHz float64
	Frames []*schema.Frame
}

// Training configures the training of a prior.
type Training struct {
	// From is the prior to refine; nil means built-in parameters.
	From *Prior
	// Generic omits the parameters of single fields.
	Generic bool
	// Progress, if not nil, is called from time to time with the completed fraction. Its error
	// stops the training.
	Progress func(done float64) error
}

// trainPasses is the number of passes over the recordings. Each pass uses the result of the pass
// before.
const trainPasses = 3

// Train trains a prior. The result depends on the arguments only and is the same on all platforms.
func Train(recs []Recording, cfg Training) (*Prior, error) {
	from := cfg.From
	if from == nil {
		from = untrained()
	}
	if len(recs) == 0 {
		return from, nil
	}
	p := from
	runs := 0
	for range trainPasses {
		t := trainer{prior: p, cfg: &cfg, fields: map[uint64]*fieldMeans{}}
		for i := range recs {
			for k, d := range recs[i].distances() {
				t.k = k
				if err := t.run(&recs[i], d, &runs, len(recs)); err != nil {
					return nil, err
				}
			}
		}
		next, err := ParsePrior(t.result(from).Append(nil))
		if err != nil {
			return nil, err
		}
		p = next
	}
	return p, nil
}

// distances returns the baseline distances to train with, in frames: 1 for redundant frames, and
// the frames in round-trip times of 100 ms and 200 ms.
func (r *Recording) distances() [3]int {
	d := min(max(2, int(math.Round(r.RateHz/10))), MaxRing/2-1)
	return [3]int{1, d, 2 * d}
}

// trainer is the state of one training pass.
type trainer struct {
	prior  *Prior
	cfg    *Training
	k      int // index of the baseline distance
	counts tally
	kinds  [paramKinds]paramMean
	fields map[uint64]*fieldMeans
}

// sampleEvery is the interval, in frames, between samples of the parameters.
const sampleEvery = 16

// run codes a recording as in a session whose baselines are d frames old. runs counts the calls,
// for progress; total is the number of recordings.
func (t *trainer) run(r *Recording, d int, runs *int, total int) error {
	if len(r.Frames) == 0 {
		return nil
	}
	m := t.prior.Compile(r.Fields)
	counting := *m.tables
	counting.tally = &tally{}
	m.tables = &counting
	s, c := m.NewState(0), new(Coder)
	known := NewFrames(len(r.Frames[0].Ints), len(r.Frames[0].Bytes), MaxRing+LearnReach)
	means := m.newMeans()
	warmup := min(len(r.Frames)/4, int(10*r.RateHz))
	var buf []byte
	for n := d; n < len(r.Frames); n++ {
		known.Put(uint64(n-d), r.Frames[n-d], Shape{Frames: 1})
		s.Learn(uint64(n-d), known)
		p := Payload{Frames: r.Frames[n : n+1], Newest: uint64(n), Base: uint64(n - d), HasBase: true}
		buf = c.Encode(buf[:0], &p, s, known)
		if t.k == 0 && n >= warmup && n%sampleEvery == 0 {
			means.add(m, &s.learned)
		}
		if t.cfg.Progress != nil && n%1024 == 0 {
			done := float64(*runs) + float64(n)/float64(len(r.Frames))
			if err := t.cfg.Progress(done / float64(trainPasses*3*total)); err != nil {
				return err
			}
		}
	}
	*runs++
	t.counts.add(counting.tally)
	if t.k == 0 {
		t.collect(m, means)
	}
	return nil
}

// collect adds the parameters that one recording learned. All fields have the same weight.
func (t *trainer) collect(m *Model, means [][]paramMean) {
	for i := range m.groups {
		all := m.params(i)
		for k, x := range all {
			if v := means[i][k].values(); v != nil {
				t.kinds[x.kind].add(v)
			}
		}
		key := m.groups[i].key
		if key == 0 || t.cfg.Generic {
			continue
		}
		if t.fields[key] == nil {
			t.fields[key] = &fieldMeans{kind: all[0].kind, params: make([]paramMean, len(all))}
		}
		t.fields[key].add(all, means[i])
	}
}

// fieldMeans are the means of the parameters of one field over several recordings.
type fieldMeans struct {
	kind   paramKind
	params []paramMean
}

func (f *fieldMeans) add(all []paramRef, means []paramMean) {
	if f.kind != all[0].kind || len(f.params) != len(all) {
		return
	}
	for k := range means {
		f.params[k].merge(&means[k])
	}
}

// result returns the prior of the pass. Parameters that did not occur are copied from from.
func (t *trainer) result(from *Prior) *Prior {
	p := &Prior{freq: t.counts.fit(from.freq), kinds: from.kinds, fields: map[uint64]fieldParams{}}
	for i := range paramKinds {
		if v := t.kinds[i].values(); v != nil && i.trained() {
			p.kinds[i] = v
		}
	}
	if t.cfg.Generic {
		return p
	}
	maps.Copy(p.fields, from.fields)
	for _, key := range slices.Sorted(maps.Keys(t.fields)) {
		f := t.fields[key]
		k := fieldParams{kind: f.kind}
		for i := range f.params {
			k.values = append(k.values, f.params[i].values()...)
		}
		if len(k.values) > 0 {
			p.fields[key] = k
		}
	}
	return p
}

// paramMean is the mean of parameters over time or over recordings. Frequent values have no mean;
// the most frequent ones are kept.
type paramMean struct {
	n        int64
	sum      []int64
	counts   map[int32]int64 // frequent values: sum of the counts of each
	frequent bool            // the parameters are frequent values
}

// groupMeans are the means of a model's parameters, by group.
type groupMeans [][]paramMean

// add adds the parameters of a state.
func (ms groupMeans) add(m *Model, l *modelState) {
	var s paramVisitor
	for i := range ms {
		for k, x := range m.params(i) {
			s.values = s.values[:0]
			s.param(l, m, x)
			ms[i][k].add(s.values)
		}
	}
}

func (a *paramMean) add(v []int32) {
	a.n++
	if a.frequent {
		if a.counts == nil {
			a.counts = map[int32]int64{}
		}
		for i := 0; i < len(v); i += 2 {
			if v[i+1] > 0 {
				a.counts[v[i]] += int64(v[i+1])
			}
		}
		return
	}
	if a.sum == nil {
		a.sum = make([]int64, len(v))
	}
	for i := range min(len(v), len(a.sum)) {
		a.sum[i] += int64(v[i])
	}
}

// merge adds the mean b with the weight of one sample.
func (a *paramMean) merge(b *paramMean) {
	if v := b.values(); v != nil {
		a.frequent = b.frequent
		a.add(v)
	}
}

// values returns the means, rounded, or nil if there are no samples.
func (a *paramMean) values() []int32 {
	if a.n == 0 {
		return nil
	}
	if a.frequent {
		return a.mostFrequent()
	}
	out := make([]int32, len(a.sum))
	for i, s := range a.sum {
		q := (s + a.n/2) / a.n
		if s < 0 {
			q = (s - a.n/2) / a.n
		}
		out[i] = int32(q)
	}
	return out
}

// mostFrequent returns the most frequent values, each followed by its mean count.
func (a *paramMean) mostFrequent() []int32 {
	all := slices.SortedFunc(maps.Keys(a.counts), func(x, y int32) int {
		return cmp.Or(cmp.Compare(a.counts[y], a.counts[x]), cmp.Compare(x, y))
	})
	out := make([]int32, 0, 2*listSize)
	for _, v := range all[:min(len(all), listSize)] {
		out = append(out, v, int32(max(1, min(200, (a.counts[v]+a.n/2)/a.n))))
	}
	return append(out, make([]int32, 2*listSize-len(out))...)
}

// untrained returns the prior from which training from scratch starts: computed tables and built-in
// parameters.
func untrained() *Prior {
	f := &frequencies{}
	for i := range f {
		for j := range f[i] {
			f[i][j] = *curve(i, j)
		}
	}
	p, err := ParsePrior((&Prior{freq: f}).Append(nil))
	if err != nil {
		panic("adaptive: the untrained prior: " + err.Error())
	}
	return p
}

// curve returns the frequencies of a table. The three sets are close to a normal distribution, with
// a longer tail, and with a long tail. Every operation is rounded separately, so that the result is
// the same on all platforms.
func curve(shape, level int) *[symbols]uint16 {
	size := float64(int64(4+level%4)<<(level/4)) / 32 // magnitude in the middle of the level, in steps
	size += float64(size / 8)
	t := student[shape]
	density := func(m float64) float64 {
		x := m / size
		return inversePower(1+float64(float64(x*x)*t.narrow), t.power)
	}
	var v [symbols]uint64
	for s := range v {
		base, extra := fromSymbol(s)
		from, width := float64(base)-0.5, float64(uint64(1)<<extra)
		if s == 0 {
			from, width = 0, 0.5
		}
		const parts = 16
		sum := 0.0
		for i := range parts {
			sum += density(from + float64(width*float64(2*i+1)/(2*parts)))
		}
		v[s] = uint64(float64(float64(sum*width) / size * (1 << 36)))
	}
	return normalize(&v, &[symbols]uint16{}, 0)
}

// student has, by set, Student's t-distributions 1/(1+narrow x^2)^power, where x is in units of the
// expected magnitude. They are wider than the levels suggest, since levels are estimates.
var student = [shapes]struct {
	narrow float64
	power  int
}{{0.027, 8}, {0.15, 3}, {0.35, 2}}

// inversePower returns 1/x^n.
func inversePower(x float64, n int) float64 {
	y := 1.0
	for range n {
		y = float64(y / x)
	}
	return y
}
