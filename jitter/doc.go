// Package jitter holds values that come unevenly over a network, each with its frame time, and releases them evenly, one
// a tick. A [Buffer] does so, a [Pacer] says how much faster or slower the sender's clock should run so that the values
// come as early as the buffer wants them.
//
// Frame times are whole numbers, one for each tick of the sender. How early a value comes before its release is its
// slack. The slack that the buffer aims at, its target or depth, is fixed, or it is learned from how unevenly values
// come: it grows at once, and shrinks slowly.
//
// Either end can follow the other. Where the receiver has ticks of its own it calls [Buffer.Step] once in each, tells
// the sender slack and target, and the sender's clock follows by a Pacer: a dedicated server does so with its players'
// input. Where the receiver can follow it calls [Buffer.Pop], which is given the time and says what is due.
//
// The package has no clock and no goroutine: times are arguments, durations since any start that all calls share. The
// sender's need not have the same start, nor quite the same pace. docs/jitter.md has what it gives and costs.
package jitter
