package session

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/statesync"
)

// Endpoints replicates over a real server and its only client. The server has a world for
// ModeSnapshots, one for ModeSnapshots with areas, and one for ModeState. The methods must be
// called from the goroutine that polls the server.
type Endpoints struct {
	visuals *ds.World[world.Visual]
	areas   *ds.World[world.Visual]
	states  *ds.World[world.State]

	player       *ds.Player
	conn         *client.Conn
	last         int           // last tick of the worlds
	offset       int           // difference between the ticks of the worlds and those of the session, which restart at 0
	unsubscribed chan struct{} // closed when the goroutine of the previous mode has returned
	stream       stream        // stream of the current mode, or nil
}

// stream is the server's end of a mode.
type stream interface {
	Carrier
	// offer offers the world to a player.
	offer(p *ds.Player) error
}

// NewEndpoints registers the worlds with a server, before Serve.
func NewEndpoints(s *ds.Server) (*Endpoints, error) {
	e := &Endpoints{unsubscribed: make(chan struct{})}
	close(e.unsubscribed)
	var err error
	if e.visuals, err = ds.NewWorld(s, "seen", ds.WorldConfig[world.Visual]{TickHz: world.TickRate}); err != nil {
		return nil, err
	}
	if e.areas, err = ds.NewWorld(s, "areas", ds.WorldConfig[world.Visual]{TickHz: world.TickRate, Areas: true}); err != nil {
		return nil, err
	}
	e.states, err = ds.NewWorld(s, "state", ds.WorldConfig[world.State]{TickHz: world.TickRate})
	return e, err
}

// Joined must be called when the player joins or rejoins.
func (e *Endpoints) Joined(p *ds.Player) error {
	e.player = p
	if e.stream == nil {
		return nil
	}
	return e.stream.offer(p)
}

// Connected sets the client's connection. It must be called before Make.
func (e *Endpoints) Connected(c *client.Conn) { e.conn = c }

// Make returns both ends of a mode, for Config.New. Those of the previous mode must be closed.
// Replication streams have no codec for full snapshots, so the session carries them over its
// simulated link.
func (e *Endpoints) Make(m Mode, initial Initial, o Options) (Sender, Receiver, error) {
	e.stream = nil
	e.offset = e.last + 1 - initial.Tick
	var (
		s interface {
			Sender
			stream
		}
		r   Receiver
		err error
	)
	switch m {
	case ModeSnapshots:
		s, r, err = newSnapshotStream(e, initial, o)
	case ModeState:
		s, r, err = newStateStream(e, initial, o)
	default:
		return newPair(m, initial, o)
	}
	if err == nil && e.player != nil {
		err = s.offer(e.player)
	}
	if err != nil {
		return nil, nil, err
	}
	e.stream = s
	return s, r, nil
}

// Wait waits for the goroutines of Make. The client's connection must be closed.
func (e *Endpoints) Wait() { <-e.unsubscribed }

// tick returns the worlds' tick of a tick of the session.
func (e *Endpoints) tick(t int) uint64 {
	e.last = t + e.offset
	return uint64(e.last)
}

// disconnected reports whether an error means that the player is not connected, which is temporary.
func disconnected(err error) bool {
	return errors.Is(err, ds.ErrNotReady) || errors.Is(err, net.ErrClosed)
}

// view is the client's view of a world, which is set as soon as the server has offered the world.
type view[V io.Closer] struct {
	opened atomic.Pointer[V]
	cancel context.CancelFunc
}

// offerTimeout is the timeout of one attempt to open a view.
const offerTimeout = time.Second

// subscribe calls open, once the previous mode has returned, until it succeeds or is canceled.
func subscribe[V io.Closer](e *Endpoints, open func(context.Context) (V, error)) *view[V] {
	ctx, cancel := context.WithCancel(context.Background())
	w, before, done := &view[V]{cancel: cancel}, e.unsubscribed, make(chan struct{})
	e.unsubscribed = done
	go func() {
		defer close(done)
		<-before
		for ctx.Err() == nil {
			attempt, stop := context.WithTimeout(ctx, offerTimeout)
			v, err := open(attempt)
			stop()
			if err == nil {
				w.opened.Store(&v)
				<-ctx.Done()
				_ = v.Close() // always nil
				return
			}
			if !errors.Is(err, client.ErrNotOffered) {
				return // the connection or the view is closed
			}
		}
	}()
	return w
}

// get returns the view. It returns false if the view is not open.
func (w *view[V]) get() (v V, ok bool) {
	if opened := w.opened.Load(); opened != nil {
		return *opened, true
	}
	return v, false
}

// traffic is the traffic of a world since newTraffic.
type traffic struct {
	stats            func() replication.Stats
	bytes, datagrams uint64 // before newTraffic
	over             bool
}

func newTraffic(stats func() replication.Stats) traffic {
	st := stats()
	return traffic{stats: stats, bytes: st.WireBytes(), datagrams: st.Datagrams}
}

// streamSender is the common part of both streams. The connection carries their messages and acks.
type streamSender struct {
	traffic
	endpoints *Endpoints
	leave     func() // closes the client's view
	stop      func() // stops the offered stream; nil before offer
}

// Ack implements Sender.
func (s *streamSender) Ack([]byte) error { return nil }

// Close implements Carrier.
func (s *streamSender) Close() error {
	if s.stop != nil {
		s.stop()
	}
	s.over = true
	s.leave()
	return nil
}

