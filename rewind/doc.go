// Package rewind is lag compensation: the server decides a shot by the positions at which the
// shooter saw the targets. A [History] keeps the objects of the last second. A client sends with a
// shot the server time that it showed; [History.Seen] checks it against the server's measurements
// of the player's connection, and [History.Object] returns an object as it was then, interpolated
// as clients do.
//
// The package has no clock, no goroutine and no network. See docs/prediction.md.
package rewind
