package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// outbox sends the payloads of RPCs to a server, and collects those that share a datagram. It is
// safe for concurrent use.
type outbox struct {
	mu     sync.Mutex
	bundle message.Bundler
	frames [rpcdelta.MaxRPC + 1]int // new frames of each RPC in the bundle

	worlds *replication.Worlds // worlds whose acks precede the payloads in a datagram
	sent   atomic.Uint64       // number of datagrams with payloads
}

// post sends a payload or bundle in a datagram, preceded by acks of worlds if they are due.
func (o *outbox) post(message []byte) error {
	o.sent.Add(1)
	return o.worlds.SendWithAcks(message, time.Now())
}

// add adds a payload of an RPC that contains the given number of new frames. If it does not fit,
// the collected payloads are sent first. shared reports whether the payload follows another one in
// its datagram. extra is its overhead in the bundle, in bytes.
func (o *outbox) add(rpc int, payload []byte, frames int) (shared bool, extra int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
			return false, 0, endpoint.ErrTooLarge
		}
		shared = false
	}
	o.frames[rpc] += frames
	return shared, extra, nil
}

// waiting reports whether payloads were collected.
func (o *outbox) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bundle.Len() > 0
}

// flush sends the payloads that were collected.
func (o *outbox) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.send()
}

// send sends the collected payloads. The caller holds o.mu.
func (o *outbox) send() error {
	message := o.bundle.Take()
	clear(o.frames[:])
	if message == nil {
		return nil
	}
	return o.post(message)
}
