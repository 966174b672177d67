package client

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/interpolate"
)

// objects holds the objects of one type of a world.
type objects[T any] struct {
	cfg     SnapshotConfig[T]
	name    string
	own     *snapshot.Type[T]
	created time.Time // interpolation uses times since then
	latest  sync.Once // done by the first call of Latest
	adapter interpolate.Adapter[T]
	// aliased means that T has byte slices, which are restored in place: objects in scratch and in
	// the buffer may share them.
	aliased bool

	// Used only by the goroutine that receives:
	feed    *feed[T] // feed of the current server
	scratch Snapshot[T]
	fresh   bool // scratch contains a snapshot that is not delivered yet

	mu     sync.Mutex
	world  *replication.Subscription // nil before the subscription
	shown  *feed[T]                  // feed with the newest snapshot: the previous server's until feed has a snapshot
	reader *snapshot.Type[T]         // clone of shown.typ for callers of Latest
	wanted bool                      // Latest was called
	buffer *interpolate.Buffer[T]
}

// feed receives the objects of one type from one server.
type feed[T any] struct {
	*objects[T]
	typ    *snapshot.Type[T] // own, or own.From the server's version
	fields []string          // names of the fields of typ
	tickHz float64
	newest newestSnapshot // guarded by objects.mu
}

type newestSnapshot struct {
	any      bool          // a snapshot is stored
	set      *snapshot.Set // a copy, unless pending is set
	pending  *snapshot.Set // the decoder's set, unchanged until the next Decode returns
	tick     uint64
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
	r := &objects[T]{cfg: *cfg, name: name, own: typ, reader: typ.Clone(), created: time.Now()}
	r.feed = &feed[T]{objects: r, typ: typ, fields: versions.Descriptions(typ.Source())}
	r.shown = r.feed
	if cfg.Interpolate != nil {
		r.aliased = slices.ContainsFunc(typ.Schema().Fields(), func(f snapshot.Field) bool { return f.Class == schema.ClassBytes })
		r.adapter, err = interpolate.Tagged[T]()
	}
	return r, err
}

// newestTo implements Latest of views and types of objects.
func (r *objects[T]) newestTo(out *Snapshot[T]) bool {
	r.mu.Lock()
	world := r.world
	r.mu.Unlock()
	if world == nil {
		return false
	}
	r.latest.Do(func() { world.Locked(r.want) })
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &r.shown.newest
	if !n.any {
		return false
	}
	restore(out, r.reader, n.set)
	out.Tick, out.Time, out.Received, out.Late = n.tick, replication.TickTime(n.tick, r.shown.tickHz), n.received, false
	out.Processed, out.Ages = append(out.Processed[:0], n.processed...), append(out.Ages[:0], n.ages...)
	return true
}

// sample implements Sample of views and types of objects.
func (r *objects[T]) sample(now time.Time, out *interpolate.Sample[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buffer != nil && r.buffer.Sample(now.Sub(r.created), out)
}

func (r *objects[T]) tickRate() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown.tickHz
}

// interpolation implements Interpolation of views and types of objects.
func (r *objects[T]) interpolation() interpolate.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil {
		return interpolate.Stats{}
	}
	return r.buffer.Stats()
}

func (r *objects[T]) typeName() string { return r.name }

func (r *objects[T]) fieldNames() []string { return namesOf(r.own.Source()) }

func (r *objects[T]) subscribed(world *replication.Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world = world
}

// newFeed returns a feed for another server, most likely with the types of the current one.
func (r *objects[T]) newFeed() objectFeed {
	return &feed[T]{objects: r, typ: r.feed.typ, fields: r.feed.fields}
}

func (r *objects[T]) deliver() {
	if r.fresh {
		r.fresh = false
		r.cfg.Handle(&r.scratch)
	}
}

// want copies the newest snapshot now and each later one. It must not run during Receive.
func (r *objects[T]) want() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
	r.shown.keepNewest()
}

func (f *feed[T]) offer(world string, fields []string) (*snapshot.Schema, error) {
	if !slices.Equal(fields, f.fields) {
		source, err := versions.Parse(f.name, fields)
		if err != nil {
			return nil, malformedFields(world, err)
		}
		typ, err := versionOf(f.own, world, source)
		if err != nil {
			return nil, err
		}
		f.typ, f.fields = typ, slices.Clone(fields)
	}
	return f.typ.Schema(), nil
}

func (f *feed[T]) begin(o *replication.Offer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tickHz = o.TickHz
	if f.adapter == nil || f.buffer != nil { // another server's world is most likely the same
		return nil
	}
	cfg := *f.cfg.Interpolate
	if cfg.Interval == 0 {
		cfg.Interval = replication.Interval(o.RateHz)
	}
	var err error
	if f.buffer, err = interpolate.New(f.adapter, cfg); err != nil {
		return fmt.Errorf("client: world %s: SnapshotConfig.Interpolate: %w", f.name, err)
	}
	return nil
}

// show makes f the feed of the current server, and passes its newest snapshot to the game.
func (f *feed[T]) show() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.feed = f
	if n := &f.newest; n.any {
		set := n.pending
		if set == nil {
			set = n.set
		}
		f.pass(n.tick, set, n.ages, n.processed, n.received, false)
	}
}

// receive stores a snapshot, and passes it to the game if the server is the current one.
func (f *feed[T]) receive(tick uint64, set *snapshot.Set, ages []uint64, processed Processed, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &f.newest
	late := n.any && tick < n.tick
	if f.feed == f {
		f.pass(tick, set, ages, processed, at, late)
	}
	if !late {
		*n = newestSnapshot{
			any: true, set: n.set, pending: set, tick: tick, received: at,
			processed: append(n.processed[:0], processed...),
			ages:      append(n.ages[:0], ages...),
		}
	}
	if late || f.wanted {
		f.keepNewest()
	}
}

// pass passes a snapshot to Handle and the interpolation buffer, but not to Latest. The caller
// holds objects.mu.
func (f *feed[T]) pass(tick uint64, set *snapshot.Set, ages []uint64, processed Processed, at time.Time, late bool) {
	r := f.objects
	if r.shown != f {
		if r.shown.typ != f.typ {
			r.reader = f.typ.Clone()
		}
		r.shown = f
	}
	r.fresh = r.cfg.Handle != nil
	if r.buffer != nil && r.aliased {
		clear(r.scratch.Objects)
	}
	if r.fresh || r.buffer != nil {
		restore(&r.scratch, f.typ, set)
		r.scratch.Tick, r.scratch.Time, r.scratch.Received, r.scratch.Late = tick, replication.TickTime(tick, f.tickHz), at, late
		r.scratch.Processed, r.scratch.Ages = processed, ages
	}
	if r.buffer != nil {
		_ = r.buffer.Add(at.Sub(r.created), r.scratch.Time, r.scratch.IDs, r.scratch.Objects) // counts what it drops
	}
}

func (f *feed[T]) keep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepNewest()
}

// keepNewest copies the newest snapshot. The caller holds objects.mu.
func (f *feed[T]) keepNewest() { f.newest.keep(f.typ.Schema()) }

// end keeps the newest snapshot until another feed has one. Its Processed becomes invalid, because
// it counts calls of a session that has ended.
func (f *feed[T]) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepNewest()
	f.newest.processed = nil
}
