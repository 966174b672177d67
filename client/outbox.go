package client

import (
	"sync"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// outbox collects the payloads that share a datagram. It is safe for concurrent use.
type outbox struct {
	mu     sync.Mutex
	link   *transport.Conn // for which payloads are collected
	bundle control.Bundler
	frames [rpcdelta.MaxRPC + 1]int // new frames of each RPC in the bundle
}

// add adds a payload of an RPC with that number of new frames. If it does not fit, the collected
// payloads are sent first. It reports whether the payload follows another one in its datagram, and
// how many bytes it takes there besides its own.
func (o *outbox) add(link *transport.Conn, rpc int, payload []byte, frames int) (shared bool, extra int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != link {
		o.bundle.Reset()
		clear(o.frames[:])
		o.link = link
	}
	if o.frames[rpc]+frames > rpcdelta.MaxHeld { // limit of BindRequest.Frames
		if err := o.send(); err != nil {
			return false, 0, err
		}
	}
	shared = o.bundle.Len() > 0
	extra, ok := o.bundle.Add(payload)
	if !ok {
		if err := o.send(); err != nil {
			return false, 0, err
		}
		if extra, ok = o.bundle.Add(payload); !ok {
			return false, 0, transport.ErrTooLarge
		}
		shared = false
	}
	o.frames[rpc] += frames
	return shared, extra, nil
}

// flush sends the payloads that were collected for the link.
func (o *outbox) flush(link *transport.Conn) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != link {
		return nil
	}
	return o.send()
}

// send sends the collected payloads. The caller holds o.mu.
func (o *outbox) send() error {
	message := o.bundle.Take()
	clear(o.frames[:])
	if message == nil {
		return nil
	}
	return o.link.Send(message)
}
