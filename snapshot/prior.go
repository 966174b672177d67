package snapshot

var zzPrior []byte

// defaultModel returns the model for objects of schema s.
func defaultModel(s *Schema) *Model {
	m, err := ParseModel(zzPrior, s)
	if err != nil {
		return newModel(s)
	}
	return m
}
