package ds

import (
	"errors"
	"fmt"
	"sync"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/snapshot"
)

// defaultTickHz is that of a [WorldConfig].
const defaultTickHz = 60

// WorldConfig sets up a [World]. The zero value of each field means its default.
type WorldConfig[T any] struct {
	// TickHz is how many ticks a second has: what clients know the world's time by. Up to 1000; default 60.
	TickHz float64
	// SendHz is how often a second snapshots or states are sent to a player, at most: what clients expect, and may ack. Up to
	// TickHz, which is the default.
	SendHz float64
	// Initial puts the state that the world starts from, in ascending order of ids: a level's objects. The first
	// snapshots are the difference from it. A client that has the same, by client.SnapshotConfig.Initial, is told
	// nothing of it; others get it ahead of the first snapshot, over the reliable channel. Nil means none.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
}

// World is what a server sends of its game: objects T, all of them to each player who takes part, each tick or less
// often. T has the tags and types of an RPC's arguments. A tick is
//
//	err := w.Begin(tick)
//	for ... {
//		err := w.Put(id, generation, &object) // in ascending order of ids
//	}
//	w.Commit()
//	n, err := w.Send()
//
// Objects are quantized once, in Put. By [World.Offer] a player gets snapshots, each the difference from the newest one
// that its client acked; by [World.OfferState] the state of what matters most to it, within a bandwidth. These four methods,
// and Send of streams, are for one goroutine at a time; the others are safe for concurrent use.
type World[T any] struct {
	typ *snapshot.Type[T]
	w   world
}

// world is what of a World does not depend on its type.
type world struct {
	source    downSource
	schema    *snapshot.Schema
	snapshots terms

	// ticking is held to write what Begin changes, and to read it where that may be at the same time: by acks.
	ticking sync.RWMutex
	sets    *snapshot.World

	stating sync.Mutex
	states  *stateTerms // when they were first needed; guarded by stating

	open   *snapshot.Set // being filled
	newest *snapshot.Set // filled
	begun  uint64        // snapshots
	last   uint64        // tick of the newest
	ticks  worlds.Ticks
}

// NewWorld makes a world that clients know by that name, of 1 to 64 bytes. Do so before Serve. Errors name the field of
// T that cannot be sent, of the configuration, or the object of the initial state.
func NewWorld[T any](s *Server, name string, cfg WorldConfig[T]) (*World[T], error) {
	if name == "" || len(name) > control.MaxDownName {
		return nil, fmt.Errorf("ds: a world's name has %d bytes, want 1 to %d", len(name), control.MaxDownName)
	}
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	if cfg.TickHz == 0 {
		cfg.TickHz = defaultTickHz
	}
	if !(cfg.TickHz > 0 && cfg.TickHz <= control.MaxDownRate) {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.TickHz is %v, want more than 0, up to %d", name, cfg.TickHz, control.MaxDownRate)
	}
	if cfg.SendHz == 0 {
		cfg.SendHz = cfg.TickHz
	}
	if !(cfg.SendHz > 0 && cfg.SendHz <= cfg.TickHz) {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.SendHz is %v, want more than 0, up to TickHz, %v", name, cfg.SendHz, cfg.TickHz)
	}
	start, err := worlds.Fill(typ, cfg.Initial)
	if err != nil {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.Initial: %w", name, err)
	}
	w := &World[T]{typ: typ, w: world{schema: typ.Schema(), sets: snapshot.NewWorld(typ.Schema(), start)}}
	w.w.source.server, w.w.source.name = s, name
	c := &w.w.snapshots
	if c.initial, err = worlds.AppendInitial(nil, typ.Schema(), start, control.MaxInitial); err != nil {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.Initial: %w", name, err)
	}
	c.offer = control.DownOffer{
		Name: name, Codec: worlds.Codec, Fields: worlds.Fields(typ.Source()), RateHz: cfg.SendHz, TickHz: cfg.TickHz,
		Initial: len(c.initial), Hash: worlds.Hash(start),
	}
	if err := c.offer.Check(); err != nil {
		return nil, fmt.Errorf("ds: world %s: %w", name, err)
	}
	if err := s.registerSource(w); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *World[T]) common() *downSource { return &w.w.source }

// Begin begins a tick, whose number must be above those before; ticks may be left out. What was put since the last
// Begin is forgotten if there was no Commit.
func (w *World[T]) Begin(tick uint64) error { return w.w.begin(tick) }

func (w *world) begin(tick uint64) error {
	if w.begun > 0 && tick <= w.last || tick > worlds.MaxTick {
		return fmt.Errorf("ds: world %s: tick %d after %d, want ascending ones up to %d", w.source.name, tick, w.last, uint64(worlds.MaxTick))
	}
	w.ticking.Lock()
	w.open = w.sets.Begin()
	w.ticking.Unlock()
	w.ticks.Set(uint16(w.begun), tick)
	w.begun++
	w.last = tick
	return nil
}

// Put adds a copy of an object to the tick that Begin began. Ids ascend; where one is used again for another object its
// generation differs. An error names the object and the field that cannot be sent, as a value is out of its bounds: the
// object is then left out.
func (w *World[T]) Put(id uint16, generation uint8, v *T) error {
	if w.w.open == nil {
		return fmt.Errorf("ds: world %s: put object %d: Begin first", w.w.source.name, id)
	}
	if err := w.typ.Add(w.w.open, snapshot.Object{ID: id, Generation: generation}, v); err != nil {
		return fmt.Errorf("ds: world %s: %w", w.w.source.name, err)
	}
	return nil
}

// Commit ends the tick: what was put can be sent.
func (w *World[T]) Commit() {
	if w.w.open != nil {
		w.w.newest, w.w.open = w.w.open, nil
	}
}

var errUncommitted = errors.New("ds: the tick is not over: Commit first")

// Send sends the newest tick to all players that take part, each as it was offered, and says to how many it did: the others
// are not ready, got it already, or have no bandwidth for it yet. It uses several goroutines where there are many players. The error is the first one of a player who
// could not be sent it, as a snapshot that takes more than 64 datagrams.
func (w *World[T]) Send() (int, error) {
	if w.w.open != nil {
		return 0, errUncommitted
	}
	return w.w.source.sendAll()
}

// Stats gives what was counted for all players.
func (w *World[T]) Stats() ReplicationStats { return w.w.source.counted() }

// Offer offers the world to a player: in Config.Joined, say. It is sent from when the client has said that it takes part,
// with client.SubscribeSnapshots, and has the initial state. Offered once more it gives the same.
func (w *World[T]) Offer(p *Player) (*SnapshotStream[T], error) {
	d, err := p.offer(&w.w.source, &snapshotWay{world: &w.w, player: p})
	if err != nil {
		return nil, err
	}
	return &SnapshotStream[T]{world: w, down: d}, nil
}
