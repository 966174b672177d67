package replication

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// minHold is the time for which no snapshot follows one that is larger than a datagram and has no
// acked baseline, or 1.5 round trips if those are longer. The next one would be as large, and no
// newer to a client that is about to receive this one. Each time that the client does not ack it,
// the time doubles, up to maxHold.
const (
	minHold = 100 * time.Millisecond
	maxHold = 5 * time.Second

	// maxBare is the time after which small snapshots without a baseline are treated as large ones.
	maxBare = time.Second

	// patience is the number of such snapshots that a client may miss before it only receives those
	// that are encoded anyway.
	patience = 3
	// maxWait is the time after which a client that has no baseline of the plan affects it.
	maxWait = 50 * time.Millisecond
)

// ackWindow is the number of messages on which an ack of either codec reports.
const ackWindow = 64

type snapshotSender struct {
	world     *World
	player    Player
	heldUntil time.Time // kept when the client resubscribes
	unacked   uint      // consecutive snapshots that caused holds and were not acked, kept too
	bareSince time.Time // the first of those without a baseline, kept too; zero: the last one had one

	active   bool
	receipts snapshot.Receipts
	sent     uint64 // number of the newest message + 1
	sentAt   time.Time
	large    uint64 // number of the snapshot that caused the last hold
	age      uint64 // ticks between the last snapshot and its baseline
}

func (s *snapshotSender) start(time.Time) { s.active = true }

func (s *snapshotSender) stop() {
	*s = snapshotSender{world: s.world, player: s.player, heldUntil: s.heldUntil, unacked: s.unacked, bareSince: s.bareSince}
}

// baselines returns the baselines that the client has for the newest snapshot, and whether they
// affect the plan.
func (s *snapshotSender) baselines(now time.Time) (c clientBaselines, ok bool) {
	c.step = s.receipts.Step()
	c.full, c.bare = s.receipts.Baselines(s.world.sets.Next()-1, c.step)
	c.waits = now.Sub(s.sentAt) > maxWait
	return c, s.active && bits.TrailingZeros64(c.bare) <= s.oldest()
}

// oldest returns the distance up to which the newest baseline of a client affects the plan. One
// that has an older one has not received anything for some time, or pretends so.
func (s *snapshotSender) oldest() int {
	return 8 + 3*int(s.player.RTT().Seconds()*s.world.snapshots.offer.RateHz)
}

func (s *snapshotSender) message(_ *[]byte, _ int, now time.Time) ([]byte, error) {
	w := s.world
	if w.begun == 0 || s.sent == w.sets.Next() || now.Before(s.heldUntil) {
		return nil, errNothing
	}
	c, _ := s.baselines(now)
	b, ok := w.plan.baseline(c)
	switch {
	case ok:
	case c.bare != 0 && now.Sub(s.sentAt) < minHold:
		return nil, errNothing // the next tick likely has a baseline for this client
	default:
		b = s.receipts.Keyframe()
	}
	m := w.encodings.get(w.sets.Next()-1, b, s.unacked > patience)
	switch {
	case m.err != nil:
		return nil, m.err
	case m.number+1 <= s.sent:
		return nil, errNothing
	}
	s.sent, s.sentAt, s.heldUntil, s.age = m.number+1, now, time.Time{}, m.age
	s.receipts.Sent(m.number, b)
	switch {
	case b.Distance > 0:
		s.bareSince = time.Time{}
	case s.bareSince.IsZero():
		s.bareSince = now
	}
	if b.Distance == 0 && (m.info.Bytes > transport.MaxPayload || now.Sub(s.bareSince) > maxBare) {
		hold := min(max(minHold, s.player.RTT()*3/2)<<min(s.unacked, 6), maxHold)
		s.heldUntil, s.large = now.Add(hold), m.number
		s.unacked++
	}
	return m.message, nil
}

func (s *snapshotSender) ack(b []byte, _ time.Time) (acked int, err error) {
	a, err := parseAck(b)
	if err != nil {
		return 0, err
	}
	acked, err = s.receipts.Ack(a)
	if _, bare := s.receipts.Baselines(s.sent, 1); s.unacked > 0 && s.sent-s.large < snapshot.Ring && bare>>(s.sent-s.large)&1 != 0 {
		s.unacked, s.heldUntil = 0, time.Time{}
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

// Further returns the objects of a further type in the message that was decoded last. They are
// valid as long as those of Decode.
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
