package adaptive

// paramKind is a kind of learned parameters. A prior has initial values for each kind, for fields
// that it does not know.
type paramKind uint8

const (
	// Weights of a field's flag, by kind of field.
	paramNumberFlag paramKind = iota
	paramIntegerFlag
	paramAngledFlag
	paramDerivedFlag
	paramTurnedFlag
	paramExtrapolatedFlag
	paramBitsFlag
	paramBytesFlag

	paramListProbs         // probabilities of frequent values
	paramTurnedIndex       // probabilities of the index of a quaternion with an angular velocity
	paramExtrapolatedIndex // probabilities of the index of a quaternion without one
	paramBit               // probabilities of a bit of a bit set
	paramBytes             // probabilities of a byte string

	// Parameters that a prior has for known fields only.
	paramUses   // uses of a field's flag, and the rate of steps of a counter
	paramValues // frequent values
	paramScale  // error scale and context weights of a component

	// Parameters of components, each by family: weights of the experts, costs of the experts and of
	// the sets of tables, weights of the flag.
	paramWeights
	paramCosts    = paramWeights + paramKind(families)
	paramCompFlag = paramCosts + paramKind(families)
	paramKinds    = paramCompFlag + paramKind(families)
)

// trained reports whether a prior has initial values of this kind for unknown fields. Weights and
// scales of other games are worse than those set by hand.
func (p paramKind) trained() bool {
	return p < paramUses || p >= paramCosts
}

// paramRef identifies the parameters of one kind in a model's state.
type paramRef struct {
	kind  paramKind
	index int // of the group, component, list, quaternion, bit or byte string
	comp  int // paramValues: index of the component
}

// flagKind returns the kind of the weights of the group's flag.
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

// params lists the parameters of group i, its flag first. The order is part of the format of
// priors.
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
