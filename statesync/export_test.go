package statesync

// Names that only tests outside of the package need.
const (
	DefaultBudget = defaultBudget
	DefaultTicks  = defaultTicks
	MaxUpdates    = maxUpdates
	Ring          = ring
)

// Accumulator is a priority accumulator.
type Accumulator = accumulator

// Sum returns the sum of an object's priorities since it was last sent.
func (a *accumulator) Sum(id uint16) float64 { return a.entries.at(id).sum }
