package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
)

// player is one client that repeats a trace from a row of its own.
type player struct {
	index  int
	trace  *trace.Trace
	offset int   // row where it begins
	err    error // of play
	dialed int   // times; by one goroutine at a time

	mu      sync.Mutex
	conn    *client.Conn
	stream  *client.FrameStream
	codec   rpcdelta.Codec
	session uint64          // whose first frame is known to be which row
	past    client.RPCStats // of streams that others took the place of
}

// run sends a frame at each tick of the trace's rate until the context is done.
func (d *demo) run(ctx context.Context, p *player) {
	row := p.offset
	for range sleep.Every(ctx, time.Duration(float64(time.Second)/p.trace.Schema.RateHz())) {
		d.stage.Sent(p.index, row, p.trace.At(row))
		err := d.send(p, row)
		if err != nil && !errors.Is(err, client.ErrReconnecting) {
			p.err = fmt.Errorf("%s: row %d: %w", p.trace.Name, row%len(p.trace.Frames), err)
			return
		}
		row++
	}
}

// send sends a row. The first one of a session is noted before the server can have it.
func (d *demo) send(p *player, row int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.conn.ID()
	if id != p.session {
		d.places.Store(id, place{p.index, row})
	}
	if err := p.stream.Send(p.trace.At(row)); err != nil {
		return err
	}
	// If the client has reconnected since, the frame's session is unknown: frames of the new
	// session are not compared.
	p.session = p.conn.ID()
	return nil
}

func (p *player) swap(conn *client.Conn, stream *client.FrameStream, codec rpcdelta.Codec) (old *client.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream != nil {
		p.past = p.counted()
	}
	old = p.conn
	p.conn, p.stream, p.codec = conn, stream, codec
	return old
}

func (p *player) now() (*client.Conn, rpcdelta.Codec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn, p.codec
}

func (p *player) stats() client.RPCStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted()
}

// counted is stats with p.mu held.
func (p *player) counted() client.RPCStats { return meter.Sum(p.stream.Stats(), p.past) }
