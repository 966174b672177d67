package snapshot

import "github.com/uplink-rpc/uplink/internal/codec/malformed"

// borrow makes a scratch copy of a baseline's state.
func (w *walk) borrow(from *state) {
	w.state.copyFrom(from)
	n := w.hist.base.Len()
	w.state.last, w.state.rested = resize(w.state.last, len(w.schema.fields)*n), resize(w.state.rested, n)
	clear(w.state.last[copy(w.state.last, from.last):])
	clear(w.state.rested[copy(w.state.rested, from.rested):])
}

// begin prepares the history once the mask is known.
func (w *walk) begin(mask uint32, get func(lag int) *Set) {
	w.hist.choose(mask, get)
	w.hist.index()
	w.hist.bound(w.schema)
}

// decodeNames is names, and says what is wrong with them.
func (w *walk) decodeNames(pairs []pair) ([]pair, error) {
	w.fault = malformed.ErrID
	pairs, ok := w.names(pairs, nil)
	if ok {
		return pairs, nil
	}
	return pairs, w.fault
}
