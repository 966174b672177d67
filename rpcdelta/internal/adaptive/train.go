package adaptive

import (
	"maps"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
)

// Recording is a stream to learn from: all its frames, in order.
type Recording struct {
	Fields []Field
	RateHz float64
	Frames []*schema.Frame
}

// Training configures the training of a prior.
type Training struct {
	// From is the prior to refine; nil means parameters set by hand.
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

// distances returns the distances to train with: redundant frames, and round-trip times of 100 ms
// and 200 ms.
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

// sampleEvery is the interval, in frames, between samples of the parameters.
const sampleEvery = 16

// run codes a recording as in a session whose baselines are d frames old. runs counts the calls;
// total is the number of recordings.
func (t *trainer) run(r *Recording, d int, runs *int, total int) error {
	if len(r.Frames) == 0 {
		return nil
	}
	m := t.prior.Compile(r.Fields, r.RateHz)
	counting := *m.tables
	counting.tally = &tally{}
	m.tables = &counting
	s, c := m.NewState(0), new(Coder)
	known := NewFrames(len(r.Frames[0].Ints), len(r.Frames[0].Bytes), MaxRing+LearnReach)
	means := m.newMeans()
	warmup := min(len(r.Frames)/4, int(10*r.RateHz))
	var buf []byte
	for n := d; n < len(r.Frames); n++ {
		known.Put(uint64(n-d), r.Frames[n-d])
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

// result returns the prior of the pass. Parameters that did not occur are taken from from.
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
