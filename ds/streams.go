package ds

import (
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/streams"
)

// streamOwner implements streams.Owner for a Player.
type streamOwner Player

// Wake implements streams.Owner.
func (o *streamOwner) Wake() { o.conn.WakeBulk() }

// Accept implements streams.Owner.
func (o *streamOwner) Accept(r *streams.Reader) bool {
	p, s := (*Player)(o), o.server
	f := s.cfg.Hooks.OnStream
	if f == nil || !p.handover.switched.IsZero() {
		return false
	}
	var over chan struct{}
	if p.awaits.Load() {
		over = p.standby.over
	}
	s.streaming.Go(func() {
		r.Serve(func() {
			if over != nil {
				<-over
			}
			if !p.awaits.Load() {
				s.guard(p, func() { f(p, r) })
			}
		})
	})
	return true
}

// AcceptReserved implements streams.Owner.
func (o *streamOwner) AcceptReserved(r *streams.Reader) func([]byte, error) {
	if r.Name() != message.HandoverStream {
		return nil
	}
	return (*Player)(o).acceptHandover(r)
}

// Count implements streams.Owner.
func (o *streamOwner) Count(sent, received int) {
	o.server.streamed[0].Add(uint64(sent))
	o.server.streamed[1].Add(uint64(received))
}
