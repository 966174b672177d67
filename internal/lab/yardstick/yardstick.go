// Package yardstick measures the cost of a datagram in the operating system alone, on the sockets
// of the transport. No server on these sockets can cost less.
//
// Over loopback, a send includes the work that an interrupt of a network card would do at the
// receiver.
package yardstick

import "github.com/uplink-rpc/uplink/transport"

// Batch returns n datagrams with buffers of the size of an MTU.
func Batch(n int) []transport.Datagram {
	batch := make([]transport.Datagram, n)
	for i := range batch {
		batch[i].Buf = make([]byte, 1500)
	}
	return batch
}
