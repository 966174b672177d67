package ds

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/session"
)

// OpenStream opens a stream to the player, whose client calls client.Config.OnStream with it: for
// more than fits a message, such as levels and replays. Streams do not delay messages, and are not
// ordered with them nor with each other. They share Config.StreamRate. The name has 1 to 128 bytes
// and does not begin with "uplink.". If ctx is done before the stream is over, the stream is
// aborted with the cause of ctx.
//
// OpenStream never waits, but the stream's Write and Close do: a game loop calls them on another
// goroutine. At most 8 streams to a player are open at a time, and 16 a second can be opened, with
// bursts of 32; beyond that the error is session.ErrBacklog. After the end of the session, the
// error wraps the reason.
func (p *Player) OpenStream(ctx context.Context, name string) (session.StreamWriter, error) {
	w, err := p.bulk.Open(ctx, time.Now(), name)
	if err != nil {
		return nil, fmt.Errorf("ds: open a stream to player %d: %w", p.ID(), err)
	}
	return w, nil
}

// openStreams prepares a player for streams.
func (p *Player) openStreams() {
	p.bulk = streams.New((*streamOwner)(p))
	p.conn.SetBulk(p.server.cfg.StreamRate, p.bulk.Next, func(b []byte, at time.Time) {
		if err := p.bulk.Deliver(at, b); err != nil {
			p.drop(at, Malformed)
			p.violate(err.Error())
		}
	})
}

// streamOwner is a Player as the owner of its streams.
type streamOwner Player

// Wake implements streams.Owner.
func (o *streamOwner) Wake() { o.conn.WakeBulk() }

// Accept implements streams.Owner.
func (o *streamOwner) Accept(r *streams.Reader) bool {
	p, s := (*Player)(o), o.server
	f := s.cfg.OnStream
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
	if r.Name() != control.HandoverStream {
		return nil
	}
	return (*Player)(o).acceptHandover(r)
}

// Count implements streams.Owner.
func (o *streamOwner) Count(sent, received int) {
	o.server.streamed[0].Add(uint64(sent))
	o.server.streamed[1].Add(uint64(received))
}
