package replication

import (
	"encoding/binary"
	"fmt"
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

type snapshotSender struct {
	world     *World
	player    Player
	heldUntil time.Time // kept when the client resubscribes

	enc     *snapshot.Encoder // nil while stopped
	payload []byte
	next    uint64 // number of the tick after the newest that was sent
	unacked *ringcache.Ring[struct{}]
	last    uint16 // sequence of the last message
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
	s.last = info.Seq
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
	s.world.setsMu.RLock()
	defer s.world.setsMu.RUnlock()
	if err := s.enc.Ack(a); err != nil {
		return 0, err
	}
	if a.None {
		return 0, nil
	}
	for n := range seq.Acked(seq.Recent(a.Newest, s.last), a.Window) {
		if s.unacked.Get(uint64(n)) != nil {
			s.unacked.Delete(uint64(n))
			acked++
			s.heldUntil = time.Time{}
		}
	}
	return acked, nil
}

func (s *snapshotSender) count(st *Stats) { st.BaselineAge = s.age }

// SnapshotDecoder decodes the messages of a world of snapshots at a client.
type SnapshotDecoder struct {
	schema  *snapshot.Schema
	initial *snapshot.Set // the client's own, or the one received last
	hash    uint64        // of initial
	dec     *snapshot.Decoder
	ticks   Ticks
}

// NewSnapshotDecoder returns a decoder for a client that knows the initial state initial.
func NewSnapshotDecoder(s *snapshot.Schema, initial *snapshot.Set) SnapshotDecoder {
	return SnapshotDecoder{schema: s, initial: initial, hash: Hash(initial)}
}

// Knows implements [Receiver].
func (d *SnapshotDecoder) Knows(hash uint64) bool { return d.hash == hash }

// Begin prepares the first message of a stream, as [Receiver] requires.
func (d *SnapshotDecoder) Begin(o *Offer, initial []byte) error {
	if initial != nil {
		set, err := parseInitial(d.schema, initial)
		if err == nil && Hash(set) != o.Hash {
			err = fmt.Errorf("%w: the initial state differs from the offered one", snapshot.ErrMalformed)
		}
		if err != nil {
			return err
		}
		d.initial, d.hash = set, o.Hash
	}
	from := d.initial
	if o.Initial == 0 {
		from = nil
	}
	d.dec, d.ticks = snapshot.NewDecoder(d.schema, from), Ticks{}
	return nil
}

// Decode decodes a message. Its set is valid as long as that of [snapshot.Decoder.Decode].
func (d *SnapshotDecoder) Decode(message []byte) (tick uint64, set *snapshot.Set, err error) {
	difference, payload, err := parseTick(message)
	if err != nil {
		return 0, nil, err
	}
	info, set, err := d.dec.Decode(payload)
	if err != nil {
		return 0, nil, err
	}
	tick, err = d.ticks.resolve(info.Seq, info.Baseline, difference)
	return tick, set, err
}

// AppendAck implements [Receiver].
func (d *SnapshotDecoder) AppendAck(dst []byte) []byte {
	a := d.dec.Ack()
	return a.Append(dst)
}

// Memory returns the size of the decoded snapshots that are kept, in bytes.
func (d *SnapshotDecoder) Memory() int {
	if d.dec == nil {
		return 0
	}
	return d.dec.Memory()
}
