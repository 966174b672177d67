// Package worldbench measures what it costs a server to send a world to many players: the time of a
// tick, its bytes, and the memory of a player.
//
// The server is real: a [replication.World], and sessions that encrypt and send to a socket on the
// loopback interface. The clients are simulated, without a clock: their delays, losses and acks
// follow from a seed. Some of them decode what they receive. Their work is not measured.
package worldbench