// putAll writes all cubes to a world, at a tick of the session. Cube i is in the area cells[i].
// Without areas, cells is nil.
func putAll[T any, P interface {
	*T
	FromBody(b *world.Body)
}](w *ds.World[T], tick uint64, bodies []world.Body, cells []area.ID) error {
	if err := w.Begin(tick); err != nil {
		return err
	}
	var state T
	for i := range bodies {
		P(&state).FromBody(&bodies[i])
		var in []area.ID
		if cells != nil {
			in = cells[i : i+1]
		}
		if err := w.Put(uint16(i), 0, &state, in...); err != nil {
			return err
		}
	}
	w.Commit()
	return nil
}

// streamReceiver is the common part of the receivers of both streams.
type streamReceiver struct{ offset int }

// Receive implements Receiver. The connection carries all messages.
func (streamReceiver) Receive(time.Duration, []byte) error { return nil }

// Ack implements Receiver. The connection carries the acks.
func (streamReceiver) Ack(dst []byte) []byte { return dst }

// Traffic implements Carrier.
func (m *traffic) Traffic() (bytes, datagrams int) {
	if m.over {
		return 0, 0
	}
	st := m.stats()
	return int(st.WireBytes() - m.bytes), int(st.Datagrams - m.datagrams)
}

// dsStateSender sends the same data as a stateSender, over a replication stream.
type dsStateSender struct {
	streamSender
	stream *ds.StateStream
	every  int
	cfg    ds.StateConfig
}

// clientStateReceiver continues its simulation from received states.
type clientStateReceiver struct {
	streamReceiver
	*simulator
	view   *view[*client.StateView[world.State]]
	inputs []statesync.TickInputs
	cubes  []int
	states []world.State
}

func newStateStream(e *Endpoints, initial Initial, o Options) (*dsStateSender, *clientStateReceiver, error) {
	sim, err := newSimulator(initial, o)
	if err != nil {
		return nil, nil, err
	}
	r := &clientStateReceiver{streamReceiver: streamReceiver{e.offset}, simulator: sim}
	cfg := client.StateConfig[world.State]{AckHz: world.TickRate}
	r.view = subscribe(e, func(ctx context.Context) (*client.StateView[world.State], error) {
		return client.SubscribeState(ctx, e.conn, "state", cfg)
	})
	return &dsStateSender{
		streamSender: streamSender{traffic: newTraffic(e.states.Stats), endpoints: e, leave: r.view.cancel}, every: world.TickRate / o.Rate,
		cfg: ds.StateConfig{Bandwidth: bandwidth(o.Budget)},
	}, r, nil
}

// bandwidth returns a budget, in bits per second, of at most one datagram per tick.
func bandwidth(bits int) int {
	const maxBandwidth = 8 * world.TickRate * (maxPayload + packetOverhead)
	if bits == 0 {
		return maxBandwidth
	}
	return max(1000, min(bits, maxBandwidth))
}

func (s *dsStateSender) offer(p *ds.Player) (err error) {
	if s.stream, err = s.endpoints.states.OfferState(p, s.cfg); err == nil {
		s.stream.SetViewer(0)
		s.stop = s.stream.Stop
	}
	return err
}

// Send implements Sender.
func (s *dsStateSender) Send(f *Frame, _ func([]byte)) error {
	if s.stream == nil || s.over {
		return nil
	}
	tick := s.endpoints.tick(f.Tick)
	if err := s.stream.AddInputs(tick, statesync.Input{Data: []byte{byte(f.Input)}}); err != nil {
		return err
	}
	if f.Tick%s.every != 0 {
		return nil
	}
	for i := range f.Bodies {
		if err := s.stream.Prioritize(uint16(i), priority(i, &f.Bodies[i])); err != nil {
			return err
		}
	}
	if err := putAll(s.endpoints.states, tick, f.Bodies, nil); err != nil {
		return err
	}
	err := s.stream.Send()
	if disconnected(err) || errors.Is(err, statesync.ErrBudget) { // the user may choose a budget that is too small
		return nil
	}
	return err
}

// SetBudget implements Sender.
func (s *dsStateSender) SetBudget(bits int) {
	s.cfg.Bandwidth = bandwidth(bits)
	if s.stream != nil {
		_ = s.stream.SetBandwidth(s.cfg.Bandwidth, 0) // the value is always valid
	}
}

// Draw implements Receiver.
func (r *clientStateReceiver) Draw(now time.Duration, drawn []world.Visual) (time.Duration, bool) {
	if v, ok := r.view.get(); ok {
		v.Poll(func(u *client.StateUpdate[world.State]) { r.apply(now-time.Since(u.Received), u) })
	}
	return r.simulator.Draw(now, drawn)
}

// apply passes an update to the simulation, in the session's ticks.
func (r *clientStateReceiver) apply(at time.Duration, u *client.StateUpdate[world.State]) {
	tick := int(u.Tick) - r.offset
	if tick < 0 {
		return // the snapshot is from a previous mode
	}
	r.inputs = r.inputs[:0]
	for _, t := range u.Inputs {
		if t.Tick -= int64(r.offset); t.Tick >= 0 {
			r.inputs = append(r.inputs, t)
		}
	}
	r.cubes, r.states = r.cubes[:0], r.states[:0]
	for i := range u.Objects {
		if o := &u.Objects[i]; !o.Gone {
			r.cubes, r.states = append(r.cubes, int(o.ID)), append(r.states, o.State)
		}
	}
	r.accept(at, tick, r.inputs, r.cubes, r.states)
}
