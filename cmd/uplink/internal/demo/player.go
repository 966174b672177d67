package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/trace"
)

// player is one client that plays a trace, from its own place in it, again and
// again.
type player struct {
	conn   *client.Conn
	stream *client.FrameStream
	trace  *trace.Trace
	offset int   // row of frame 0
	err    error // of play
}

func newPlayer(ctx context.Context, addr string, cfg client.Config, t *trace.Trace, offset int) (*player, error) {
	conn, err := client.Dial(ctx, addr, cfg)
	if err != nil {
		return nil, err
	}
	stream, err := client.BindSchema(conn, t.Schema)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &player{conn: conn, stream: stream, trace: t, offset: offset}, nil
}

// play sends a frame at each tick of the trace's rate until the context is done.
func (p *player) play(ctx context.Context) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / p.trace.Schema.RateHz()))
	defer tick.Stop()
	for i := p.offset; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := p.stream.Send(p.trace.At(i))
		if err != nil && !errors.Is(err, client.ErrReconnecting) {
			p.err = fmt.Errorf("%s: row %d: %w", p.trace.Name, i%len(p.trace.Frames), err)
			return
		}
	}
}
