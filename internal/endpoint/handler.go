package endpoint

import "time"

// Handler receives the events of the connections of one [Listener] or of one dialed [Conn]. One
// goroutine makes all calls, one after the other and without a lock. They may call any method of a
// Conn or Listener except Close, which waits for that goroutine. Nothing is received during a call,
// so it should be short. Datagrams sent meanwhile, by any goroutine, are queued and written in
// order when the received batch has been handled, or when the queue is full.
//
// If the Handler of a Listener has the method Handled(), it is called after each batch of
// datagrams, before Tick if that is due too, and when the listener has stopped.
//
// If the Handler of a Listener has the method Moved(c *Conn, from netip.AddrPort), it is called
// when a connection continues from another address than from, before datagrams from there are
// delivered.
//
// If the Handler of a Listener has the method Refused(client uint64, err error), it is called when
// the listener refuses a hello. client is the client id of its token if the token is authentic,
// otherwise 0. err is the error that the client gets. Refused must not call methods of the
// Listener.
//
// A panic while a datagram of a connection is handled, in a call of the handler or before it, ends
// this connection with transport.ErrPanic, and so does a panic in any call of a dialed connection's
// handler. If the Handler has the method Panicked(c *Conn, v any, stack []byte), that is called
// first, and may close the connection with another cause; otherwise the panic is logged. A panic in
// Tick or Refused of a listener's handler ends the process. If a call ends its goroutine with
// runtime.Goexit, as FailNow of package testing does, another goroutine continues with the next
// datagrams; the rest of the current batch may be lost.
type Handler interface {
	// Opened is the first call for a connection. For a dialed one it returns before Dial does.
	Opened(c *Conn)
	// Closed is the last call for a connection that was opened. The error wraps an error of package
	// session, whichever end closed the connection, or is an error of the packet connection of a
	// dialed one.
	Closed(c *Conn, err error)
	// Datagram delivers the payload b of a Send of the peer, received at the time at. The payload
	// is valid during the call.
	Datagram(c *Conn, b []byte, at time.Time)
	// Message delivers a message of a SendReliable. The message is valid during the call.
	Message(c *Conn, b []byte, at time.Time)
	// Tick is called once per [Config.Tick], also if nothing is received: by a listener while it
	// serves, for a dialed connection while it is open, or with [OnWake] when [Conn.Wake] requests
	// it.
	Tick(now time.Time)
}
