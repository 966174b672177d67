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
