// Package snapshot implements the downlink codec for whole worlds, for games with a transport of
// their own: a dedicated server (DS) sends all objects of a world, many times per second, as deltas
// from a snapshot that the client acked. [ds.World] and [client.SubscribeSnapshots] do this over
// uplink's own transport.
//
//	DS                                            client
//	World.Begin, Put
//	Sender.Append ---------------- payload ----> Receiver.Decode
//	Sender.Ack               <----- ack -------  Receiver.AppendAck
//
// A [World] stores the newest snapshots, quantized once for all players; each player has a [Sender]
// of the World. A payload depends only on the snapshot and its baseline, so all clients that have
// the same baseline get the same bytes, which are encoded once. Payloads and acks may be lost,
// duplicated, reordered or forged.
//
// After quantization all arithmetic is on integers, with the same results on every processor. The
// package uses no sockets, clocks or goroutines. No type is safe for concurrent use.
//
// [ds.World]: https://pkg.go.dev/github.com/uplink-rpc/uplink/ds#World
// [client.SubscribeSnapshots]: https://pkg.go.dev/github.com/uplink-rpc/uplink/client#SubscribeSnapshots
package snapshot
