package transport

import "time"

// TapEvent is one payload of [Conn.Send] or message of [Conn.SendReliable] that a connection sends or receives; see
// [Conn.SetTap].
type TapEvent struct {
	At time.Time
	// Sent says that this end has sent it; else it came.
	Sent bool
	// Reliable says that it is a message.
	Reliable bool
	// Number is the packet number of a payload, Size that of its UDP payload in bytes. A message has neither: it
	// may take several datagrams, or a part of one, again and again.
	Number uint64
	Size   int
	// Body is valid during the call.
	Body []byte
}

// SetTap registers a function that is called with each payload and message when it is sent, or before the handler
// gets it: from any goroutine, and perhaps with the connection's lock held. It must be quick, and must not call the
// Conn's methods. Nil removes it. SetTap must be called from inside a method of the [Handler].
func (c *Conn) SetTap(tap func(TapEvent)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tap = tap
}

// sent tells the tap of a payload that is about to be sent. It is called with the lock held.
func (c *Conn) sent(b []byte) {
	number, size := c.session.NextSend(len(b))
	c.tap(TapEvent{At: time.Now(), Sent: true, Number: number, Size: size, Body: b})
}
