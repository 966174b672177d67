// Package rpcdelta is the uplink codec: [Encoder], [Decoder] and acks. The importable package of
// the same name has the part for transports of a game's own; clients, servers and tools use all of
// it. The package opens no sockets, reads no clock and starts no goroutines.
package rpcdelta
