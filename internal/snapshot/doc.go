// Package snapshot implements the downlink codec for whole worlds: a dedicated server (DS) sends
// all objects of a world, many times per second, as deltas from a snapshot that the client acked.
//
// A [History] stores the newest sets of objects, quantized once for all players. An [Encoder]
// encodes the newest set against an older one, the [Baseline]. [Receipts] know which sets a
// client's [Decoder] has acked. A payload depends only on the History's sets, so all clients that
// have the baseline can receive the same payload, whatever else they lost.
//
// After quantization all arithmetic is on integers, with the same results on every processor. The
// package uses no sockets, clocks or goroutines. No type is safe for concurrent use, except for
// [Schema]; the encoders of one History may be used at the same time, but not while the caller
// fills a set.
package snapshot
