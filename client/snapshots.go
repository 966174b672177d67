package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/snapshot"
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
	// that comes later than that does not wait, nor do the oldest ones if more than 256 KiB wait.
	// The message may be kept.
	OnMessage func(tick uint64, message []byte)
	// Interpolate, if set, enables [SnapshotView.Sample]. Its Interval defaults to the interval in
	// the server's offer. The tags of T select what is interpolated: see [interpolate.Tagged].
	Interpolate *interpolate.Config
	// Initial is the same function as the server's ds.WorldConfig.Initial, if the client knows the
	// initial state. If Initial is nil, or the states differ, the server sends
	// the initial state.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
	// Types are further types of objects of the world, as ds.AddType adds them, in any order. The
	// server must have all of them. Objects of types that only the server has are skipped: see
	// [SnapshotView.SkippedTypes]. Unused in the configuration of an ObjectType, as are OnMessage,
	// Initial and AckHz.
	Types []AnyObjectType
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
	// Processed tells which calls the server had processed: see [Stream.Processed].
	Processed Processed
	// IDs are the keys of Objects, in ascending order: see [SplitID].
	IDs     []uint32
	Objects []T
	// Ages are by how many ticks the Objects are older than Tick. Ages is empty if none is older,
	// which is always so without areas. With areas, an object can be older if the server codes its
	// group for too many other players, or if the client has lost the keyframe of a group that it
	// is shown.
	Ages []uint64
}

// SplitID splits an element of IDs of a [Snapshot] or an [interpolate.Sample] into the object's id
// and its generation at the server.
func SplitID(id uint32) (object uint16, generation uint8) { return uint16(id >> 8), uint8(id) }

// SnapshotView is a client's subscription to a world of objects T, as snapshots. Its methods are
// safe for concurrent use.
type SnapshotView[T any] struct {
	view
	*objects[T]
	receiver *snapshotReceiver
}

