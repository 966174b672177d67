package replication

import "time"

// Receiver decodes the messages of a world at a client. Its methods are called one at a time, with
// the lock of Subscriptions held, except Deliver.
type Receiver interface {
	// Check returns an error if the server's offer does not match the client's type.
	Check(o *Offer) error
	// Knows reports whether the client has the initial state with that hash.
	Knows(hash uint64) bool
	// Begin prepares the first message of a stream. initial is the encoded initial state, or nil if
	// it is known.
	Begin(o *Offer, initial []byte) error
	// Receive decodes a message that arrived at that time. It counts errors by reason.
	Receive(message []byte, at time.Time, st *Stats) error
	// AppendAck appends an ack of all messages received.
	AppendAck(dst []byte) []byte
	// Deliver passes on the message that Receive decoded last. It is called without the lock, on
	// the goroutine that receives.
	Deliver()
}
