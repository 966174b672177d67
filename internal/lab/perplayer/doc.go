// Package snapshot implements the downlink codec for whole worlds: a dedicated server (DS) sends
// all objects of a world, many times per second, as deltas from a snapshot that the client acked.
//
// A [World] stores the newest sets of objects, quantized once for all players. An [Encoder] encodes
// the newest set for one player against the newest one that the player's [Decoder] acked. Both ends
// store the state of their models with each snapshot and continue from that of the baseline. A
// payload can therefore be decoded from its own bytes and from acked snapshots, whatever else was
// lost, late or reordered.
//
// After quantization all arithmetic is on integers, with the same results on every processor. The
// package uses no sockets, clocks or goroutines. No type is safe for concurrent use, except for
// [Schema]; the encoders of one World may be used at the same time, but not while the caller fills
// a set.
package perplayer
