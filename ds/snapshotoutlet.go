package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// leastHold is how long a snapshot that takes several datagrams, and has no baseline that was acked, is waited for before
// another one is sent: a round trip and a half where that is more. The next one would be as large, and no newer to a
// client that is about to get this one.
const leastHold = 100 * time.Millisecond

// snapshotWay is a world's to one player, by snapshots.
type snapshotWay struct {
	world  *world
	player *Player
	held   time.Time // until when nothing is sent, even if the client leaves and returns; of the outlet
}

func (w *snapshotWay) terms() *terms  { return &w.world.snapshots }
func (w *snapshotWay) outlet() outlet { return newSnapshotOutlet(w) }

// snapshotOutlet codes a world's snapshots for one player.
type snapshotOutlet struct {
	world   *world
	way     *snapshotWay
	enc     *snapshot.Encoder
	payload []byte
	next    uint64 // snapshot after the newest that was sent
	fates   fates
	ticks   uint64 // that the last one's baseline is older
}

func newSnapshotOutlet(w *snapshotWay) *snapshotOutlet {
	return &snapshotOutlet{world: w.world, way: w, enc: snapshot.NewEncoder(w.world.schema, w.world.sets)}
}

func (o *snapshotOutlet) append(dst []byte, limit int) ([]byte, error) {
	if o.world.begun == o.next {
		return dst, errNothing
	}
	if held := o.way.held; !held.IsZero() && time.Now().Before(held) {
		return dst, errNothing
	}
	payload, info, err := o.enc.Append(o.payload[:0], limit-worlds.MaxTickSize)
	if err != nil {
		return dst, err
	}
	o.payload, o.next, o.way.held = payload, o.world.begun, time.Time{}
	if info.Baseline == 0 && info.Bytes > transport.MaxPayload {
		o.way.held = time.Now().Add(max(leastHold, o.way.player.RTT()*3/2))
	}
	o.fates.sent(info.Seq)
	o.ticks = o.world.ticks.Age(info.Seq, info.Baseline)
	return append(o.world.ticks.Append(dst, info.Seq, info.Baseline), payload...), nil
}

func (o *snapshotOutlet) ack(b []byte) (int, error) {
	a, rest, err := snapshot.ParseAck(b)
	if err == nil && len(rest) > 0 {
		err = snapshot.ErrMalformed
	}
	if err != nil {
		return 0, err
	}
	o.world.ticking.RLock()
	defer o.world.ticking.RUnlock()
	if err := o.enc.Ack(a); err != nil {
		return 0, err
	}
	n := o.fates.acked(a.None, a.Newest, a.Window)
	if n > 0 {
		o.way.held = time.Time{}
	}
	return n, nil
}

func (o *snapshotOutlet) note(st *ReplicationStats) { st.BaselineAge = o.ticks }
