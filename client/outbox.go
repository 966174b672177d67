package client

import (
	"sync"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// outbox collects the payloads that share a datagram.
type outbox struct {
	mu     sync.Mutex
	link   *transport.Conn // that the payloads are for
	bundle control.Bundler
	fresh  [rpcdelta.MaxRPC + 1]int // new frames of each RPC in it
}

// added is how a payload was added to a datagram.
type added struct {
	shared bool // after another one
	extra  int  // bytes that it takes there beside its own
}

// add adds a payload of an RPC that brings so many new frames. Where it does not
// fit, what was collected is sent first.
func (o *outbox) add(link *transport.Conn, rpc int, payload []byte, fresh int) (a added, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != link {
		o.reset()
		o.link = link
	}
	if o.fresh[rpc]+fresh > rpcdelta.MaxHeld { // what the server was promised
		if err := o.send(); err != nil {
			return a, err
		}
	}
	a.shared = o.bundle.Len() > 0
	extra, ok := o.bundle.Add(payload)
	if !ok {
		if err := o.send(); err != nil {
			return a, err
		}
		if extra, ok = o.bundle.Add(payload); !ok {
			return a, transport.ErrTooLarge
		}
		a.shared = false
	}
	a.extra = extra
	o.fresh[rpc] += fresh
	return a, nil
}

// flush sends what was collected for the link.
func (o *outbox) flush(link *transport.Conn) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != link {
		return nil
	}
	return o.send()
}

// send sends what was collected, with o.mu held.
func (o *outbox) send() error {
	message := o.bundle.Take()
	clear(o.fresh[:])
	if message == nil {
		return nil
	}
	return o.link.Send(message)
}

func (o *outbox) reset() {
	o.bundle.Reset()
	clear(o.fresh[:])
	o.link = nil
}
