package adaptive

// piece is a sort of part that learned states are made of. A prior has a start
// for each, for fields that it has not seen.
type piece uint8

const (
	// Flags of fields, by what the field is.
	pieceNumber piece = iota
	pieceInteger
	pieceAngled
	pieceDerived
	pieceTurned
	pieceExtrapolated
	pieceBits
	pieceBytes
	pieceList   // the chances of frequent values
	pieceTurn   // the index of a quat with an angular velocity
	pieceExtend // and without
	pieceBit
	pieceBlob
	// Those that only a known field has: how far its flags are, its values, and how
	// wide its errors are and what that leans on.
	pieceAge
	pieceValues
	pieceScale
	// Weights of components, by family, and what follows: the costs of their
	// experts and tables, and their flags.
	pieceWeights
	pieceCosts    = pieceWeights + piece(families)
	pieceCompFlag = pieceCosts + piece(families)
	pieces        = pieceCompFlag + piece(families)
)

// trains says whether a prior learns where a piece starts whose field it does not
// know. Weights and scales of other games are worse than the hand-set ones.
func (p piece) trains() bool {
	return p < pieceAge || p >= pieceCosts
}

// place is one piece of a model's state.
type place struct {
	piece
	at int // index of the group, component, list, quat, bit or blob
	of int // component of a list
}

// sortOf says what a group's flag is.
func (g *group) sortOf() piece {
	switch g.form {
	case formBits:
		return pieceBits
	case formBytes:
		return pieceBytes
	case formQuat:
		if g.family == turned {
			return pieceTurned
		}
		return pieceExtrapolated
	case formNumbers:
	}
	switch {
	case g.family == angled:
		return pieceAngled
	case g.family == derived:
		return pieceDerived
	case g.counts:
		return pieceInteger
	}
	return pieceNumber
}

// piecesOf lists the pieces of group i, its flag first.
func (m *Model) piecesOf(i int) []place {
	g := &m.groups[i]
	out := []place{{piece: g.sortOf(), at: i}, {piece: pieceAge, at: i}}
	switch g.form {
	case formBits:
		for k := range g.comps {
			for range m.sets[g.first+k].wrap {
				out = append(out, place{piece: pieceBit, at: g.index + len(out) - 2})
			}
		}
		return out
	case formBytes:
		return append(out, place{piece: pieceBlob, at: g.index})
	case formQuat:
		x := place{piece: pieceExtend, at: g.index}
		if g.family == turned {
			x.piece = pieceTurn
		}
		out = append(out, x)
	case formNumbers:
	}
	for k := g.first; k < g.first+g.comps; k++ {
		f := piece(g.family)
		out = append(out, place{piece: pieceWeights + f, at: k}, place{piece: pieceScale, at: k},
			place{piece: pieceCosts + f, at: k}, place{piece: pieceCompFlag + f, at: k})
		if l := m.comps[k].list; l >= 0 {
			out = append(out, place{piece: pieceList, at: l}, place{piece: pieceValues, at: l, of: k})
		}
	}
	return out
}
