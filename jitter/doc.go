// Package jitter implements a jitter buffer: values arrive unevenly over a network, each with its
// tick, and a [Buffer] releases them evenly, one per tick. A [Pacer] adjusts the clock of the
// sender so that values arrive with the slack that the buffer aims at.
//
// Ticks are consecutive numbers of the sender. The slack of a value is the time from its arrival to
// its release. The target of the slack is fixed or learned from the variation of arrivals: it grows
// at once and decays slowly.
//
// Either end can follow the other. A receiver with ticks of its own, such as a dedicated server
// with its players' inputs, calls [Buffer.Step] once per tick and reports slack and target to the
// sender. The sender adjusts its clock with a Pacer. A receiver that can follow calls [Buffer.Pop],
// which returns the ticks that are due.
//
// The package has no clock and no goroutine: times are arguments, durations since a common start.
// The sender's clock may have another start and drift. See docs/jitter.md for measurements.
package jitter
