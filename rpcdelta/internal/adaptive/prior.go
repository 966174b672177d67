package adaptive

import (
	_ "embed"
	"sync"
)

// Prior is the starting point of streams: the frequency tables of residuals, initial parameters by
// kind, and initial parameters of known fields. It is immutable and safe for concurrent use.
type Prior struct {
	hash   uint64
	freq   *frequencies
	tables *tables
	kinds  [paramKinds][]int32 // for unknown fields; nil means set by hand
	fields map[uint64]fieldParams
}

// fieldParams are the parameters of a known field; kind is that of its flag.
type fieldParams struct {
	kind   paramKind
	values []int32
}

// generic.prior is trained on the traces in testdata/traces:
//
//	uplink train --generic testdata/traces/*.csv.gz -o rpcdelta/internal/adaptive/generic.prior
//
//go:embed generic.prior
var genericFile []byte

// Generic returns the built-in prior.
var Generic = sync.OnceValue(func() *Prior {
	p, err := ParsePrior(genericFile)
	if err != nil {
		panic("adaptive: the built-in prior: " + err.Error())
	}
	return p
})

// Hash returns the hash of the encoded prior, which identifies it.
func (p *Prior) Hash() uint64 { return p.hash }

// Fields returns the number of known fields.
func (p *Prior) Fields() int { return len(p.fields) }

// apply loads the prior into the model's initial state.
func (p *Prior) apply(m *Model) {
	for i := range m.groups {
		g := &m.groups[i]
		all := m.params(i)
		for _, x := range all {
			p.applyKind(m, x)
		}
		k, ok := p.fields[g.key]
		if !ok || g.key == 0 || k.kind != all[0].kind {
			continue
		}
		was := paramVisitor{}
		for _, x := range all {
			was.param(&m.initial, m, x)
		}
		if len(was.values) != len(k.values) {
			continue // another number of components, despite the same key
		}
		s := paramVisitor{values: k.values, load: true}
		for _, x := range all {
			s.param(&m.initial, m, x)
		}
	}
}

// applyKind loads the initial values of the kind of x, if they have the right length.
func (p *Prior) applyKind(m *Model, x paramRef) {
	v := p.kinds[x.kind]
	if v == nil {
		return
	}
	was := paramVisitor{}
	if was.param(&m.initial, m, x); len(was.values) != len(v) {
		return
	}
	s := paramVisitor{values: v, load: true}
	s.param(&m.initial, m, x)
}
