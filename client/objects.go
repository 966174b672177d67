package client

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// objects receives the objects of one type of a world.
type objects[T any] struct {
	cfg     SnapshotConfig[T]
	name    string
	own     *snapshot.Type[T]
	created time.Time // interpolation uses times since then
	latest  sync.Once // the first call of Latest

	// Of the goroutine that receives:
	typ     *snapshot.Type[T] // of the stream: own, or the server's version
	offered *snapshot.Type[T] // typ from begin on
	fields  []string          // of offered
	tickHz  float64
	scratch Snapshot[T]
	fresh   bool // scratch is to be delivered

	adapter interpolate.Adapter[T]
	// aliased means that T has byte slices, which are restored in place: objects in scratch and in
	// the buffer may share them.
	aliased bool

	mu     sync.Mutex
	world  *replication.Subscription // nil before the subscription
	newest newestSnapshot
	former bool              // newest is of an earlier stream
	of     *snapshot.Type[T] // of newest
	reader *snapshot.Type[T] // likewise, for callers of Latest
	wanted bool              // Latest was called
	buffer *interpolate.Buffer[T]
}

type newestSnapshot struct {
	any      bool          // there is one
	set      *snapshot.Set // a copy, unless pending is set
	pending  *snapshot.Set // the decoder's set, unchanged until the next Decode returns
	tick     uint64
	tickHz   float64
	received time.Time
	// processed and ages are copies.
	processed Processed
	ages      []uint64
}

// keep copies a pending set.
func (n *newestSnapshot) keep(s *snapshot.Schema) {
	if n.pending == nil {
		return
	}
	if n.set == nil {
		n.set = s.NewSet()
	}
	n.set.CopyFrom(n.pending)
	n.pending = nil
}

func newObjects[T any](name string, cfg *SnapshotConfig[T]) (*objects[T], error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	r := &objects[T]{
		cfg: *cfg, name: name, own: typ, typ: typ, offered: typ, of: typ, reader: typ.Clone(), fields: versions.Descriptions(typ.Source()), created: time.Now(),
	}
	if cfg.Interpolate != nil {
		r.aliased = slices.ContainsFunc(typ.Schema().Fields(), func(f snapshot.Field) bool { return f.Class == schema.ClassBytes })
		r.adapter, err = interpolate.Tagged[T]()
	}
	return r, err
}

// Latest stores the newest snapshot in out and reuses the slices of out. It returns false before
// the first snapshot.
func (r *objects[T]) Latest(out *Snapshot[T]) bool {
	r.mu.Lock()
	world := r.world
	r.mu.Unlock()
	if world == nil {
		return false
	}
	r.latest.Do(func() { world.Locked(r.want) })
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &r.newest
	if !n.any {
		return false
	}
	restore(out, r.reader, n.set)
	out.Tick, out.Time, out.Received, out.Late = n.tick, replication.TickTime(n.tick, n.tickHz), n.received, false
	out.Processed, out.Ages = append(out.Processed[:0], n.processed...), append(out.Ages[:0], n.ages...)
	return true
}

// Sample stores in out what to show at now. It returns false before the first snapshot, and without
// SnapshotConfig.Interpolate. Byte slices of objects belong to the view: only read them.
func (r *objects[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buffer != nil && r.buffer.Sample(now.Sub(r.created), out)
}

func (r *objects[T]) tickRate() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest.tickHz
}

// Interpolation returns the counts of the playback by Sample.
func (r *objects[T]) Interpolation() interpolate.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil {
		return interpolate.Stats{}
	}
	return r.buffer.Stats()
}

func (r *objects[T]) typeName() string { return r.name }

func (r *objects[T]) offer(world string, fields []string) (*snapshot.Schema, error) {
	if !slices.Equal(fields, r.fields) {
		source, err := versions.Parse(r.name, fields)
		if err != nil {
			return nil, malformedFields(world, err)
		}
		typ, err := versionOf(r.own, world, source)
		if err != nil {
			return nil, err
		}
		r.offered, r.fields = typ, slices.Clone(fields)
	}
	return r.offered.Schema(), nil
}

