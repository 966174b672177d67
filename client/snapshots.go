package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// SnapshotConfig configures [SubscribeSnapshots]. The zero value of each field means its default.
type SnapshotConfig[T any] struct {
	// Handle, if set, is called with each snapshot received, late ones included, on the goroutine
	// that receives for the connection. It should be short, and must not close the connection or
	// the view. The snapshot is valid during the call.
	Handle func(*Snapshot[T])
	// Interpolate, if set, enables [SnapshotView.Sample]. Its Interval defaults to the interval in
	// the server's offer. The tags of T select what is interpolated: see [interpolate.Tagged].
	Interpolate *interpolate.Config
	// Initial is the same function as the server's ds.WorldConfig.Initial, if the client knows the
	// initial state. If Initial is nil, or the states differ, the server sends
	// the initial state.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
	// AckHz is the maximum number of datagrams per second with acks of the world alone, up to 1000;
	// default 30. Such a datagram takes about 52 bytes. Acks that travel with payloads of RPCs take
	// about 5 bytes and count too: where these are more frequent, there are no datagrams of acks
	// alone. More acks mean newer baselines and smaller snapshots.
	AckHz float64
}

// Snapshot is a world at one tick, as the server quantized it.
type Snapshot[T any] struct {
	// Tick is the server's tick.
	Tick uint64
	// Time is the time from tick 0 to Tick at the server's tick rate.
	Time time.Duration
	// Received is when the snapshot was received.
	Received time.Time
	// Late means that a newer snapshot was received before.
	Late bool
	// IDs are the keys of Objects, in ascending order: see [SplitID].
	IDs     []uint32
	Objects []T
}

// SplitID splits an element of IDs of a [Snapshot] or an [interpolate.Sample] into the object's id
// and its generation at the server.
func SplitID(id uint32) (object uint16, generation uint8) { return uint16(id >> 8), uint8(id) }

// SnapshotView is a client's subscription to a world of objects T, as snapshots. Its methods are
// safe for concurrent use.
type SnapshotView[T any] struct {
	view
	receiver *snapshotReceiver[T]
	latest   sync.Once // the first call of Latest
}

// SubscribeSnapshots subscribes to the snapshots of a world whose objects are a T. It waits for the
// server's offer and the initial state until ctx is done, or for Config.BindTimeout if ctx has no
// deadline. It returns an error if the server's T is a different one ([*WorldError]) or the world
// is not offered ([ErrNotOffered]). The view continues after a reconnection.
func SubscribeSnapshots[T any](ctx context.Context, c *Conn, name string, cfg SnapshotConfig[T]) (*SnapshotView[T], error) {
	r, err := newSnapshotReceiver(name, &cfg)
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	v, err := c.subscribe(ctx, name, r, "SnapshotConfig", cfg.AckHz)
	if err != nil {
		return nil, err
	}
	return &SnapshotView[T]{view: v, receiver: r}, nil
}

// Latest stores the newest snapshot in out and reuses the slices of out. It returns false before
// the first snapshot.
func (v *SnapshotView[T]) Latest(out *Snapshot[T]) bool {
	r := v.receiver
	v.latest.Do(func() { v.sub.Locked(r.want) })
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &r.newest
	if !n.any {
		return false
	}
	restore(out, r.reader, n.set)
	out.Tick, out.Time, out.Received, out.Late = n.tick, replication.TickTime(n.tick, n.tickHz), n.received, false
	return true
}

