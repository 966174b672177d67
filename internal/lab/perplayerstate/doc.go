// Package perplayerstate is the sender of package statesync with adaptive models of its own for
// each player. It is kept as it was, for comparisons.
package perplayerstate
