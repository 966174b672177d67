package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// SnapshotConfig configures [SubscribeSnapshots]. The zero value of each field means its default.
type SnapshotConfig[T any] struct {
	// Handle, if set, is called with each snapshot received, late ones included, on the goroutine
	// that receives for the connection. It should be short, and must not close the connection or
	// the view. The snapshot is valid during the call.
	Handle func(*Snapshot[T])
	// Interpolate, if set, enables [SnapshotView.Sample]. Interval defaults to that of the server's
	// offer. The tags of T select what is interpolated: see [interpolate.Tagged].
	Interpolate *interpolate.Config
	// Initial is the same function as the server's ds.WorldConfig.Initial, if the client knows the
	// initial state. If it does not, or the states differ, the server sends it.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
	// AckHz is the maximum number of acks per second, up to 1000; default DefaultAckHz. More acks
	// mean newer baselines and smaller snapshots, for about 50 bytes each.
	AckHz float64
}

// Snapshot is a world at one tick, as the server quantized it.
type Snapshot[T any] struct {
	// Tick is the server's tick.
	Tick uint64
	// Time is the tick's time by the server's tick rate.
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

// Latest restores the newest snapshot into out, whose slices are reused. It returns false before
// the first snapshot.
func (v *SnapshotView[T]) Latest(out *Snapshot[T]) bool {
	v.latest.Do(func() { v.sub.Locked(v.receiver.want) })
	return v.receiver.latest(out)
}

// Sample stores in out what to show at now. It returns false before the first snapshot, and without
// SnapshotConfig.Interpolate. Byte slices of objects belong to the view: only read them.
func (v *SnapshotView[T]) Sample(now time.Time, out *interpolate.Sample[T]) bool {
	return v.receiver.sample(now, out)
}

// Interpolation returns the counts of the playback by Sample.
func (v *SnapshotView[T]) Interpolation() interpolate.Stats { return v.receiver.interpolation() }
