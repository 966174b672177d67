// Package snapshot codes the state of a whole world, set after set of objects, against sets that the receiver
// acknowledged. It is the way down: a dedicated server (DS) sends each player what package rpcdelta brings up.
//
// A [World] keeps the last sets, quantized once whoever they are sent to. An [Encoder] serves one player: it codes
// the newest set against the newest one that the player acked, and a [Decoder] rebuilds it. What adapts is kept beside
// each snapshot at both ends and goes on from that of its baseline, so a snapshot decodes from its own bytes and from
// what was acked, whatever else was lost, late or reordered.
//
// Integers only after quantization: the same bits on every processor. No sockets, no clock, no goroutines. No type is
// safe for concurrent use, but a [Schema]; encoders may read one World at the same time while nobody adds to it.
package snapshot
