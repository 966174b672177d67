package bench

// span is how many numbers a window remembers, the newest included.
const span = 64

// verdict says what a window knew of a number when it was marked.
type verdict uint8

// The verdicts of window.mark.
const (
	// fresh means not seen before.
	fresh verdict = iota + 1
	// duplicate means seen before.
	duplicate
	// overtaken means older than the window: whether it was seen is not known any more.
	overtaken
)

// window remembers which of the newest number seen and the 63 before it were seen. The zero value has seen none.
// It allocates nothing and is not safe for concurrent use.
type window struct {
	newest uint64
	seen   uint64 // bit i: newest-i was seen; 0 until the first mark
}

// mark records n as seen and says what it was before. A late number changes nothing.
func (w *window) mark(n uint64) verdict {
	if n > w.newest {
		w.seen = w.seen<<(n-w.newest) | 1
		w.newest = n
		return fresh
	}
	age := w.newest - n
	if age >= span {
		return overtaken
	}
	bit := uint64(1) << age
	if w.seen&bit != 0 {
		return duplicate
	}
	w.seen |= bit
	return fresh
}
