package replication

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication/areas"
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

	active   bool
	receipts snapshot.Receipts
	sent     uint64 // number of the newest message + 1
	sentAt   time.Time
	age      uint64 // ticks between the last snapshot and its baseline
}

func (s *snapshotSender) start(time.Time) { s.active = true }

func (s *snapshotSender) stop() {
	*s = snapshotSender{world: s.world, player: s.player, heldUntil: s.heldUntil}
}

// baselines returns the step of the client's snapshots, and the distances of the baselines that it
// has for the newest one.
func (s *snapshotSender) baselines() (step int, full, bare uint64, ok bool) {
	step = s.receipts.Step()
	full, bare = s.receipts.Baselines(s.world.sets.Next()-1, step)
	return step, full, bare, s.active
}

func (s *snapshotSender) message(_ *[]byte, _ int, now time.Time) ([]byte, error) {
	w := s.world
	if w.begun == 0 || s.sent == w.sets.Next() || now.Before(s.heldUntil) {
		return nil, errNothing
	}
	step, full, bare, _ := s.baselines()
	b, ok := w.plan.baseline(step, full, bare)
	switch {
	case ok:
	case bare != 0 && now.Sub(s.sentAt) < minHold:
		return nil, errNothing // the next tick likely has a baseline for this client
	default:
		b = s.receipts.Keyframe()
	}
	m := w.encodings.get(w.sets.Next()-1, b)
	switch {
	case m.err != nil:
		return nil, m.err
	case m.number+1 <= s.sent:
		return nil, errNothing
	}
	s.sent, s.sentAt, s.heldUntil, s.age = m.number+1, now, time.Time{}, m.age
	s.receipts.Sent(m.number, b)
	if b.Distance == 0 && m.info.Bytes > transport.MaxPayload {
		s.heldUntil = now.Add(max(minHold, s.player.RTT()*3/2))
	}
	return m.message, nil
}

func (s *snapshotSender) ack(b []byte, _ time.Time) (acked int, err error) {
	a, err := parseAck(b)
	if err != nil {
		return 0, err
	}
	if acked, err = s.receipts.Ack(a); acked > 0 {
		s.heldUntil = time.Time{}
	}
	return acked, err
}

func parseAck(b []byte) (snapshot.Ack, error) {
	a, rest, err := snapshot.ParseAck(b)
	if err == nil && len(rest) > 0 {
		err = snapshot.ErrMalformed
	}
	return a, err
}

func (s *snapshotSender) count(st *Stats) { st.BaselineAge = s.age }

// SnapshotDecoder decodes the messages of a world of snapshots at a client.
type SnapshotDecoder struct {
	schema  *snapshot.Schema
	types   []*snapshot.Schema // further types of objects
	initial *snapshot.Set      // the client's own, or the one received last
	hash    uint64             // of initial
	dec     *snapshot.Decoder
	areas   *areas.Decoder // instead of dec, for a world with areas
	ticks   Ticks
}

// NewSnapshotDecoder returns a decoder for a client that knows the initial state initial.
func NewSnapshotDecoder(s *snapshot.Schema, initial *snapshot.Set) SnapshotDecoder {
	return SnapshotDecoder{schema: s, initial: initial, hash: Hash(initial)}
}

// SetTypes sets the further types of objects of a world, before Begin.
func (d *SnapshotDecoder) SetTypes(types ...*snapshot.Schema) { d.types = types }

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
	d.dec, d.areas, d.ticks = nil, nil, Ticks{}
	if o.Areas {
		d.areas = areas.NewDecoder(append([]*snapshot.Schema{d.schema}, d.types...)...)
	} else {
		d.dec = snapshot.NewDecoder(d.schema, from)
	}
	return nil
}

// Decode decodes a message. Its set is valid as long as that of [snapshot.Decoder.Decode].
func (d *SnapshotDecoder) Decode(message []byte) (tick uint64, set *snapshot.Set, err error) {
	difference, payload, err := parseTick(message)
	if err != nil {
		return 0, nil, err
	}
	var seq uint16
	var distance int
	if d.areas != nil {
		seq, distance, err = d.areas.Decode(payload)
		set = d.areas.Shown(0)
	} else {
		var info snapshot.Info
		info, set, err = d.dec.Decode(payload)
		seq, distance = info.Seq, info.Distance
	}
	if err != nil {
		return 0, nil, err
	}
	tick, err = d.ticks.resolve(seq, distance, difference)
	return tick, set, err
}

// Further returns the objects of a further type in the message that was decoded last. They are valid
// as long as those of Decode.
func (d *SnapshotDecoder) Further(typ int) *snapshot.Set { return d.areas.Shown(typ + 1) }

// AppendAck implements [Receiver].
func (d *SnapshotDecoder) AppendAck(dst []byte) []byte {
	a := d.ack()
	return a.Append(dst)
}

func (d *SnapshotDecoder) ack() snapshot.Ack {
	if d.areas != nil {
		return d.areas.Ack()
	}
	return d.dec.Ack()
}

// Memory returns the size of the decoded snapshots that are kept, in bytes.
func (d *SnapshotDecoder) Memory() int {
	switch {
	case d.areas != nil:
		return d.areas.Memory()
	case d.dec != nil:
		return d.dec.Memory()
	}
	return 0
}
