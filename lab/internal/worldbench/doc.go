// Package worldbench measures the cost of sending a world to many players: the time per tick, its
// bytes, and the memory per player.
//
// The server is real: a [replication.World], and sessions that encrypt and send to a socket on the
// loopback interface. The clients are simulated, without a clock: their delays, losses and acks are
// determined by a seed. Some of them decode received messages. Their work is not measured.
package worldbench
