package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/interpolate"
)

// SnapshotConfig configures [SubscribeSnapshots]. The zero value of each field means its default.
type SnapshotConfig[T any] struct {
	// Handle, if set, is called with each snapshot received, late ones included, on the goroutine
	// that receives for the connection. It should be short, and must not close the connection or
	// the view. The snapshot is valid during the call.
	Handle func(*Snapshot[T])
	// OnMessage, if set, is called with each message of ds.SnapshotStream.SendReliable, in order.
	// With Interpolate, [SnapshotView.Sample] calls it when the playback reaches the message's
	// tick. Otherwise it is called on the same goroutine as Handle, and before Handle, when the
	// snapshot of the message's tick or a later one arrives, or when the stream ends. A message
	// that arrives after that is delivered at once. If more than 256 KiB of messages wait, the
	// oldest are delivered at once too. OnMessage may keep the message.
	OnMessage func(tick uint64, message []byte)
	// Interpolate, if set, enables [SnapshotView.Sample]. Its Interval defaults to the interval in
	// the server's offer. The tags of T select what is interpolated: see [interpolate.Tagged].
	Interpolate *interpolate.Config
	// Initial is the same function as the server's ds.WorldConfig.Initial, if the client knows the
	// initial state. If Initial is nil, or the states differ, the server sends
	// the initial state.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
	// Types are further types of objects of the world, see ds.AddType, in any order. The server
	// must have all of them. Objects of types that only the server has are skipped: see
	// [SnapshotView.SkippedTypes]. Unused in the configuration of an ObjectType, as are OnMessage,
	// Initial and AckHz.
	Types []AnyObjectType
	// AckHz is the maximum number of datagrams per second that contain only acks of the world, up
	// to 1000; default 30. Such a datagram takes about 52 bytes. Acks piggybacked on payloads of
	// RPCs take about 5 bytes and count towards AckHz: if they are more frequent, the client sends
	// no datagrams with acks only. More acks mean newer baselines and smaller snapshots.
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
	// Processed contains the number of processed calls of each RPC: see [Stream.Processed].
	Processed Processed
	// IDs are the keys of Objects, in ascending order: see [SplitID].
	IDs     []uint32
	Objects []T
	// Ages contains the age of each object's state relative to Tick, in ticks. It is empty if all
	// ages are 0, which is always the case without areas. With areas, the state of an object can be
	// older if the server codes its group for too many other players, or if the client did not
	// receive the keyframe of a group.
	Ages []uint64
}

// SplitID splits an element of IDs of a [Snapshot] or an [interpolate.Sample] into the object's id
// and its generation at the server.
func SplitID(id uint32) (object uint16, generation uint8) { return uint16(id >> 8), uint8(id) }

// SnapshotView is a client's subscription to a world of objects T, as snapshots. Its methods are
// safe for concurrent use.
type SnapshotView[T any] struct {
	view
	objects *objects[T]
	all     *snapshotObjects
}

// Latest stores the newest snapshot in out and reuses the slices of out. It returns false before
// the first snapshot.
func (v *SnapshotView[T]) Latest(out *Snapshot[T]) bool { return v.objects.newestTo(out) }

// Interpolation returns the counts of the playback by Sample.
func (v *SnapshotView[T]) Interpolation() interpolate.Stats { return v.objects.interpolation() }

