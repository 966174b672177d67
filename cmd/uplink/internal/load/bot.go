package load

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Bot is one player: a client, and the function that it calls at each of its turns.
type Bot struct {
	// Conn is the connection that is counted and rebound; nil: none.
	Conn *client.Conn
	// Turn makes the calls of one turn. An error other than [client.ErrReconnecting] ends the bot.
	// Calls of Turn do not overlap.
	Turn func() error
	// Close disconnects the bot.
	Close func() error

	phase time.Duration // offset of its turns within the period
	since time.Time     // time at which it joined
	ended atomic.Pointer[error]
	// handovers counts those that completed, and current is Conn as soon as it exists.
	handovers atomic.Uint64
	current   atomic.Pointer[client.Conn]
	seen      seen // used by observe
}

// Err returns the error that ended the bot, or nil.
func (b *Bot) Err() error {
	if err := b.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// turn makes the calls of a turn, and reports whether the bot continues.
func (b *Bot) turn() bool {
	err := b.Turn()
	if err == nil || errors.Is(err, client.ErrReconnecting) {
		return true
	}
	b.ended.Store(&err)
	return false
}

// spread returns element i of a sequence whose first n elements are spread evenly over [0, 1), for
// each n.
func spread(i int) float64 {
	_, part := math.Modf(float64(i) / math.Phi)
	return part
}

// Bind connects a client and binds the RPC of a trace.
func Bind(
	ctx context.Context, addr string, cfg client.Config, t *trace.Trace,
) (*client.Conn, *client.Stream[schema.Frame], error) {
	conn, err := client.Dial(ctx, addr, cfg)
	if err != nil {
		return nil, nil, err
	}
	stream, err := client.BindSchema(ctx, conn, t.Schema, client.BindConfig{})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, stream, nil
}
