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
	sorts  [pieces][]int32 // of fields that it has not seen; nil is hand-set
	fields map[uint64]known
}

// known is where a field starts that the prior has seen.
type known struct {
	sort   piece
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
func (p *Prior) start(m *Model) {
	for i := range m.groups {
		g := &m.groups[i]
		all := m.piecesOf(i)
		for _, x := range all {
			p.startPiece(m, x)
		}
		k, ok := p.fields[g.key]
		if !ok || g.key == 0 || k.sort != all[0].piece {
			continue
		}
		was := slots{}
		for _, x := range all {
			was.visit(&m.first, m, x)
		}
		if len(was.values) != len(k.values) {
			continue // of another shape, though its description is the same
		}
		s := slots{values: k.values, load: true}
		for _, x := range all {
			s.visit(&m.first, m, x)
		}
	}
}

// startPiece starts a part of the state as the prior says for its sort.
func (p *Prior) startPiece(m *Model, x place) {
	v := p.sorts[x.piece]
	if v == nil {
		return
	}
	was := slots{}
	if was.visit(&m.first, m, x); len(was.values) != len(v) {
		return
	}
	s := slots{values: v, load: true}
	s.visit(&m.first, m, x)
}
