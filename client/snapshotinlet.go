package client

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// snapshotInlet takes a world's snapshots.
type snapshotInlet[T any] struct {
	cfg    SnapshotConfig[T]
	name   string
	typ    *snapshot.Type[T] // of the goroutine that receives
	fields []string
	began  time.Time // what times of interpolation count from

	// Of the goroutine that receives:
	initial *snapshot.Set // this end's, or what came last
	hash    uint64
	dec     *snapshot.Decoder
	ticks   worlds.Ticks
	tickHz  float64
	scratch Snapshot[T]
	fresh   bool // scratch is to be delivered

	mu     sync.Mutex
	reader *snapshot.Type[T] // of who asks for the newest
	set    *snapshot.Set     // the newest, a copy
	tick   uint64
	hz     float64
	came   time.Time
	buffer *interpolate.Buffer[T]
	shares bool // what is restored into a T anew may be what the buffer has of it: byte slices are restored in place
}

func newSnapshotInlet[T any](name string, cfg *SnapshotConfig[T]) (*snapshotInlet[T], error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	in := &snapshotInlet[T]{cfg: *cfg, name: name, typ: typ, reader: typ.Clone(), fields: worlds.Fields(typ.Source()), began: time.Now()}
	if in.initial, err = worlds.Fill(typ, cfg.Initial); err != nil {
		return nil, fmt.Errorf("SnapshotConfig.Initial: %w", err)
	}
	in.hash = worlds.Hash(in.initial)
	if cfg.Interpolate != nil {
		in.shares = slices.ContainsFunc(typ.Schema().Fields(), func(f snapshot.Field) bool { return f.Class == schema.ClassBytes })
		_, err = interpolate.Tagged[T]()
	}
	return in, err
}

func (in *snapshotInlet[T]) check(o *control.DownOffer) error {
	if err := compareCodec(in.name, worlds.Codec, o); err != nil {
		return err
	}
	return compareFields(in.name, in.fields, o.Fields)
}

func (in *snapshotInlet[T]) knows(hash uint64) bool { return in.hash == hash }

func (in *snapshotInlet[T]) begin(o *control.DownOffer, initial []byte) error {
	if initial != nil {
		set, err := worlds.ParseInitial(in.typ.Schema(), initial)
		if err == nil && worlds.Hash(set) != o.Hash {
			err = fmt.Errorf("%w: its initial state is not the one that was offered", snapshot.ErrMalformed)
		}
		if err != nil {
			return err
		}
		in.initial, in.hash = set, o.Hash
	}
	from := in.initial
	if o.Initial == 0 {
		from = nil
	}
	in.dec, in.ticks, in.tickHz = snapshot.NewDecoder(in.typ.Schema(), from), worlds.Ticks{}, o.TickHz
	in.mu.Lock()
	defer in.mu.Unlock()
	in.set = nil
	if in.cfg.Interpolate == nil {
		return nil
	}
	return in.play(o)
}

// play makes the buffer of what is shown, with in.mu held. One that there is goes on: after a reconnection the world is
// most likely the same.
func (in *snapshotInlet[T]) play(o *control.DownOffer) error {
	if in.buffer != nil {
		return nil
	}
	cfg := *in.cfg.Interpolate
	if cfg.Interval == 0 {
		cfg.Interval = interval(o.RateHz)
	}
	adapter, err := interpolate.Tagged[T]()
	if err == nil {
		in.buffer, err = interpolate.New(adapter, cfg)
	}
	if err != nil {
		return fmt.Errorf("client: world %s: SnapshotConfig.Interpolate: %w", in.name, err)
	}
	return nil
}

func (in *snapshotInlet[T]) take(message []byte, at time.Time, st *ReplicationStats) error {
	offset, payload, err := worlds.Parse(message)
	if err != nil {
		st.count(err)
		return err
	}
	info, set, err := in.dec.Decode(payload)
	if err != nil {
		st.count(err)
		return err
	}
	tick, err := in.ticks.Resolve(info.Seq, info.Baseline, offset)
	if err != nil {
		st.count(err)
		return err
	}
	in.arrived(tick, set, at)
	return nil
}

// arrived keeps a snapshot for all who may ask for it.
func (in *snapshotInlet[T]) arrived(tick uint64, set *snapshot.Set, at time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	late := in.set != nil && tick < in.tick
	in.fresh = in.cfg.Handle != nil
	if in.buffer != nil && in.shares {
		clear(in.scratch.Objects)
	}
	if in.fresh || in.buffer != nil {
		restore(&in.scratch, in.typ, set)
		in.scratch.Tick, in.scratch.Time, in.scratch.Received, in.scratch.Late = tick, timeOf(tick, in.tickHz), at, late
	}
	if in.buffer != nil {
		_ = in.buffer.Add(at.Sub(in.began), in.scratch.Time, in.scratch.IDs, in.scratch.Objects) // it counts what it refuses
	}
	if late {
		return
	}
	if in.set == nil {
		in.set = in.typ.Schema().NewSet()
	}
	in.set.CopyFrom(set)
	in.tick, in.hz, in.came = tick, in.tickHz, at
}

func (in *snapshotInlet[T]) deliver() {
	if in.fresh {
		in.fresh = false
		in.cfg.Handle(&in.scratch)
	}
}

func (in *snapshotInlet[T]) appendAck(dst []byte) []byte {
	a := in.dec.Ack()
	return a.Append(dst)
}

func (in *snapshotInlet[T]) latest(out *Snapshot[T]) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.set == nil {
		return false
	}
	restore(out, in.reader, in.set)
	out.Tick, out.Time, out.Received, out.Late = in.tick, timeOf(in.tick, in.hz), in.came, false
	return true
}

func (in *snapshotInlet[T]) sample(now time.Time, out *interpolate.Sample[T]) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.buffer != nil && in.buffer.Sample(now.Sub(in.began), out)
}

func (in *snapshotInlet[T]) interpolation() interpolate.Stats {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.buffer == nil {
		return interpolate.Stats{}
	}
	return in.buffer.Stats()
}

// restore makes structs of a set's rows, in slices that are reused.
func restore[T any](out *Snapshot[T], typ *snapshot.Type[T], set *snapshot.Set) {
	n := set.Len()
	out.IDs = slices.Grow(out.IDs[:0], n)[:n]
	out.Objects = slices.Grow(out.Objects[:0], n)[:n]
	for i := range n {
		out.IDs[i] = key(set.Object(i))
		if typ.Get(&out.Objects[i], set, i) != nil { // a value that msgpack cannot have made
			out.Objects[i] = *new(T)
		}
	}
}

// timeOf is a tick's time, at most the longest Duration.
func timeOf(tick uint64, hz float64) time.Duration { return duration(float64(tick) / hz) }
