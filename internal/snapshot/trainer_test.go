package snapshot

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
)

// trainer trains models on recorded worlds, in stages: learn from all of them, call settle, and so
// on, trainingStages times. It computes in floating point; only its result matters.
type trainer struct {
	schema  *Schema
	model   *modelSet
	codec   payloadCodec
	buf     []byte
	stage   int
	lessons [modelCount]*lesson
}

// appendTo appends the model to dst and returns the extended slice.
func (m *modelSet) appendTo(dst []byte, s *Schema) []byte {
	mc, from := newModelCodec(false), newModel(s)
	mc.Enc.Reset(dst, 0)
	for i := range m.models {
		mc.model(from.models[i], m.models[i])
	}
	return mc.Enc.Finish()
}

// trainingStages is the number of stages of training: the weights of predictions, which depend on
// each other, then the probabilities that suit them.
const (
	trainingStages = weightStages + 2
	weightStages   = 12
)

// newTrainer returns a trainer of models for objects of schema s.
func newTrainer(s *Schema) *trainer {
	t := &trainer{schema: s, model: newModel(s)}
	t.codec.init(s, false)
	t.begin()
	return t
}

func (t *trainer) begin() {
	for i, m := range t.model.models {
		t.lessons[i] = newLesson(m, t.stage < weightStages)
	}
}

// learn learns from the newest snapshot of a world, coded against a baseline.
func (t *trainer) learn(w *History, b Baseline) error {
	pc, n := &t.codec, w.next-1
	if err := w.load(&pc.refs, n, b); err != nil {
		return err
	}
	pc.begin(t.model.at(&pc.refs))
	l := t.lessons[pc.refs.model()]
	l.payload++
	pc.lesson = l
	cur := w.set(n)
	pc.Enc.Reset(t.buf[:0], 0)
	pc.codePhysics(cur)
	pc.loadPhysics(cur)
	pc.objects(cur)
	pc.rows(cur)
	t.buf = pc.Enc.Finish()
	return nil
}

// settle ends a stage.
func (t *trainer) settle() {
	for i, m := range t.model.models {
		t.lessons[i].apply(m)
	}
	t.stage++
	t.begin()
}

// lesson is what a stage of training learned about a model: about weights, or else probabilities.
type lesson struct {
	weights map[*lms.Weights]*fit
	probs   []probLesson
	payload int
}

func newLesson(m *model, weights bool) *lesson {
	l := &lesson{}
	if weights {
		l.weights = map[*lms.Weights]*fit{}
		m.each(func(w *lms.Weights) { l.weights[w] = &fit{} })
		return l
	}
	l.probs = make([]probLesson, len(m.start))
	for i := range l.probs {
		for r := range rates {
			l.probs[i].chance[r] = 1
		}
		l.probs[i].start = float64(m.start[i]&^rateMask) / 65536
	}
	return l
}

func (l *lesson) apply(m *model) {
	for w, f := range l.weights {
		f.apply(w)
	}
	for i := range l.probs {
		m.start[i] = l.probs[i].best(m.start[i])
	}
}

// fit is a weighted least squares fit of the change of a prediction's weights.
type fit struct {
	n int
	a [lms.Terms][lms.Terms]float64
	b [lms.Terms]float64
}

// fit learns from the terms of a prediction and its error. scale is the logarithm of the error that
// is usual, in units.
func (l *lesson) fit(w *lms.Weights, x [lms.Terms]int64, err, scale, unit int64) {
	l.see(w, x, err, (math.Exp2(float64(scale)/fixed.LogOne)+.25)*float64(unit))
}

// fitScale learns from the terms and the error of a predicted logarithm.
func (l *lesson) fitScale(w *lms.Weights, x [lms.Terms]int64, err int64) {
	l.see(w, x, err, 4*fixed.LogOne)
}

func (l *lesson) see(w *lms.Weights, x [lms.Terms]int64, err int64, usual float64) {
	if l.weights == nil {
		return
	}
	f := l.weights[w]
	weight := usual + math.Abs(float64(err))
	weight = 1 / (weight * weight)
	f.n++
	for i := range x {
		v := float64(x[i]) * weight
		if v == 0 {
			continue
		}
		f.b[i] += v * float64(err)
		for k := range i + 1 {
			f.a[i][k] += v * float64(x[k])
		}
	}
}

// apply solves the normal equations by Cholesky's method. Weights of few examples hardly change.
func (f *fit) apply(w *lms.Weights) {
	if f.n == 0 {
		return
	}
	const n = lms.Terms
	var l [n][n]float64
	var d [n]float64
	for i := range n {
		for k := range i + 1 {
			s := f.a[i][k]
			if i == k {
				s += s*(1e-5+20/float64(f.n)) + 1e-12
			}
			for j := range k {
				s -= l[i][j] * l[k][j]
			}
			if i == k {
				l[i][i] = math.Sqrt(max(s, 1e-12))
			} else {
				l[i][k] = s / l[k][k]
			}
		}
		d[i] = f.b[i]
		for j := range i {
			d[i] -= l[i][j] * d[j]
		}
		d[i] /= l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			d[i] -= l[j][i] * d[j]
		}
		d[i] /= l[i][i]
		const most = maxWeight << weightShift
		w[i] = int32(min(max(float64(w[i])+math.Round(d[i]*65536), -most), most))
	}
}

// probLesson is what is known of a probability, for each rate at which it could adapt: the bits
// that its decisions take, and the best probability to start with, as a sum and its weight.
type probLesson struct {
	start    float64
	payload  int
	now      [rates]float64
	left     [rates]float64 // weight of the initial probability in this payload
	chance   [rates]float64 // of the decisions since bits were last added
	bits     [rates]float64
	sum, all [rates]float64
}

// decided learns from a decision.
func (l *lesson) decided(k int, b bool) {
	if l.probs == nil {
		return
	}
	p := &l.probs[k]
	if p.payload != l.payload {
		p.payload = l.payload
		for r := range rates {
			p.now[r], p.left[r] = p.start, 1
		}
	}
	target := 0.
	if b {
		target = 1
	}
	const least = unlikely / 65536.
	for r := range rates {
		v, step := p.now[r], 1/float64(int(1)<<(r+fastest))
		if b {
			p.chance[r] *= v
		} else {
			p.chance[r] *= 1 - v
		}
		if p.chance[r] < 1e-200 {
			p.bits[r], p.chance[r] = p.bits[r]-math.Log2(p.chance[r]), 1
		}
		p.sum[r] += target * p.left[r]
		p.all[r] += p.left[r]
		p.left[r] *= 1 - step
		p.now[r] = min(max(v+(target-v)*step, least), 1-least)
	}
}

// best returns the best probability, given an old one that counts as one decision.
func (p *probLesson) best(old prob) prob {
	cost := func(r int) float64 { return p.bits[r] - math.Log2(p.chance[r]) }
	rate, saved := int(old&rateMask), 2.
	for r := range rates {
		if s := cost(int(old&rateMask)) - cost(r); s > saved {
			rate, saved = r, s
		}
	}
	v := (p.sum[rate] + p.start) / (p.all[rate] + 1) * 65536
	return prob(min(max(v, unlikely), 65536-unlikely))&^rateMask | prob(rate)
}
