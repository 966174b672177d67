package seq

// Span is how many numbers a Window remembers, the newest included.
const Span = 64

// Verdict says what a Window knew of a number when it was marked.
type Verdict uint8

// The verdicts of Window.Mark.
const (
	// New means not seen before.
	New Verdict = iota + 1
	// Duplicate means seen before.
	Duplicate
	// Late means older than the window: whether it was seen is not known any more.
	Late
)

// Window remembers which of the newest number seen and the 63 before it were seen. The zero value has seen none.
// It allocates nothing and is not safe for concurrent use.
type Window struct {
	newest uint64
	seen   uint64 // bit i: newest-i was seen; 0 until the first Mark
}

// Newest returns the highest number marked, 0 before the first.
func (w *Window) Newest() uint64 {
	return w.newest
}

// Mark records n as seen and says what it was before. A late number changes nothing.
func (w *Window) Mark(n uint64) Verdict {
	if n > w.newest {
		w.seen = w.seen<<(n-w.newest) | 1
		w.newest = n
		return New
	}
	age := w.newest - n
	if age >= Span {
		return Late
	}
	bit := uint64(1) << age
	if w.seen&bit != 0 {
		return Duplicate
	}
	w.seen |= bit
	return New
}

// Seen reports whether n is within the window and was marked.
func (w *Window) Seen(n uint64) bool {
	return n <= w.newest && w.seen>>(w.newest-n)&1 != 0
}
