package world

// Input is which of the player's keys are held.
type Input uint8

// The keys.
const (
	Left Input = 1 << iota
	Right
	Up
	Down
	// Push has the player hover and blow others away.
	Push
	// Pull gathers others around the player.
	Pull

	// Keys is all of them.
	Keys = Left | Right | Up | Down | Push | Pull
)
