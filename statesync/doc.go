// Package statesync keeps a client's simulation close to the server's. Both simulate; the dedicated server (DS) sends
// each player the players' inputs and, within a budget of bytes, the state of the objects that matter most. The client
// takes that state as it is, simulates on from it, and hides the jumps in what it draws.
//
//	DS                                            client
//	Quantizer.Round, step, Quantizer.Add
//	Sender.Prioritize, Append ----- packet ----> Receiver.Decode
//	Sender.Ack                <----- ack ------  Receiver.Ack
//	                                              Quantizer.Round, step; Smoother
//
// An object is described by a snapshot.Schema, as for snapshots. An update is coded against the newest one of its object
// that the player acked, moved on by the velocities in it. What adapts is kept beside each packet at both ends and goes
// on from that of the newest acked one, so a packet decodes from its own bytes and from what was acked, whatever else
// was lost, late or reordered.
//
// Integers only after quantization, but for smoothing: the same bits on every processor. No sockets, no clock, no
// goroutines: times are ticks that the caller counts. No type is safe for concurrent use.
package statesync
