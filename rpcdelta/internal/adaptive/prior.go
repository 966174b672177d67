package adaptive

import (
	_ "embed"
	"sync"
)

// Prior is what streams start from: the tables of residuals, where fields start
// by their sort, and where fields start that it has seen. It is immutable and
// safe for concurrent use.
type Prior struct {
	hash   uint64
	freq   *frequencies
	tables *tables
	kinds  [paramKinds][]int32 // of fields that it has not seen; nil is hand-set
	fields map[uint64]fieldParams
}

// known is where a field starts that the prior has seen.
type fieldParams struct {
	kind   paramKind
	values []int32
}

// generic.prior is made of the traces in testdata/traces:
//
//	uplink train --generic testdata/traces/*.csv.gz -o rpcdelta/internal/adaptive/generic.prior
//
//go:embed generic.prior
var genericFile []byte

// Generic is the built-in prior.
var Generic = sync.OnceValue(func() *Prior {
	p, err := ParsePrior(genericFile)
	if err != nil {
		panic("adaptive: the built-in prior: " + err.Error())
	}
	return p
})

// Hash names the prior: it is that of the file.
func (p *Prior) Hash() uint64 { return p.hash }

// Fields is the number of fields that it has seen.
func (p *Prior) Fields() int { return len(p.fields) }

// start puts the prior into the model's first state, which is the hand-set one.
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
			continue // of another shape, though its description is the same
		}
		s := paramVisitor{values: k.values, load: true}
		for _, x := range all {
			s.param(&m.initial, m, x)
		}
	}
}

// startPiece starts a part of the state as the prior says for its sort.
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
