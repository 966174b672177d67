// Package replication sends worlds from a server to its clients, at both ends, without sockets,
// clocks or goroutines of its own but those of [World.Broadcast]. Times are arguments.
//
// The server has a [World] for each set of objects, and [Replicas] for each player. It offers a
// world; the client subscribes to it or not. A subscribed client receives the initial state over
// the reliable channel, unless it has it already, and then messages of one codec: snapshots or
// state synchronization. A message larger than a datagram is sent in fragments. The client acks
// messages at a limited rate. docs/spec/streams.md specifies each byte.
//
// The client has [Subscriptions] for each connection. What a world's messages contain is decoded by
// a [Receiver] of the package client.
package replication