// Sample stores in out what to show at now. It returns false before the first snapshot, and without
// SnapshotConfig.Interpolate. Byte slices of objects belong to the view: only read them.
func (v *SnapshotView[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	return v.receiver.sample(now, out)
}

// Interpolation returns the counts of the playback by Sample.
func (v *SnapshotView[T]) Interpolation() interpolate.Stats {
	r := v.receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil {
		return interpolate.Stats{}
	}
	return r.buffer.Stats()
}

type snapshotReceiver[T any] struct {
	replication.SnapshotDecoder
	cfg     SnapshotConfig[T]
	name    string
	typ     *snapshot.Type[T] // of the goroutine that receives
	fields  []string
	created time.Time // interpolation uses times since then

	// Of the goroutine that receives:
	tickHz  float64
	scratch Snapshot[T]
	fresh   bool // scratch is to be delivered

	adapter interpolate.Adapter[T]
	// aliased means that T has byte slices, which are restored in place: objects in scratch and in
	// the buffer may share them.
	aliased bool

	mu     sync.Mutex
	newest newestSnapshot
	wanted bool              // Latest was called
	reader *snapshot.Type[T] // of callers of Latest
	buffer *interpolate.Buffer[T]
}

type newestSnapshot struct {
	any      bool          // there is one
	set      *snapshot.Set // a copy, unless pending is set
	pending  *snapshot.Set // the decoder's set, unchanged until the next Decode returns
	tick     uint64
	tickHz   float64
	received time.Time
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

func newSnapshotReceiver[T any](name string, cfg *SnapshotConfig[T]) (*snapshotReceiver[T], error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	initial, err := replication.Fill(typ, cfg.Initial)
	if err != nil {
		return nil, fmt.Errorf("SnapshotConfig.Initial: %w", err)
	}
	r := &snapshotReceiver[T]{
		SnapshotDecoder: replication.NewSnapshotDecoder(typ.Schema(), initial),
		cfg:             *cfg, name: name, typ: typ, reader: typ.Clone(), fields: replication.Fields(typ.Source()), created: time.Now(),
	}
	if cfg.Interpolate != nil {
		r.aliased = slices.ContainsFunc(typ.Schema().Fields(), func(f snapshot.Field) bool { return f.Class == schema.ClassBytes })
		r.adapter, err = interpolate.Tagged[T]()
	}
	return r, err
}

func (r *snapshotReceiver[T]) Check(o *replication.Offer) error {
	return compareOffer(r.name, replication.SnapshotCodec, r.fields, o)
}

func (r *snapshotReceiver[T]) Begin(o *replication.Offer, initial []byte) error {
	if err := r.SnapshotDecoder.Begin(o, initial); err != nil {
		return err
	}
	r.tickHz = o.TickHz
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest.any, r.newest.pending = false, nil
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

func (r *snapshotReceiver[T]) Receive(message []byte, at time.Time, st *ReplicationStats) error {
	tick, set, err := r.Decode(message)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.newest.keep(r.typ.Schema())
		st.CountError(err)
		return err
	}
	r.receive(tick, set, at)
	return nil
}

// receive passes a snapshot to all its users, with mu held.
func (r *snapshotReceiver[T]) receive(tick uint64, set *snapshot.Set, at time.Time) {
	late := r.newest.any && tick < r.newest.tick
	r.fresh = r.cfg.Handle != nil
	if r.buffer != nil && r.aliased {
		clear(r.scratch.Objects)
	}
	if r.fresh || r.buffer != nil {
		restore(&r.scratch, r.typ, set)
		r.scratch.Tick, r.scratch.Time, r.scratch.Received, r.scratch.Late = tick, replication.TickTime(tick, r.tickHz), at, late
	}
	if r.buffer != nil {
		_ = r.buffer.Add(at.Sub(r.created), r.scratch.Time, r.scratch.IDs, r.scratch.Objects) // counts what it drops
	}
	if !late {
		r.newest = newestSnapshot{any: true, set: r.newest.set, pending: set, tick: tick, tickHz: r.tickHz, received: at}
	}
	if late || r.wanted {
		r.newest.keep(r.typ.Schema())
	}
}

func (r *snapshotReceiver[T]) Deliver() {
	if r.fresh {
		r.fresh = false
		r.cfg.Handle(&r.scratch)
	}
}

// want copies the newest snapshot, from now on each one. Receive must not run.
func (r *snapshotReceiver[T]) want() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
	r.newest.keep(r.typ.Schema())
}

func (r *snapshotReceiver[T]) sample(now time.Time, out *interpolate.Sample[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buffer != nil && r.buffer.Sample(now.Sub(r.created), out)
}

// restore restores the objects of a set into slices that are reused.
func restore[T any](out *Snapshot[T], typ *snapshot.Type[T], set *snapshot.Set) {
	n := set.Len()
	out.IDs = slices.Grow(out.IDs[:0], n)[:n]
	out.Objects = slices.Grow(out.Objects[:0], n)[:n]
	for i := range n {
		o := set.Object(i)
		out.IDs[i] = uint32(o.ID)<<8 | uint32(o.Generation)
		if typ.Get(&out.Objects[i], set, i) != nil { // a value that msgpack does not encode
			out.Objects[i] = *new(T)
		}
	}
}
