package adaptive

// piece is a sort of part that learned states are made of. A prior has a start
// for each, for fields that it has not seen.
type paramKind uint8

const (
	// Flags of fields, by what the field is.
	paramNumberFlag paramKind = iota
	paramIntegerFlag
	paramAngledFlag
	paramDerivedFlag
	paramTurnedFlag
	paramExtrapolatedFlag
	paramBitsFlag
	paramBytesFlag
	paramListProbs         // the chances of frequent values
	paramTurnedIndex       // the index of a quat with an angular velocity
	paramExtrapolatedIndex // and without
	paramBit
	paramBytes
	// Those that only a known field has: how far its flags are, its values, and how
	// wide its errors are and what that leans on.
	paramUses
	paramValues
	paramScale
	// Weights of components, by family, and what follows: the costs of their
	// experts and tables, and their flags.
	paramWeights
	paramCosts    = paramWeights + paramKind(families)
	paramCompFlag = paramCosts + paramKind(families)
	paramKinds    = paramCompFlag + paramKind(families)
)

// trains says whether a prior learns where a piece starts whose field it does not
// know. Weights and scales of other games are worse than the hand-set ones.
func (p paramKind) trained() bool {
	return p < paramUses || p >= paramCosts
}

// place is one piece of a model's state.
type paramRef struct {
	kind  paramKind
	index int // index of the group, component, list, quat, bit or blob
	comp  int // component of a list
}

// sortOf says what a group's flag is.
func (g *group) flagKind() paramKind {
	switch g.form {
	case formBits:
		return paramBitsFlag
	case formBytes:
		return paramBytesFlag
	case formQuat:
		if g.family == familyTurned {
			return paramTurnedFlag
		}
		return paramExtrapolatedFlag
	case formNumbers:
	}
	switch {
	case g.family == familyAngled:
		return paramAngledFlag
	case g.family == familyDerived:
		return paramDerivedFlag
	case g.counter:
		return paramIntegerFlag
	}
	return paramNumberFlag
}

// piecesOf lists the pieces of group i, its flag first.
func (m *Model) params(i int) []paramRef {
	g := &m.groups[i]
	out := []paramRef{{kind: g.flagKind(), index: i}, {kind: paramUses, index: i}}
	switch g.form {
	case formBits:
		for k := range g.numComps {
			for range m.bitSets[g.firstComp+k].wrap {
				out = append(out, paramRef{kind: paramBit, index: g.index + len(out) - 2})
			}
		}
		return out
	case formBytes:
		return append(out, paramRef{kind: paramBytes, index: g.index})
	case formQuat:
		x := paramRef{kind: paramExtrapolatedIndex, index: g.index}
		if g.family == familyTurned {
			x.kind = paramTurnedIndex
		}
		out = append(out, x)
	case formNumbers:
	}
	for k := g.firstComp; k < g.firstComp+g.numComps; k++ {
		f := paramKind(g.family)
		out = append(out, paramRef{kind: paramWeights + f, index: k}, paramRef{kind: paramScale, index: k},
			paramRef{kind: paramCosts + f, index: k}, paramRef{kind: paramCompFlag + f, index: k})
		if l := m.components[k].list; l >= 0 {
			out = append(out, paramRef{kind: paramListProbs, index: l}, paramRef{kind: paramValues, index: l, comp: k})
		}
	}
	return out
}
