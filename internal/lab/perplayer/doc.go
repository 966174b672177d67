// Package perplayer is the encoder of an earlier design of package snapshot, for comparison: each
// player has models of its own, which learn along the snapshots that the player has acked. It has
// the fewest bytes of all designs that were tried, and the cost of a tick grows with the number of
// players. docs/design/snapshots.md compares it with the design that replaced it.
//
// A payload has the size that it had in that design, and learning takes the same time. There is no
// decoder. Nothing is safe for concurrent use.
package perplayer
