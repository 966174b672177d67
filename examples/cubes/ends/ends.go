// Package ends has the ways down that go through a dedicated server and a client: snapshots and state.
package ends

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
)

// Ends are a server's worlds and the one client that takes part. Its methods are for the goroutine of the game, where handlers
// of the server run, too.
type Ends struct {
	seen  *ds.World[game.Seen]
	state *ds.World[game.State]

	player *ds.Player
	conn   *client.Conn
	last   int           // tick of the worlds
	offset int           // of their ticks from the game's, which begin anew
	idle   chan struct{} // closed when the way before has let go of its view
	now    carrier       // the way down, or nil
}

// carrier is what both ways have in common here.
type carrier interface {
	way.Carrier
	// offer offers the world to a player who has joined.
	offer(p *ds.Player) error
}

// New makes the worlds of a server that does not serve yet.
func New(s *ds.Server) (*Ends, error) {
	e := &Ends{idle: make(chan struct{})}
	close(e.idle)
	var err error
	if e.seen, err = ds.NewWorld(s, "seen", ds.WorldConfig[game.Seen]{TickHz: game.Rate}); err != nil {
		return nil, err
	}
	e.state, err = ds.NewWorld(s, "state", ds.WorldConfig[game.State]{TickHz: game.Rate})
	return e, err
}

// Joined is to be called when the player joins, or comes back.
func (e *Ends) Joined(p *ds.Player) error {
	e.player = p
	if e.now == nil {
		return nil
	}
	return e.now.offer(p)
}

// Connected is to be called with the client's connection before New of a way.
func (e *Ends) Connected(c *client.Conn) { e.conn = c }

// Make makes both ends of a way, as way.New does. The one before is closed. Full snapshots have no codec of a
// downstream: these are way.New's.
func (e *Ends) Make(k way.Kind, at way.Start, o way.Options) (way.Sender, way.Receiver, error) {
	e.now = nil
	e.offset = e.last + 1 - at.Tick
	var (
		s interface {
			way.Sender
			carrier
		}
		r   way.Receiver
		err error
	)
	switch k {
	case way.Snapshots:
		s, r = newSnapshots(e, at, o)
	case way.State:
		s, r, err = newState(e, at, o)
	default:
		return way.New(k, at, o)
	}
	if err == nil && e.player != nil {
		err = s.offer(e.player)
	}
	if err != nil {
		return nil, nil, err
	}
	e.now = s
	return s, r, nil
}

// Wait waits until nothing runs any more, after the client's connection is closed.
func (e *Ends) Wait() { <-e.idle }

// tick is the worlds' tick of one of the game's.
func (e *Ends) tick(of int) uint64 {
	e.last = of + e.offset
	return uint64(e.last)
}

// away says that an error is the player's absence, which ends by itself.
func away(err error) bool {
	return errors.Is(err, ds.ErrNotReady) || errors.Is(err, net.ErrClosed)
}

// view is the client's of a world, once there is one.
type view[V interface{ Close() error }] struct {
	mu     sync.Mutex
	v      V
	got    bool
	closed bool
}

// take takes part once the way before is over, until that succeeds or the view is closed.
func take[V interface{ Close() error }](e *Ends, part func() (V, error)) *view[V] {
	w, before, done := &view[V]{}, e.idle, make(chan struct{})
	e.idle = done
	go func() {
		defer close(done)
		<-before
		for !w.over() {
			v, err := part()
			if err == nil {
				w.set(v)
				return
			}
			if !errors.Is(err, client.ErrNotOffered) {
				return // the connection is closed
			}
		}
	}()
	return w
}

// patience is for how long a world is waited for at a time.
const patience = time.Second

func (w *view[V]) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

func (w *view[V]) set(v V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = v.Close() // it never fails
		return
	}
	w.v, w.got = v, true
}

// get gives the view, or false while there is none.
func (w *view[V]) get() (V, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.v, w.got
}

func (w *view[V]) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if !w.got {
		return nil
	}
	w.got = false
	return w.v.Close()
}

// meter counts what a world took since the way began.
type meter struct {
	stats            func() ds.DownstreamStats
	bytes, datagrams uint64 // before
	over             bool
}

func newMeter(stats func() ds.DownstreamStats) meter {
	st := stats()
	return meter{stats: stats, bytes: st.WireBytes(), datagrams: st.Datagrams}
}

// Carried is a way.Carrier's.
func (m *meter) Carried() (bytes, datagrams int) {
	if m.over {
		return 0, 0
	}
	st := m.stats()
	return int(st.WireBytes() - m.bytes), int(st.Datagrams - m.datagrams)
}
