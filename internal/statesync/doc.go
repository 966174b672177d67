// Package statesync implements state synchronization: server and client run the same simulation,
// and the dedicated server (DS) sends each client the players' inputs and, within a budget of
// bytes, the states of the objects with the highest priorities. The client applies these states,
// continues its simulation from them, and smooths the corrections in the drawn poses.
//
//	DS                                            client
//	snapshot.Type.Round, step, Type.Add
//	Shared.SetTick, Prioritize
//	Sender.Append ----------------- packet ----> Receiver.Decode
//	Sender.Ack                <----- ack ------  Receiver.Ack
//	                                              Type.Round, step; Smoother
//
// A snapshot.Schema describes the objects. A [Shared] does the work that does not depend on the
// player, once per tick; each player has a [Sender] of the Shared. An update is coded against the
// newest acked update of its object, extrapolated by its velocities. Both ends store the state of
// their models with each packet and continue from that of the newest acked one. A packet can
// therefore be decoded from its own bytes and from acked packets, whatever else was lost, late or
// reordered.
//
// After quantization all arithmetic is on integers, with the same results on every processor,
// except for smoothing. The package uses no sockets, clocks or goroutines; times are ticks that the
// caller counts. No type is safe for concurrent use, but see [Shared].
package statesync
