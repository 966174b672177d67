package client

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/session"
)

// OpenStream opens a stream to the server, which calls ds.Config.OnStream with it: for more than
// fits a message, such as levels and replays. Streams do not delay messages, and are not ordered
// with them nor with each other. They share Config.StreamRate. The name has 1 to 128 bytes and does
// not begin with "uplink.". If ctx is done before the stream is over, the stream is aborted with
// the cause of ctx.
//
// OpenStream never waits. At most 8 streams are open at a time, and 16 a second can be opened, with
// bursts of 32; beyond that the error is session.ErrBacklog. A stream ends with its session: it
// does not continue after reconnecting. While reconnecting and after Close, the errors are those of
// [Stream.Send].
func (c *Conn) OpenStream(ctx context.Context, name string) (session.StreamWriter, error) {
	c.mu.Lock() // also while it opens the stream: a handover may not come in between
	if c.link == nil || c.leaving {
		c.mu.Unlock()
		return nil, c.noLink()
	}
	w, err := c.streams.Open(ctx, time.Now(), name)
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("client: open a stream: %w", err)
	}
	return w, nil
}

// openStreams prepares the link for streams.
func (s *connection) openStreams() {
	s.streams = streams.New((*streamOwner)(s))
	rate := s.cfg.StreamRate
	if s.cfg.Bandwidth != 0 {
		rate = min(rate, s.cfg.Bandwidth/8/2)
	}
	s.own.SetBulk(rate, s.streams.Next, func(b []byte, at time.Time) {
		s.receiving.Lock()
		defer s.receiving.Unlock()
		if err := s.streams.Deliver(at, b); err != nil {
			s.count(&s.stats.Malformed, 1)
			s.violated(s.own, err)
		}
	})
}

// streamOwner is a connection as the owner of its streams.
type streamOwner connection

// Wake implements streams.Owner.
func (o *streamOwner) Wake() { o.own.WakeBulk() }

// Accept implements streams.Owner.
func (o *streamOwner) Accept(r *streams.Reader) bool {
	f := o.cfg.OnStream
	if f != nil {
		o.work.Go(func() { r.Serve(func() { (*connection)(o).guard(func() { f(r) }) }) })
	}
	return f != nil
}

// AcceptReserved implements streams.Owner.
func (o *streamOwner) AcceptReserved(r *streams.Reader) func([]byte, error) {
	s := (*connection)(o)
	if r.Name() != message.HandoverStream || s.role != playing && s.role != waiting {
		return nil
	}
	return func(data []byte, err error) { s.receivePayload(r, data, err) }
}

// Count implements streams.Owner.
func (o *streamOwner) Count(sent, received int) {
	o.streamed[0].Add(uint64(sent))
	o.streamed[1].Add(uint64(received))
}
