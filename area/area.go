// Package area has areas of interest: the parts of a world that a player sees. An object is in some
// areas, and a player sees an object if the player sees one of these. Areas may be the cells of a
// [Grid], rooms, what a team knows, or what belongs to one player.
package area

// ID identifies an area of a world. The game chooses the numbers.
type ID uint32

// All is an area that all players see.
const All ID = 0
