// Package snapshot implements the downlink codec for whole worlds: a dedicated server (DS) sends
// all objects of a world, many times per second, as deltas from a snapshot that the client acked.
//
// A [World] stores the newest sets of objects, quantized once for all players. An [Encoder]
// encodes the newest set against an earlier one, for every player whose [Decoder] acked that. Both
// ends have the same constant [Model], whose probabilities adapt only within a payload. A payload
// can therefore be decoded from its own bytes and from acked snapshots, whatever else was lost,
// late or reordered.
//
// After quantization all arithmetic is on integers, with the same results on every processor. The
// package uses no sockets, clocks or goroutines. No type is safe for concurrent use, except for
// [Schema]; the encoders of one World may be used at the same time, but not while the caller fills
// a set.
package snapshot
