package statesync

// table is values by object id, in pages made when first used.
type table[T any] struct {
	pages [256]*[256]T
}

// at gives the value of an id, zero at first.
func (t *table[T]) at(id uint16) *T {
	p := &t.pages[id>>8]
	if *p == nil {
		*p = new([256]T)
	}
	return &(*p)[id&255]
}
