// Package interpolate plays snapshots back smoothly. A [Buffer] holds the snapshots that a client received, by the
// server's time, and shows the world a little in the past, between two of them: positions on a line or a Hermite spline
// through the velocities, orientations by slerp, everything else as the older one has it.
//
// How far in the past is a rule of the rate at which snapshots are sent and of the link ([Delay]), or learned from how
// they arrive ([Config].Adaptive). docs/interpolation.md has what either costs and gives.
//
// The package has no clock and no goroutine: times are arguments, durations since any start that both calls share. The
// client's and the server's need not have the same start, nor quite the same pace.
package interpolate