// Sample stores in out what to show at now, and calls SnapshotConfig.OnMessage with the messages
// whose ticks it shows first. It returns false before the first snapshot, and without
// SnapshotConfig.Interpolate. Byte slices of objects belong to the view: only read them. It is for
// one goroutine at a time.
func (v *SnapshotView[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	ok := v.objects.Sample(now, out)
	if ok {
		v.receiver.reach(out.Time, v.tickRate())
	}
	return ok
}

// SkippedTypes returns the names of the types of objects that the world has at the server, but
// SnapshotConfig.Types does not. Their objects are received and dropped. A [MismatchError] reports
// them once.
func (v *SnapshotView[T]) SkippedTypes() []string {
	v.receiver.mu.Lock()
	defer v.receiver.mu.Unlock()
	return slices.Clone(v.receiver.skipped)
}

// ObjectType is a further type of objects of a world, for SnapshotConfig.Types. Its methods are
// safe for concurrent use.
type ObjectType[T any] struct{ *objects[T] }

// AnyObjectType is an [ObjectType].
type AnyObjectType interface{ receiver() objectReceiver }

// NewObjectType returns a type of objects of that name. An error names the field of T that is not
// supported.
func NewObjectType[T any](name string, cfg SnapshotConfig[T]) (*ObjectType[T], error) {
	o, err := newObjects(name, &cfg)
	if err != nil {
		return nil, fmt.Errorf("client: type %s: %w", name, err)
	}
	return &ObjectType[T]{o}, nil
}

func (t *ObjectType[T]) receiver() objectReceiver { return t.objects }

// SubscribeSnapshots subscribes to the snapshots of a world whose objects are a T. It waits for the
// server's offer and the initial state until ctx is done, or for Config.Transport.BindTimeout if
// ctx has no deadline. It returns an error if a field of the server's T cannot be converted
// ([*WorldError]) or the world is not offered ([ErrNotOffered]). The view continues after a
// reconnection.
func SubscribeSnapshots[T any](ctx context.Context, c *Conn, name string, cfg SnapshotConfig[T]) (*SnapshotView[T], error) {
	o, err := newObjects(name, &cfg)
	var initial *snapshot.Set
	if err == nil {
		initial, err = replication.Fill(o.typ, cfg.Initial)
		if err != nil {
			err = fmt.Errorf("SnapshotConfig.Initial: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	r := &snapshotReceiver{SnapshotDecoder: replication.NewSnapshotDecoder(o.typ.Schema(), initial), name: name, own: o, onMessage: cfg.OnMessage, plays: cfg.Interpolate != nil}
	for _, t := range cfg.Types {
		r.further = append(r.further, t.receiver())
	}
	v, err := subscribe(ctx, c, name, r, "SnapshotConfig", cfg.AckHz)
	if err != nil {
		return nil, err
	}
	for _, t := range r.types() {
		t.subscribed(v.sub)
	}
	return &SnapshotView[T]{view: v, objects: o, receiver: r}, nil
}

// snapshotReceiver receives a world with objects of one or more types.
type snapshotReceiver struct {
	replication.SnapshotDecoder
	name    string
	own     objectReceiver
	further []objectReceiver // in any order until the offer is checked, then in the server's

	onMessage func(tick uint64, message []byte) // or nil
	plays     bool                              // Sample delivers messages

	mu       sync.Mutex
	messages replication.GameMessages // that came before Sample reached their ticks
	skipped  []string                 // names of types of the server that the client does not have
}

// skippedType receives the objects of a type that the client does not have.
type skippedType struct{ name string }

func (t skippedType) typeName() string { return t.name }

func (skippedType) fieldNames() []string { return nil }

func (t skippedType) offer(world string, fields []string) (*snapshot.Schema, error) {
	source, err := versions.Parse(t.name, fields)
	if err != nil {
		return nil, malformedFields(world, err)
	}
	s, err := snapshot.SchemaOf(source)
	if err != nil {
		return nil, malformedFields(world, err)
	}
	return s, nil
}

func (skippedType) subscribed(*replication.Subscription)                          {}
func (skippedType) begin(*replication.Offer) error                                { return nil }
func (skippedType) keep()                                                         {}
func (skippedType) receive(uint64, *snapshot.Set, []uint64, Processed, time.Time) {}
func (skippedType) end()                                                          {}
func (skippedType) deliver()                                                      {}
func (t skippedType) spare() objectReceiver                                       { return t }
func (skippedType) adopt(objectReceiver)                                          {}

// objectReceiver receives the objects of one type. Its methods are those of the goroutine that
// receives, except typeName.
type objectReceiver interface {
	typeName() string
	// fieldNames returns the names of the client's fields, nil if it does not have the type.
	fieldNames() []string
	// offer returns the schema of the server's objects, from the description of their fields.
	offer(world string, fields []string) (*snapshot.Schema, error)
	subscribed(*replication.Subscription)
	begin(*replication.Offer) error
	// keep copies what must outlive the decoder's sets.
	keep()
	receive(tick uint64, set *snapshot.Set, ages []uint64, processed Processed, at time.Time)
	end()
	deliver()
	spare() objectReceiver
	adopt(spare objectReceiver)
}

func (r *snapshotReceiver) types() []objectReceiver {
	return append([]objectReceiver{r.own}, r.further...)
}

// Check implements [replication.Receiver].
func (r *snapshotReceiver) Check(o *replication.Offer) (d message.Differences, err error) {
	if err := checkCodec(r.name, replication.SnapshotCodec, o); err != nil {
		return d, err
	}
	own, err := r.own.offer(r.name, o.Fields)
	if err != nil {
		return d, err
	}
	addDifferences(&d, "", fieldNames(o.Fields), r.own.fieldNames())
	var ordered []objectReceiver
	var schemas []*snapshot.Schema
	var skipped []string
	missing := r.ownTypes()
	for _, offered := range o.Types {
		var t objectReceiver = skippedType{offered.Name}
		if i := slices.IndexFunc(missing, func(t objectReceiver) bool { return t.typeName() == offered.Name }); i >= 0 {
			t = missing[i]
			missing = slices.Delete(missing, i, i+1)
		} else {
			skipped = append(skipped, offered.Name)
		}
		schema, err := t.offer(r.name+"/"+offered.Name, offered.Fields)
		if err != nil {
			return d, err
		}
		if names := t.fieldNames(); names != nil {
			addDifferences(&d, offered.Name+"/", fieldNames(offered.Fields), names)
		} else {
			addDifferences(&d, offered.Name+"/", []string{""}, nil)
		}
		ordered, schemas = append(ordered, t), append(schemas, schema)
	}
	if len(missing) > 0 {
		name := missing[0].typeName()
		return d, &replication.RefusedError{Reason: message.ReasonSchema, Err: fmt.Errorf("client: world %s: the server has no objects of type %s%s: update the server first, or remove it from SnapshotConfig.Types",
			r.name, name, message.Nearest(name, skipped))}
	}
	r.further = ordered
	r.skip(skipped)
	r.SetTypes(own, schemas...)
	return d, nil
}

// ownTypes returns the further types that the client has.
func (r *snapshotReceiver) ownTypes() (own []objectReceiver) {
	for _, t := range r.further {
		if _, ok := t.(skippedType); !ok {
			own = append(own, t)
		}
	}
	return own
}

// skip sets the types of which objects are dropped.
func (r *snapshotReceiver) skip(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = names
}

// Begin implements [replication.Receiver].
func (r *snapshotReceiver) Begin(o *replication.Offer, initial []byte) error {
	if err := r.SnapshotDecoder.Begin(o, initial); err != nil {
		return err
	}
	for _, t := range r.types() {
		if err := t.begin(o); err != nil {
			return err
		}
	}
	return nil
}

// Receive implements [replication.Receiver].
func (r *snapshotReceiver) Receive(message []byte, processed Processed, at time.Time, held bool, st *ReplicationStats) (tick uint64, complete bool, err error) {
	tick, set, err := r.Decode(message)
	if err != nil {
		r.keep()
		st.CountError(err)
		return 0, false, err
	}
	complete = r.Complete()
	if held && !complete {
		return tick, false, nil
	}
	r.own.receive(tick, set, r.Ages(0), processed, at)
	for i, t := range r.further {
		t.receive(tick, r.Further(i), r.Ages(i+1), processed, at)
	}
	return tick, complete, nil
}

// keep copies what must outlive the decoder's sets.
func (r *snapshotReceiver) keep() {
	r.own.keep()
	for _, t := range r.further {
		t.keep()
	}
}

// End implements [replication.Receiver].
func (r *snapshotReceiver) End() {
	r.own.end()
	for _, t := range r.further {
		t.end()
	}
}

// Game implements [replication.Receiver].
func (r *snapshotReceiver) Game(tick uint64, message []byte) {
	switch {
	case r.onMessage == nil:
	case r.plays:
		r.mu.Lock()
		r.messages.Add(tick, message)
		r.mu.Unlock()
		r.deliverMessages()
	default:
		r.onMessage(tick, message)
	}
}

// reach delivers the messages whose tick is not after a time.
func (r *snapshotReceiver) reach(t time.Duration, tickHz float64) {
	if r.onMessage == nil {
		return
	}
	r.mu.Lock()
	r.messages.Reach(replication.TickAt(t, tickHz))
	r.mu.Unlock()
	r.deliverMessages()
}

func (r *snapshotReceiver) deliverMessages() {
	for {
		r.mu.Lock()
		tick, message, ok := r.messages.Take()
		r.mu.Unlock()
		if !ok {
			return
		}
		r.onMessage(tick, message)
	}
}

// Deliver implements [replication.Receiver].
func (r *snapshotReceiver) Deliver() {
	r.own.deliver()
	for _, t := range r.further {
		t.deliver()
	}
}

// Spare implements [replication.Standby].
func (r *snapshotReceiver) Spare() replication.Receiver {
	spare := &snapshotReceiver{SnapshotDecoder: r.SnapshotDecoder.Spare(), name: r.name, own: r.own.spare(), skipped: slices.Clone(r.skipped)}
	for _, t := range r.ownTypes() {
		spare.further = append(spare.further, t.spare())
	}
	return spare
}

// Adopt implements [replication.Standby].
func (r *snapshotReceiver) Adopt(spare replication.Receiver) {
	next := spare.(*snapshotReceiver)
	r.SnapshotDecoder = next.SnapshotDecoder
	r.own.adopt(next.own)
	own := r.ownTypes()
	r.further = r.further[:0]
	for _, t := range next.further { // in the order of its server
		if k := slices.IndexFunc(own, func(o objectReceiver) bool { return o.typeName() == t.typeName() }); k >= 0 {
			own[k].adopt(t)
			t = own[k]
		}
		r.further = append(r.further, t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = next.skipped
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