func (r *objects[T]) fieldNames() []string { return namesOf(r.own.Source()) }

func (r *objects[T]) subscribed(world *replication.Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world = world
}

func (r *objects[T]) begin(o *replication.Offer) error {
	r.tickHz = o.TickHz
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outlive()
	r.typ = r.offered
	if r.adapter == nil || r.buffer != nil { // after a reconnection the world is most likely the same
		return nil
	}
	cfg := *r.cfg.Interpolate
	if cfg.Interval == 0 {
		cfg.Interval = replication.Interval(o.RateHz)
	}
	var err error
	if r.buffer, err = interpolate.New(r.adapter, cfg); err != nil {
		return fmt.Errorf("client: world %s: SnapshotConfig.Interpolate: %w", r.name, err)
	}
	return nil
}

func (r *objects[T]) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest.keep(r.of.Schema())
}

func (r *objects[T]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outlive()
}

// outlive keeps the newest snapshot until the first one of another stream. The calls that it
// contains are those of an earlier session. The caller holds r.mu.
func (r *objects[T]) outlive() {
	r.newest.keep(r.of.Schema())
	r.newest.processed, r.former = nil, true
}

// spare returns a receiver that keeps the newest snapshot of another server, for adopt.
func (r *objects[T]) spare() objectReceiver {
	return &objects[T]{name: r.name, own: r.own, typ: r.typ, offered: r.typ, fields: r.fields, of: r.typ, reader: r.reader}
}

// adopt continues with the server of a spare receiver.
func (r *objects[T]) adopt(spare objectReceiver) {
	n := spare.(*objects[T])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outlive()
	r.typ, r.offered, r.fields, r.tickHz = n.typ, n.offered, n.fields, n.tickHz
	if !n.newest.any {
		return
	}
	set := n.newest.pending
	if set == nil {
		set = n.newest.set
	}
	r.pass(n.newest.tick, set, n.newest.ages, n.newest.processed, n.newest.received)
}

// receive passes a snapshot to all its users.
func (r *objects[T]) receive(tick uint64, set *snapshot.Set, ages []uint64, processed Processed, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass(tick, set, ages, processed, at)
}

// pass is receive with the lock held.
func (r *objects[T]) pass(tick uint64, set *snapshot.Set, ages []uint64, processed Processed, at time.Time) {
	if r.former {
		r.former, r.newest.any = false, false
		if r.of != r.typ {
			r.of, r.reader, r.newest.set = r.typ, r.typ.Clone(), nil
		}
	}
	late := r.newest.any && tick < r.newest.tick
	r.fresh = r.cfg.Handle != nil
	if r.buffer != nil && r.aliased {
		clear(r.scratch.Objects)
	}
	if r.fresh || r.buffer != nil {
		restore(&r.scratch, r.typ, set)
		r.scratch.Tick, r.scratch.Time, r.scratch.Received, r.scratch.Late = tick, replication.TickTime(tick, r.tickHz), at, late
		r.scratch.Processed, r.scratch.Ages = processed, ages
	}
	if r.buffer != nil {
		_ = r.buffer.Add(at.Sub(r.created), r.scratch.Time, r.scratch.IDs, r.scratch.Objects) // counts what it drops
	}
	if !late {
		r.newest = newestSnapshot{
			any: true, set: r.newest.set, pending: set, tick: tick, tickHz: r.tickHz, received: at,
			processed: append(r.newest.processed[:0], processed...),
			ages:      append(r.newest.ages[:0], ages...),
		}
	}
	if late || r.wanted {
		r.newest.keep(r.of.Schema())
	}
}

func (r *objects[T]) deliver() {
	if r.fresh {
		r.fresh = false
		r.cfg.Handle(&r.scratch)
	}
}

// want copies the newest snapshot, from now on each one. Receive must not run.
func (r *objects[T]) want() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
	r.newest.keep(r.of.Schema())
}
