// Package statesync is for games that simulate their world at both ends. It complements [ds.World]
// and [client.SubscribeState] with rounding of states ([Quantizer]), inputs, and smoothing of
// corrections ([Smoother]). For games with a transport of their own it also implements the codec:
// the dedicated server (DS) sends each client the players' inputs and, within a budget of bytes,
// the states of the objects with the highest priorities. The client applies these states, continues
// its simulation from them, and smooths the corrections in the drawn poses.
//
//	DS                                            client
//	Quantizer.Round, step
//	World.Put, SetTick, Prioritize
//	Sender.Append ----------------- packet ----> Receiver.Decode
//	Sender.Ack                <----- ack ------  Receiver.AppendAck
//	                                              Quantizer.Round, step; Smoother
//
// A [World] does the work that does not depend on the player, once per tick; each player has a
// [Sender] of the World. An update is coded against the newest acked update of its object,
// extrapolated by its velocities. Both ends store the state of their models with each packet and
// continue from that of the newest acked one. A packet can therefore be decoded from its own bytes
// and from acked packets, whatever else was lost, late or reordered. Packets and acks are dropped
// for the reasons of package snapshot: snapshot.ErrLate, ErrBaselineMissing, ErrDesync,
// ErrMalformed and ErrAck.
//
// After quantization all arithmetic is on integers, with the same results on every processor,
// except for smoothing. The package uses no sockets, clocks or goroutines; times are ticks that the
// caller counts. No type is safe for concurrent use, but see [World].
//
// [ds.World]: https://pkg.go.dev/github.com/uplink-rpc/uplink/ds#World
// [client.SubscribeState]: https://pkg.go.dev/github.com/uplink-rpc/uplink/client#SubscribeState
package statesync
