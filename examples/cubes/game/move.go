package game

import "github.com/uplink-rpc/uplink/examples/cubes/world"

// Move is the RPC by which a player steers, called each tick.
type Move struct {
	// Keys are those held: a [world.Input].
	Keys uint8 `uplink:"kind=bits,width=6"`
}

// Input is what the world makes of it.
func (m *Move) Input() world.Input { return world.Input(m.Keys) & world.Keys }
