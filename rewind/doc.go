// Package rewind is lag compensation: the server judges a shot by where the shooter saw its
// targets. A [History] keeps the objects of the last second. A client sends with a shot the server
// time that it showed; [History.Seen] checks it against what the server knows of the player's
// connection, and [History.Object] returns an object as it was then, interpolated as clients do.
//
// The package has no clock, no goroutine and no network. See docs/prediction.md.
package rewind
