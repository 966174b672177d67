// Package replication sends worlds from a server to its clients. It contains both ends. It has no
// sockets and no clocks: times are arguments. Only [World.Broadcast] and [World.Release] start
// goroutines.
//
// The server has a [World] for each set of objects, and [Replicas] for each player. It offers a
// world, and the client may subscribe to it. A subscribed client receives the initial state over
// the reliable channel, unless it has the state already. Then it receives messages of one codec:
// snapshots or state synchronization. A message larger than a datagram is sent in fragments. The
// client acks messages at a limited rate. docs/spec/streams.md specifies each byte.
//
// The client has [Subscriptions] for each connection. A [Receiver] of the package client decodes
// the messages of a world.
package replication
