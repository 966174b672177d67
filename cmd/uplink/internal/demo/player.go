package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demopanel"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/token"
)

const (
	// atOnce is the number of clients that reconnect concurrently when the codec changes.
	atOnce = 8
	// again is the time until a failed connection attempt is repeated.
	again = time.Second
)

// Settings implements demopanel.Game.
func (d *demo) Settings() demopanel.Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settings
}

// Change implements demopanel.Game. The link and redundancy change immediately. For another codec
// or preset each client reconnects, and continues to play meanwhile.
func (d *demo) Change(s demopanel.Settings) error {
	if err := d.network.Set(s.Link.Up(), s.Link.Down()); err != nil {
		return err
	}
	d.mu.Lock()
	d.settings = s
	d.mu.Unlock()
	for _, p := range d.players {
		conn, _ := p.now()
		if err := conn.SetRedundancy(s.Redundancy); err != nil {
			return err
		}
	}
	select {
	case d.changed <- struct{}{}:
	default: // the player reads the settings later anyway
	}
	return nil
}

// follow reconnects the clients after each change of the codec or preset.
func (d *demo) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
		}
		for !d.recode(ctx) && sleep.For(ctx, again) == nil {
		}
	}
}

// recode reconnects each client that does not use the codec once, and reports whether all use it.
func (d *demo) recode(ctx context.Context) bool {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, p := range d.players {
		g.Go(func() error { return d.renew(ctx, p) })
	}
	return g.Wait() == nil && d.switched() == len(d.players)
}

func (d *demo) switched() int {
	want, n := codingOf(d.Settings()), 0
	for _, p := range d.players {
		if _, coding := p.now(); coding == want {
			n++
		}
	}
	return n
}

// renew reconnects a client with the chosen codec and preset. The old connection closes after its
// frames are delivered.
func (d *demo) renew(ctx context.Context, p *player) error {
	s := d.Settings()
	if _, coding := p.now(); coding == codingOf(s) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, stream, err := d.dial(ctx, p, s)
	if err != nil {
		return err
	}
	old := p.swap(conn, stream, codingOf(s))
	d.closing.Go(func() {
		time.Sleep(s.Link.Drained() + margin)
		_ = old.Close() // always nil
		d.collector.Replace(old, conn)
	})
	// A change since the call of dial may have been applied to the old connection.
	return conn.SetRedundancy(d.Settings().Redundancy)
}

// dial opens another connection for a client. The server sees each connection as a separate player,
// since a new connection of the same player would end the old one, which continues to play. The
// client ID of the first connection is the index plus 1.
func (d *demo) dial(ctx context.Context, p *player, s demopanel.Settings) (*client.Conn, *client.Stream[schema.Frame], error) {
	id := uint64(1 + p.index + p.dialed*len(d.players))
	p.dialed++
	cfg := client.Config{
		Network: d.network, Tuning: client.Tuning{Codec: s.Codec, Redundancy: s.Redundancy}, Preset: s.Preset, Transport: client.Transport{BindTimeout: patience, Suites: d.options.Suites, Insecure: d.options.insecure()},
		Renew: func(context.Context) (token.Token, error) { return load.Issue(d.key.Issuer(), id, "", d.srv.Addr()) },
	}
	var err error
	if cfg.Token, err = cfg.Renew(ctx); err != nil {
		return nil, nil, err
	}
	conn, stream, err := load.Bind(ctx, d.srv.Addr().String(), cfg, p.trace)
	if err != nil {
		return nil, nil, err
	}
	if err := subscribe(ctx, conn, p.index); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, stream, nil
}

// Traffic implements demopanel.Game.
func (d *demo) Traffic() demopanel.Traffic {
	d.mu.Lock()
	t := d.traffic
	d.mu.Unlock()
	t.Switched, t.Clients = d.switched(), len(d.players)
	t.Mismatches = d.mismatches.Load()
	return t
}

func (d *demo) measured(o observation, elapsed time.Duration) {
	t := o.total()
	second := elapsed.Seconds()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.traffic = demopanel.Traffic{Seconds: second, Calls: float64(t.Sent.Frames()) / second, Redundancy: t.redundancy}
}

// coding contains the settings that require a new connection when they change.
type coding struct {
	codec  rpcdelta.Codec
	preset client.Preset
}

func codingOf(s demopanel.Settings) coding { return coding{s.Codec, s.Preset} }

// player is a client that repeats a trace, starting at a row of its own.
type player struct {
	index  int
	trace  *trace.Trace
	row    int // row of the next call
	dialed int // number of dials; used by one goroutine at a time

	mu      sync.Mutex
	conn    *client.Conn
	stream  *client.Stream[schema.Frame]
	coding  coding
	session uint64          // session whose first row is recorded
	past    client.RPCStats // statistics of replaced connections
}

// join connects a player.
func (d *demo) join(ctx context.Context, p *player) (*load.Bot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %v", patience))
	defer cancel()
	conn, stream, err := d.dial(ctx, p, d.settings)
	if err != nil {
		return nil, err
	}
	p.swap(conn, stream, codingOf(d.settings))
	return &load.Bot{
		Turn: func() error { return d.turn(p) },
		Close: func() error {
			conn, _ := p.now()
			return conn.Close()
		},
	}, nil
}

// turn sends the next row. For the first row of a session, it records the place before the server
// can receive the frame.
func (d *demo) turn(p *player) error {
	row := p.row
	p.row++
	d.stage.Sent(p.index, row, p.trace.At(row))
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.conn.ID()
	if id != p.session {
		d.places.Store(id, place{p.index, row})
	}
	if _, err := p.stream.Send(p.trace.At(row)); err != nil {
		return fmt.Errorf("%s: row %d: %w", p.trace.Name, row%len(p.trace.Frames), err)
	}
	// If the client reconnected during the call, the session of the frame is unknown, and frames of
	// the new session are not compared.
	p.session = p.conn.ID()
	return nil
}

func (p *player) swap(conn *client.Conn, stream *client.Stream[schema.Frame], c coding) (old *client.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream != nil {
		p.past = p.counted()
	}
	old = p.conn
	p.conn, p.stream, p.coding = conn, stream, c
	return old
}

func (p *player) now() (*client.Conn, coding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn, p.coding
}

func (p *player) stats() client.RPCStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted()
}

// counted returns the statistics of all connections. The caller holds p.mu.
func (p *player) counted() client.RPCStats { return meter.Sum(p.stream.Stats(), p.past) }
