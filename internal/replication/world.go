package replication

import (
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// World is a server's world, without its Go type: the most recent ticks, and a stream for each
// player. Begin, Open, Commit, Broadcast and Stream.Send are for one goroutine at a time; all other
// methods are safe for concurrent use.
type World struct {
	timeline
	hub
	broadcaster
	all       []*Stream // of Broadcast
	snapshots mode
	states    func() (*stateMode, error)
}

// stateMode is how a world is sent as state.
type stateMode struct {
	mode
	schema *snapshot.Schema
	shared statesync.Config // settings that both ends share
}

// WorldConfig configures a [World]. All fields are set.
type WorldConfig struct {
	Name           string
	Schema         *snapshot.Schema
	Fields         []string // for offers of snapshots
	TickHz, SendHz float64
	Initial        *snapshot.Set
	// Format returns the format of state streams. It is called when a world is first offered as state.
	Format func() (*StateFormat, error)
}

// NewWorld returns a world without ticks.
func NewWorld(cfg *WorldConfig) (*World, error) {
	w := &World{timeline: timeline{name: cfg.Name, schema: cfg.Schema, sets: snapshot.NewWorld(cfg.Schema, cfg.Initial)}}
	encoded, err := appendInitial(nil, cfg.Schema, cfg.Initial, MaxInitial)
	if err != nil {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.Initial: %w", cfg.Name, err)
	}
	w.snapshots = mode{initial: encoded, offer: Offer{
		Name: cfg.Name, Codec: SnapshotCodec, Fields: cfg.Fields, RateHz: cfg.SendHz, TickHz: cfg.TickHz,
		Initial: len(encoded), Hash: Hash(cfg.Initial),
	}}
	if err := w.snapshots.offer.check(); err != nil {
		return nil, fmt.Errorf("ds: world %s: %w", cfg.Name, err)
	}
	w.states = sync.OnceValues(func() (*stateMode, error) { return newStateMode(cfg) })
	return w, nil
}

func newStateMode(cfg *WorldConfig) (*stateMode, error) {
	f, err := cfg.Format()
	if err != nil {
		return nil, err
	}
	m := &stateMode{schema: f.Schema}
	if m.shared, err = f.Config(cfg.TickHz); err != nil {
		return nil, err
	}
	m.offer = Offer{Name: cfg.Name, Codec: StateCodec, Fields: f.Fields, RateHz: cfg.SendHz, TickHz: cfg.TickHz}
	return m, m.offer.check()
}

// Name returns the name of the world.
func (w *World) Name() string { return w.name }

// Offer offers the world to a player as snapshots. A repeated offer returns the same stream. It is
// an error if the world is already offered as state.
func (w *World) Offer(to *Streams) (*Stream, error) {
	return to.offer(&w.hub, &w.snapshots, &snapshotSender{world: &w.timeline, player: to.player})
}

// OfferState offers the world to a player as state, as Offer does as snapshots. A repeated offer
// returns the stream with its settings, whatever cfg contains.
func (w *World) OfferState(to *Streams, cfg StateConfig) (*StateStream, error) {
	m, err := w.states()
	if err != nil {
		return nil, fmt.Errorf("ds: world %s: %w", w.name, err)
	}
	s, err := to.offer(&w.hub, &m.mode, &stateSender{
		world: &w.timeline, mode: m, overhead: 1 + int(to.player.Overhead()), cfg: cfg,
	})
	if err != nil {
		return nil, err
	}
	return &StateStream{s, s.sender.(*stateSender)}, nil
}

// Broadcast sends the newest tick to all players whose clients have subscribed, and returns the
// number of messages. It uses several goroutines if there are many players, which read the time from
// clock. The error is the first of an encoder.
func (w *World) Broadcast(clock func() time.Time) (int, error) {
	w.all = w.appendStreams(w.all[:0])
	return w.broadcast(w.all, clock)
}

// Stats returns the counts of all players, past ones included.
func (w *World) Stats() Stats {
	w.hub.mu.Lock()
	st := w.past
	w.hub.mu.Unlock()
	st.Name = w.name
	for _, s := range w.appendStreams(nil) {
		one := s.Stats()
		st.Add(&one)
	}
	return st
}
