package transport

import "time"

// Tap sees what a connection carries, without its seal; see [Conn.SetTap].
type Tap interface {
	// Carried is called with each payload and message when it is sent, or before the handler gets it: from any
	// goroutine, and perhaps with the connection's lock held. It must be quick, and must not call the Conn's
	// methods.
	Carried(c Carried)
}

// Carried is one payload of [Conn.Send] or message of [Conn.SendReliable].
type Carried struct {
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

// SetTap has t see what the connection carries from now on, or nobody if it is nil. It must be called from inside a
// method of the [Handler].
func (c *Conn) SetTap(t Tap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tap = t
}

// sent tells the tap of a payload that is about to be sent. It is called with the lock held.
func (c *Conn) sent(b []byte) {
	number, size := c.session.NextSend(len(b))
	c.tap.Carried(Carried{At: time.Now(), Sent: true, Number: number, Size: size, Body: b})
}
