package bots

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/trace"
)

// bot is one player: it plays a trace from a place of its own, again and again.
type bot struct {
	conn   *client.Conn
	stream *client.FrameStream
	trace  *trace.Trace

	// Of its pacer alone:
	row   int
	phase time.Duration // of its calls within the period
	since time.Time     // when it joined

	ended atomic.Pointer[error]
	seen  seen // of observe
}

// ErrSilence says that the server did not answer for Options.Wait.
var ErrSilence = errors.New("no answer")

// newBot connects bot i.
func (r *run) newBot(ctx context.Context, i int) (*bot, error) {
	t := r.traces[i%len(r.traces)]
	silence := fmt.Errorf("%w within %v", ErrSilence, r.options.Wait)
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Wait, silence)
	defer cancel()
	cfg, err := r.client(i)
	if err != nil {
		return nil, err
	}
	conn, err := client.Dial(ctx, r.options.To, cfg)
	if err != nil {
		return nil, err
	}
	stream, err := client.BindSchema(ctx, conn, t.Schema, client.BindConfig{})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	b := &bot{conn: conn, stream: stream, trace: t, row: i * len(t.Frames) / r.options.Players, since: time.Now()}
	if r.options.Rate > 0 {
		b.phase = time.Duration(spread(i) * float64(time.Second) / r.options.Rate)
	}
	return b, nil
}

// spread gives number i of a sequence whose first n numbers lie evenly in [0, 1), for each n: so many players do not
// call at the same moment, however many have joined.
func spread(i int) float64 {
	_, part := math.Modf(float64(i) / math.Phi)
	return part
}

// call makes one call. It is false if there will be no more.
func (b *bot) call() bool {
	err := b.stream.Send(b.trace.At(b.row))
	b.row++
	if err == nil || errors.Is(err, client.ErrReconnecting) {
		return true
	}
	err = fmt.Errorf("%s: row %d: %w", b.trace.Name, (b.row-1)%len(b.trace.Frames)+1, err)
	b.ended.Store(&err)
	return false
}

// over says why the bot has stopped; nil if it has not.
func (b *bot) over() error {
	if err := b.ended.Load(); err != nil {
		return *err
	}
	return nil
}
