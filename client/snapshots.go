package client

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/snapshot"
)

// DefaultAckHz is that of a [SnapshotConfig].
const DefaultAckHz = 30

// SnapshotConfig says how a world's snapshots are taken. The zero value of each field means its default.
type SnapshotConfig[T any] struct {
	// Handle, if set, gets each snapshot as it comes, also those that newer ones overtook, on the goroutine that receives
	// for the connection: it should be short, and must not close the connection or the view. The snapshot is valid while
	// it runs.
	Handle func(*Snapshot[T])
	// Interpolate, if set, has [SnapshotView.Sample] show the world smoothly. Its Interval is that of the server's offer unless
	// set. T's tags say what is interpolated: see [interpolate.Tagged].
	Interpolate *interpolate.Config
	// Initial is the same function as the server's ds.WorldConfig.Initial has, if this end knows the state that the world
	// starts from. If it does not, or it is another one, the server sends it.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
	// AckHz is how often a second snapshots are acked at most, up to 1000: more often means younger baselines and smaller
	// snapshots, for about 50 bytes each. Default DefaultAckHz.
	AckHz float64
}

// Snapshot is a world at one tick, as the server quantized it.
type Snapshot[T any] struct {
	// Tick is the server's, Time what it is at the server's ticks a second, Received when the snapshot came.
	Tick     uint64
	Time     time.Duration
	Received time.Time
	// Late says that a newer one came before.
	Late bool
	// IDs ascend; Objects[i] is that of IDs[i]. SplitID splits them.
	IDs     []uint32
	Objects []T
}

// SplitID returns the object's id and generation that an id of a [Snapshot] or an
// [interpolate.Sample] contains.
func SplitID(id uint32) (object uint16, generation uint8) { return uint16(id >> 8), uint8(id) }

// SnapshotView is one of the server's worlds as it arrives: objects T. Its methods are safe for concurrent use.
type SnapshotView[T any] struct {
	down *downstream
	in   *snapshotInlet[T]
}

// SubscribeSnapshots subscribes to the snapshots of a world whose objects are a T. It waits for the
// server's offer and the initial state until ctx is done, or for Config.BindTimeout if ctx has no
// deadline. It returns an error if the server's T is a different one ([*WorldError]) or the world is
// not offered ([ErrNotOffered]). The view continues after a reconnection.
func SubscribeSnapshots[T any](ctx context.Context, c *Conn, name string, cfg SnapshotConfig[T]) (*SnapshotView[T], error) {
	ackHz, err := ackRate("SnapshotConfig", cfg.AckHz)
	var in *snapshotInlet[T]
	if err == nil {
		in, err = newSnapshotInlet(name, &cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("client: world %s: %w", name, err)
	}
	d := &downstream{conn: c, name: name, inlet: in, ackHz: ackHz, answer: make(chan error, 1)}
	if err := c.takeDown(ctx, d); err != nil {
		return nil, err
	}
	return &SnapshotView[T]{down: d, in: in}, nil
}

// ackRate returns the AckHz of a config, or its default.
func ackRate(config string, hz float64) (float64, error) {
	if hz == 0 {
		return DefaultAckHz, nil
	}
	if !(hz > 0 && hz <= 1000) {
		return 0, fmt.Errorf("%s.AckHz is %v, want up to 1000", config, hz)
	}
	return hz, nil
}

// Latest fills out with the newest snapshot, or says false before the first. Its slices are reused.
func (v *SnapshotView[T]) Latest(out *Snapshot[T]) bool { return v.in.latest(out) }

// Sample fills out with what is to be shown at now, and says false before the first snapshot, or without
// SnapshotConfig.Interpolate. Byte slices of objects are the view's: read them only.
func (v *SnapshotView[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	return v.in.sample(now, out)
}

// Interpolation gives the counters of what Sample shows.
func (v *SnapshotView[T]) Interpolation() interpolate.Stats { return v.in.interpolation() }

// Err is why the server's world is not taken any more, after a reconnection to a server that has another one; nil while
// all is well.
func (v *SnapshotView[T]) Err() error { return v.down.err() }

// Stats gives what was counted so far.
func (v *SnapshotView[T]) Stats() ReplicationStats { return v.down.safelyCounted() }

// Close ends the view and tells the server; [SubscribeSnapshots] can subscribe again. It may be called more than once.
func (v *SnapshotView[T]) Close() error {
	v.down.conn.dropDown(v.down)
	return nil
}

// key is the id of an object in snapshots.
func key(o snapshot.Object) uint32 { return uint32(o.ID)<<8 | uint32(o.Generation) }

// WorldError says that client and server describe a world's objects differently.
type WorldError struct {
	World string
	Field int    // the first field that differs
	Here  string // what the client has there; empty if it has no such field
	There string // what the server has there, as it was sent: any bytes; empty if it has no such field
}

func (e *WorldError) Error() string {
	return fmt.Sprintf("client: world %s: field %d differs: here %s, at the server %s", e.World, e.Field, orNothing(e.Here), orNothing(e.There))
}

// compareCodec says that the server sends the world by another codec.
func compareCodec(world, want string, o *control.DownOffer) error {
	if o.Codec == want {
		return nil
	}
	return fmt.Errorf("client: world %s: the server sends it by codec \"%s\", want %q", world, shown(o.Codec), want)
}

// compareFields finds the first difference.
func compareFields(world string, here, there []string) error {
	for i := range max(len(here), len(there)) {
		e := &WorldError{World: world, Field: i}
		if i < len(here) {
			e.Here = here[i]
		}
		if i < len(there) {
			e.There = there[i]
		}
		if e.Here != e.There {
			return e
		}
	}
	return nil
}
