package ds

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/snapshot"
)

// defaultTickHz is the default of [WorldConfig].TickHz.
const defaultTickHz = 60

// ReplicationStats counts the messages of a world.
type ReplicationStats = replication.Stats

// ErrNotReady is returned if the client has not subscribed to the world, or its initial state is
// being sent.
var ErrNotReady = replication.ErrNotReady

var errUncommitted = errors.New("ds: the tick is not committed: call Commit first")

// WorldConfig configures a [World]. The zero value of each field means its default.
type WorldConfig[T any] struct {
	// TickHz is the number of ticks per second, from which clients derive the world's time. Up to
	// 1000; default 60.
	TickHz float64
	// SendHz is the maximum number of messages per second to each player, which clients expect and
	// may ack. Up to TickHz, which is the default.
	SendHz float64
	// Initial puts the initial state, in ascending order of ids: the objects of a level. The first
	// snapshots are coded against it. A client with the same client.SnapshotConfig.Initial receives
	// nothing of it; other clients receive it before the first snapshot, over the reliable channel.
	// Nil means an empty state.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
}

// World is a set of objects T that a server replicates to its players. T has the tags and types of
// the arguments of an RPC. A tick is
//
//	err := w.Begin(tick)
//	for ... {
//		err := w.Put(id, generation, &object) // in ascending order of ids
//	}
//	w.Commit()
//	n, err := w.Send()
//
// Put quantizes each object once. A player to whom [World.Offer] offers the world receives
// snapshots, each a delta from the newest one that its client acked. A player to whom
// [World.OfferState] offers it receives the state of the objects with the highest priorities,
// within a bandwidth. These four methods, and Send of streams, are for one goroutine at a time; all
// other methods are safe for concurrent use.
type World[T any] struct {
	server *Server
	typ    *snapshot.Type[T]
	world  *replication.World
}

// NewWorld adds a world to a server. Its name identifies it to clients. Call it before Serve. An
// error names the field of T that is not supported, the field of the configuration, or the object
// of the initial state.
func NewWorld[T any](s *Server, name string, cfg WorldConfig[T]) (*World[T], error) {
	if name == "" || len(name) > replication.MaxName {
		return nil, fmt.Errorf("ds: a world's name has %d bytes, want 1 to %d", len(name), replication.MaxName)
	}
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	if cfg.TickHz == 0 {
		cfg.TickHz = defaultTickHz
	}
	if !(cfg.TickHz > 0 && cfg.TickHz <= replication.MaxRate) {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.TickHz is %v, want more than 0, up to %d", name, cfg.TickHz, replication.MaxRate)
	}
	if cfg.SendHz == 0 {
		cfg.SendHz = cfg.TickHz
	}
	if !(cfg.SendHz > 0 && cfg.SendHz <= cfg.TickHz) {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.SendHz is %v, want more than 0, up to TickHz, %v", name, cfg.SendHz, cfg.TickHz)
	}
	w, err := replication.NewWorld(typ, name, cfg.TickHz, cfg.SendHz, cfg.Initial)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.worlds[name] != nil {
		return nil, fmt.Errorf("ds: there is a world %s already", name)
	}
	s.worlds[name] = w
	return &World[T]{server: s, typ: typ, world: w}, nil
}

// Begin begins a tick, whose number must be higher than those before it; ticks may be skipped.
// Objects that were put without a Commit are discarded.
func (w *World[T]) Begin(tick uint64) error { return w.world.Begin(tick) }

// Put adds a copy of an object to the tick that Begin began. Ids ascend; objects that use the same
// id one after the other differ in the generation. If a value is out of its field's range, the
// error names the object and the field, and the object is not added.
func (w *World[T]) Put(id uint16, generation uint8, v *T) error {
	set := w.world.Open()
	if set == nil {
		return fmt.Errorf("ds: world %s: put object %d: Begin first", w.world.Name(), id)
	}
	if err := w.typ.Add(set, snapshot.Object{ID: id, Generation: generation}, v); err != nil {
		return fmt.Errorf("ds: world %s: %w", w.world.Name(), err)
	}
	return nil
}

// Commit ends the tick, which can then be sent.
func (w *World[T]) Commit() { w.world.Commit() }

// Send sends the newest tick to all players whose clients have subscribed, each by the codec of its
// offer, and returns the number of players to whom it was sent. The others are not ready, have
// received the tick already, or have no bandwidth for it yet. Send uses several goroutines if there
// are many players. The error is the first one of a player, such as a snapshot of more than 64
// datagrams.
func (w *World[T]) Send() (int, error) {
	if w.world.Open() != nil {
		return 0, errUncommitted
	}
	return w.world.Broadcast(time.Now)
}

// Stats returns the counts of all players.
func (w *World[T]) Stats() ReplicationStats { return w.world.Stats() }

// streamsOf returns the player's streams, to which the world can be offered.
func (w *World[T]) streamsOf(p *Player) (*replication.Streams, error) {
	if p.server != w.server {
		return nil, fmt.Errorf("ds: offer %s: the player is of another server", w.world.Name())
	}
	if s := p.streams.Load(); s != nil {
		return s, nil
	}
	p.streams.CompareAndSwap(nil, replication.NewStreams(p.conn)) // players without worlds have none
	return p.streams.Load(), nil
}
