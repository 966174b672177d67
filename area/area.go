// Package area implements areas of interest, which limit the objects that a player sees. An object
// is in one or several areas, and a player sees an object if the player sees one of its areas.
// Areas may be the cells of a [Grid], rooms, the objects known to a team, or the objects of one
// player.
package area

// ID identifies an area of a world. The game chooses the numbers.
type ID uint32

// All is an area that all players see.
const All ID = 0
