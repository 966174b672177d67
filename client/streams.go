package client

import (
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/streams"
)

// streamOwner implements streams.Owner for a link.
type streamOwner link

// Wake implements streams.Owner.
func (o *streamOwner) Wake() { o.own.WakeBulk() }

// Accept implements streams.Owner.
func (o *streamOwner) Accept(r *streams.Reader) bool {
	f := o.cfg.Hooks.OnStream
	if f != nil {
		o.work.Go(func() { r.Serve(func() { (*link)(o).guard(func() { f(r) }) }) })
	}
	return f != nil
}

// AcceptReserved implements streams.Owner.
func (o *streamOwner) AcceptReserved(r *streams.Reader) func([]byte, error) {
	l := (*link)(o)
	if r.Name() != message.HandoverStream || l.used && !l.isCurrent() {
		return nil
	}
	return func(data []byte, err error) { l.receivePayload(l, r, data, err) }
}

// Count implements streams.Owner.
func (o *streamOwner) Count(sent, received int) {
	o.streamed[0].Add(uint64(sent))
	o.streamed[1].Add(uint64(received))
}
