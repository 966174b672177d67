package statesync

// Names that only tests outside of the package need.
const (
	DefaultBudget = defaultBudget
	DefaultTicks  = defaultTicks
	MaxUpdates    = maxUpdates
	Ring          = ring
)

// Accumulator is a priority accumulator with the sums of its objects.
type Accumulator struct {
	accumulator
	sums table[float64]
}

// Open starts a tick of objects with ids below n.
func (a *Accumulator) Open(n int) { clear(a.accumulator.Open(n)) }

// Add adds the priority of an object for this tick.
func (a *Accumulator) Add(id uint16, priority float64) {
	sum := a.sums.at(id)
	*sum = add(*sum, priority)
	a.keys[a.leaves+int(id)] = keyOf(*sum, int(id))
}

// Next returns the next object.
func (a *Accumulator) Next() (id uint16, ok bool) {
	at, ok := a.accumulator.Next()
	return uint16(at), ok
}

// Sent resets the sum of an object.
func (a *Accumulator) Sent(id uint16) { *a.sums.at(id) = 0 }

// Sum returns the sum of an object's priorities since it was last sent.
func (a *Accumulator) Sum(id uint16) float64 { return a.sums.get(id) }
