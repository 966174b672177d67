// Package game is what the cubes' server and clients share: how the world is described, and its simulation.
package game

import "time"

const (
	// Rate is how many ticks a second has, Tick the time of one.
	Rate = 60
	Tick = time.Second / Rate
)

// Time is when a tick is.
func Time(tick int) time.Duration { return time.Duration(tick) * time.Second / Rate }