// Sample stores the objects to show at now in out, and calls SnapshotConfig.OnMessage with the
// messages whose ticks are shown for the first time. It returns false before the first snapshot,
// and without SnapshotConfig.Interpolate. Byte slices of objects belong to the view: only read
// them. It is for one goroutine at a time.
func (v *SnapshotView[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	ok := v.objects.sample(now, out)
	if ok {
		v.all.reach(out.Time, v.objects.tickRate())
	}
	return ok
}

// SkippedTypes returns the names of the types of objects that the world has at the server, but
// SnapshotConfig.Types does not. Their objects are received and dropped. A [MismatchError] reports
// them once.
func (v *SnapshotView[T]) SkippedTypes() (names []string) {
	v.sub.Locked(func() { names = slices.Clone(v.all.feed.skipped) })
	return names
}

// ObjectType is a further type of objects of a world, for SnapshotConfig.Types. Its methods are
// safe for concurrent use.
type ObjectType[T any] struct{ objects *objects[T] }

// Latest stores the newest snapshot in out and reuses the slices of out. It returns false before
// the first snapshot.
func (t *ObjectType[T]) Latest(out *Snapshot[T]) bool { return t.objects.newestTo(out) }

// Sample stores the objects to show at now in out. It returns false before the first snapshot, and
// without SnapshotConfig.Interpolate. Byte slices of objects belong to the view: only read them.
func (t *ObjectType[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	return t.objects.sample(now, out)
}

// Interpolation returns the counts of the playback by Sample.
func (t *ObjectType[T]) Interpolation() interpolate.Stats { return t.objects.interpolation() }

// AnyObjectType is an [ObjectType].
type AnyObjectType interface{ objectType() objectType }

// NewObjectType returns a type of objects with the name that ds.AddType declares. An error names
// the field of T that is not supported.
func NewObjectType[T any](name string, cfg SnapshotConfig[T]) (*ObjectType[T], error) {
	o, err := newObjects(name, &cfg)
	if err != nil {
		return nil, fmt.Errorf("client: type %s: %w", name, err)
	}
	return &ObjectType[T]{o}, nil
}

func (t *ObjectType[T]) objectType() objectType { return t.objects }

// SubscribeSnapshots subscribes to the snapshots of a world whose objects are a T. It waits for the
// server's offer and the initial state until ctx is done, or for Config.Transport.BindTimeout if
// ctx has no deadline. It returns an error if a field of the server's T cannot be converted
// ([*FieldError]) or the world is not offered ([ErrNotOffered]). The view continues after a
// reconnection.
func SubscribeSnapshots[T any](ctx context.Context, c *Conn, name string, cfg SnapshotConfig[T]) (*SnapshotView[T], error) {
	o, err := newObjects(name, &cfg)
	var initial *snapshot.Set
	if err == nil {
		initial, err = replication.Fill(o.own, cfg.Initial)
		if err != nil {
			err = fmt.Errorf("SnapshotConfig.Initial: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	all := &snapshotObjects{name: name, types: []objectType{o}, onMessage: cfg.OnMessage, plays: cfg.Interpolate != nil}
	for _, t := range cfg.Types {
		all.types = append(all.types, t.objectType())
	}
	all.feed = &snapshotFeed{SnapshotDecoder: replication.NewSnapshotDecoder(o.own.Schema(), initial)}
	v, err := subscribe(ctx, c, name, all, "SnapshotConfig", cfg.AckHz)
	if err != nil {
		return nil, err
	}
	for _, t := range all.types {
		t.subscribed(v.sub)
	}
	return &SnapshotView[T]{view: v, objects: o, all: all}, nil
}

// objectType is a type of objects of a view. Only the goroutine that receives calls its methods,
// except typeName and subscribed.
type objectType interface {
	typeName() string
	// fieldNames returns the names of the client's fields.
	fieldNames() []string
	subscribed(*replication.Subscription)
	newFeed() objectFeed
	deliver()
}

// objectFeed receives the objects of one type from one server. Only the goroutine that receives
// calls its methods.
type objectFeed interface {
	// offer returns the schema of the server's objects, from the description of their fields.
	offer(world string, fields []string) (*snapshot.Schema, error)
	show()
	begin(*replication.Offer) error
	// keep copies the data that must outlive the decoder's sets.
	keep()
	receive(tick uint64, set *snapshot.Set, ages []uint64, processed Processed, at time.Time)
	end()
}

// skippedType receives the objects of a type that the client does not have, under its name.
type skippedType string

func (t skippedType) offer(world string, fields []string) (*snapshot.Schema, error) {
	_, s, err := replication.ParseFields(string(t), fields)
	if err != nil {
		return nil, malformedFields(world, err)
	}
	return s, nil
}

func (skippedType) show()                                                         {}
func (skippedType) begin(*replication.Offer) error                                { return nil }
func (skippedType) keep()                                                         {}
func (skippedType) receive(uint64, *snapshot.Set, []uint64, Processed, time.Time) {}
func (skippedType) end()                                                          {}

// snapshotObjects holds the objects of a world, of one or more types. It is a [replication.View].
type snapshotObjects struct {
	name      string
	types     []objectType                      // the type of the view, then the further types in any order
	onMessage func(tick uint64, message []byte) // or nil
	plays     bool                              // Sample delivers messages

	feed *snapshotFeed // shown feed, or an empty one; used only by the goroutine that receives

	mu       sync.Mutex
	messages replication.GameMessages // messages that wait until Sample reaches their ticks
}

// snapshotFeed receives a world from one server.
type snapshotFeed struct {
	replication.SnapshotDecoder
	all     *snapshotObjects
	types   []objectFeed // feeds by type, in the server's order
	skipped []string     // names of types that the client does not have
}

// NewReceiver implements [replication.View].
func (all *snapshotObjects) NewReceiver() replication.Receiver {
	return &snapshotFeed{SnapshotDecoder: all.feed.Next(), all: all}
}

// Deliver implements [replication.View].
func (all *snapshotObjects) Deliver() {
	for _, t := range all.types {
		t.deliver()
	}
}

// Game implements [replication.View].
func (all *snapshotObjects) Game(tick uint64, message []byte) {
	switch {
	case all.onMessage == nil:
	case all.plays:
		all.mu.Lock()
		all.messages.Add(tick, message)
		all.mu.Unlock()
		all.deliverMessages()
	default:
		all.onMessage(tick, message)
	}
}

// reach delivers the messages whose tick is not after a time.
func (all *snapshotObjects) reach(t time.Duration, tickHz float64) {
	if all.onMessage == nil {
		return
	}
	all.mu.Lock()
	all.messages.Reach(replication.TickAt(t, tickHz))
	all.mu.Unlock()
	all.deliverMessages()
}

func (all *snapshotObjects) deliverMessages() {
	for {
		all.mu.Lock()
		tick, message, ok := all.messages.Take()
		all.mu.Unlock()
		if !ok {
			return
		}
		all.onMessage(tick, message)
	}
}

// Check implements [replication.Receiver].
func (f *snapshotFeed) Check(o *replication.Offer) (d message.Differences, err error) {
	world := f.all.name
	if err := checkCodec(world, replication.SnapshotCodec, o); err != nil {
		return d, err
	}
	own, missing := f.all.types[0], slices.Clone(f.all.types[1:])
	f.types = []objectFeed{own.newFeed()}
	ownSchema, err := f.types[0].offer(world, o.Fields)
	if err != nil {
		return d, err
	}
	addDifferences(&d, "", fieldNames(o.Fields), own.fieldNames())
	var schemas []*snapshot.Schema
	for _, offered := range o.Types {
		var t objectFeed = skippedType(offered.Name)
		there, here := []string{""}, []string(nil)
		if i := slices.IndexFunc(missing, func(t objectType) bool { return t.typeName() == offered.Name }); i >= 0 {
			t, there, here = missing[i].newFeed(), fieldNames(offered.Fields), missing[i].fieldNames()
			missing = slices.Delete(missing, i, i+1)
		} else {
			f.skipped = append(f.skipped, offered.Name)
		}
		schema, err := t.offer(world+"/"+offered.Name, offered.Fields)
		if err != nil {
			return d, err
		}
		addDifferences(&d, offered.Name+"/", there, here)
		f.types, schemas = append(f.types, t), append(schemas, schema)
	}
	if len(missing) > 0 {
		name := missing[0].typeName()
		return d, &replication.RefusedError{Reason: message.ReasonSchema, Err: fmt.Errorf("client: world %s: the server has no objects of type %s%s: update the server first, or remove it from SnapshotConfig.Types",
			world, name, message.Nearest(name, f.skipped))}
	}
	f.SetTypes(ownSchema, schemas...)
	return d, nil
}

// Show implements [replication.Receiver].
func (f *snapshotFeed) Show() {
	f.all.feed = f
	for _, t := range f.types {
		t.show()
	}
}

// Begin implements [replication.Receiver].
func (f *snapshotFeed) Begin(o *replication.Offer, initial []byte) error {
	if err := f.SnapshotDecoder.Begin(o, initial); err != nil {
		return err
	}
	for _, t := range f.types {
		if err := t.begin(o); err != nil {
			return err
		}
	}
	return nil
}

// Receive implements [replication.Receiver].
func (f *snapshotFeed) Receive(message []byte, processed Processed, at time.Time, held bool, st *ReplicationStats) (tick uint64, complete bool, err error) {
	tick, set, err := f.Decode(message)
	if err != nil {
		for _, t := range f.types {
			t.keep()
		}
		replication.CountError(st, err)
		return 0, false, err
	}
	complete = f.Complete()
	if held && !complete {
		return tick, false, nil
	}
	for i, t := range f.types {
		if i > 0 {
			set = f.Further(i - 1)
		}
		t.receive(tick, set, f.Ages(i), processed, at)
	}
	return tick, complete, nil
}

// End implements [replication.Receiver].
func (f *snapshotFeed) End() {
	for _, t := range f.types {
		t.end()
	}
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
