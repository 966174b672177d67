package replication

import (
	"encoding/binary"
	"time"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// minHold is the time for which no snapshot follows one that is larger than a datagram and has no
// acked baseline, or 1.5 round trips if those are longer. The next one would be as large, and no
// newer to a client that is about to receive this one.
const minHold = 100 * time.Millisecond

// ackWindow is the number of messages on which an ack of either codec reports.
const ackWindow = 64

// snapshotSender encodes a world's snapshots for one player.
type snapshotSender struct {
	world     *timeline
	player    Player
	heldUntil time.Time // kept when the client resubscribes

	enc     *snapshot.Encoder // nil while stopped
	payload []byte
	next    uint64 // number of the tick after the newest that was sent
	unacked *ringcache.Ring[struct{}]
	age     uint64 // ticks between the last snapshot and its baseline
}

func (s *snapshotSender) start(time.Time) {
	s.enc, s.unacked = snapshot.NewEncoder(s.world.schema, s.world.sets), ringcache.New[struct{}](ackWindow)
}

func (s *snapshotSender) stop() {
	*s = snapshotSender{world: s.world, player: s.player, heldUntil: s.heldUntil}
}

func (s *snapshotSender) append(dst []byte, limit int, now time.Time) ([]byte, error) {
	if s.world.begun == s.next || now.Before(s.heldUntil) {
		return dst, errNothing
	}
	payload, info, err := s.enc.Append(s.payload[:0], limit-binary.MaxVarintLen64)
	if err != nil {
		return dst, err
	}
	s.payload, s.next, s.heldUntil = payload, s.world.begun, time.Time{}
	if info.Baseline == 0 && info.Bytes > transport.MaxPayload {
		s.heldUntil = now.Add(max(minHold, s.player.RTT()*3/2))
	}
	s.unacked.Put(uint64(info.Seq))
	s.age = s.world.ticks.age(info.Seq, info.Baseline)
	return append(s.world.ticks.Append(dst, info.Seq, info.Baseline), payload...), nil
}

func (s *snapshotSender) ack(b []byte, _ time.Time) (acked int, err error) {
	a, rest, err := snapshot.ParseAck(b)
	if err == nil && len(rest) > 0 {
		err = snapshot.ErrMalformed
	}
	if err != nil {
		return 0, err
	}
	s.world.mu.RLock()
	defer s.world.mu.RUnlock()
	if err := s.enc.Ack(a); err != nil {
		return 0, err
	}
	if a.None {
		return 0, nil
	}
	for n := range seq.Acked(a.Newest, a.Window) {
		if s.unacked.Get(uint64(n)) != nil {
			s.unacked.Delete(uint64(n))
			acked++
			s.heldUntil = time.Time{}
		}
	}
	return acked, nil
}

func (s *snapshotSender) count(st *Stats) { st.BaselineAge = s.age }
