package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Trainer trains a [Model] on recorded worlds. Learn from all of them, call Settle, and learn from
// all of them again: the weights of predictions first, then the probabilities that suit them. Not
// safe for concurrent use.
type Trainer struct {
	schema  *Schema
	model   *Model
	codec   payloadCodec
	pairs   []pair
	buf     []byte
	settled bool
	means   [modelCount]mean
}

// mean is the sums of the weights and probabilities of a model, after each payload.
type mean struct {
	weights, probs []int64
	n              int64
}

// NewTrainer returns a trainer of models for objects of schema s.
func NewTrainer(s *Schema) *Trainer {
	t := &Trainer{schema: s, model: newModel(s)}
	t.codec.init(s, false)
	return t
}

// Learn learns from the newest snapshot of a world, coded against a baseline.
func (t *Trainer) Learn(w *World, b Baseline) error {
	pc, n := &t.codec, w.next-1
	if err := w.load(&pc.refs, n, b); err != nil {
		return err
	}
	m := t.model.at(&pc.refs)
	pc.weights, pc.probs, pc.learns = &m.weights, &m.start, !t.settled
	cur := w.set(n)
	pc.Enc.Reset(t.buf[:0], 0)
	pc.codePhysics(cur)
	pc.loadPhysics(cur)
	t.pairs, _ = pc.objects(t.pairs, cur)
	pc.rows(t.pairs, cur)
	t.buf = pc.Enc.Finish()
	t.means[pc.refs.model()].add(m, !t.settled)
	return nil
}

// Settle ends the training of the weights.
func (t *Trainer) Settle() {
	t.average()
	t.settled = true
}

// Model returns the model, the mean over what was learned since Settle.
func (t *Trainer) Model() *Model {
	t.average()
	return t.model
}

func (t *Trainer) average() {
	for i := range t.means {
		t.means[i].store(t.model.models[i], !t.settled)
		t.means[i] = mean{}
	}
}

func (a *mean) add(m *model, weights bool) {
	a.n++
	if weights {
		k := 0
		m.each(func(p *lms.Predictor) {
			for _, w := range p.Weights {
				a.weights = addAt(a.weights, k, int64(w))
				k++
			}
		})
	}
	k := 0
	m.start.each(func(p []rangecoder.Prob) {
		for _, p := range p {
			a.probs = addAt(a.probs, k, int64(p.P))
			k++
		}
	})
}

func addAt(sums []int64, k int, v int64) []int64 {
	if k == len(sums) {
		return append(sums, v)
	}
	sums[k] += v
	return sums
}

func (a *mean) store(m *model, weights bool) {
	if a.n == 0 {
		return
	}
	if weights {
		k := 0
		m.each(func(p *lms.Predictor) {
			for i := range p.Weights {
				p.Weights[i] = int32(a.weights[k] / a.n)
				k++
			}
		})
	}
	k := 0
	m.start.each(func(p []rangecoder.Prob) {
		for i := range p {
			p[i].P = uint16(a.probs[k] / a.n)
			k++
		}
	})
}
