// Package interpolate plays snapshots back smoothly. A [Buffer] stores the received snapshots by
// server time and shows the world slightly in the past, between two of them: positions interpolated
// linearly or by Hermite interpolation, orientations by slerp, and all other fields as in the older
// snapshot.
//
// The interpolation delay follows from the send rate and the link ([Delay]), or is learned from the
// arrivals ([Config].Adaptive). See docs/interpolation.md for measurements.
//
// The package has no clock and no goroutine: times are arguments, durations since a start that all
// calls share. The clocks of client and server may have different starts and drift.
package interpolate
