package adaptive

import (
	"maps"
	"math"
	"slices"
)

// Recording is a stream to learn from: all its frames, in order.
type Recording struct {
	Fields []Field
	RateHz float64
	Rows   []*Row
}

// Training says how to learn a prior.
type Training struct {
	// From is what the recordings refine; nil is nothing but hand-set numbers.
	From *Prior
	// Generic leaves out what single fields learned.
	Generic bool
	// Progress, if set, is called now and then with the share that is done, and
	// ends the training by an error.
	Progress func(done float64) error
}

// trainPasses is how often all is run: tables and starts follow from runs that
// used those of the pass before.
const trainPasses = 3

// Train learns a prior. It is a function of its arguments, the same on every
// platform.
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

// distances are how old baselines are: that of frames which ride along, that of a
// round trip of 100 ms, and that of one of 200 ms.
func (r *Recording) distances() [3]int {
	d := min(max(2, int(math.Round(r.RateHz/10))), MaxRing/2-1)
	return [3]int{1, d, 2 * d}
}

// trainer is one pass.
type trainer struct {
	prior  *Prior
	cfg    *Training
	k      int // index of the distance
	counts tally
	kinds  [paramKinds]paramMean
	fields map[uint64]*fieldMeans
}

// sampleEvery is how many frames lie between two looks at what was learned.
const sampleEvery = 16

// run codes a recording as a session does whose baselines are d frames old.
func (t *trainer) run(r *Recording, d int, runs *int, of int) error {
	if len(r.Rows) == 0 {
		return nil
	}
	m := t.prior.Compile(r.Fields, r.RateHz)
	counting := *m.tables
	counting.tally = &tally{}
	m.tables = &counting
	s, c := m.NewState(0), new(Coder)
	known := NewFrames(len(r.Rows[0].Ints), len(r.Rows[0].Bytes), MaxRing+LearnReach)
	means := m.newMeans()
	warm := min(len(r.Rows)/4, int(10*r.RateHz))
	var buf []byte
	for n := d; n < len(r.Rows); n++ {
		known.Put(uint64(n-d), r.Rows[n-d])
		s.Learn(uint64(n-d), known)
		buf = c.Encode(buf[:0], &Payload{Rows: r.Rows[n : n+1], Newest: uint64(n), Base: uint64(n - d), HasBase: true}, s, known)
		if t.k == 0 && n >= warm && n%sampleEvery == 0 {
			means.add(m, &s.learned)
		}
		if t.cfg.Progress != nil && n%1024 == 0 {
			done := float64(*runs) + float64(n)/float64(len(r.Rows))
			if err := t.cfg.Progress(done / float64(trainPasses*3*of)); err != nil {
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

// collect adds what one recording learned: each field counts as much as any
// other.
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

// fieldMean is what one field learned in several recordings.
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

// result makes the prior of what the pass saw; the parts of which it saw nothing
// are from's.
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
