package replication

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// minHold is the minimum hold after a keyframe that is larger than a datagram. The hold is 1.5
// round trips if they are longer. During the hold, the client receives no other keyframe: the next
// one would be as large, and the client is probably about to receive this one. The hold doubles
// each time that the client does not ack the keyframe, up to maxHold.
const (
	minHold = 100 * time.Millisecond
	maxHold = 5 * time.Second

	// maxBare is the maximum time after which small keyframes are treated as large ones. That time
	// is three round trips, at least twice minHold.
	maxBare = time.Second

	// patience is the number of large keyframes in succession that a client may leave unacked.
	// After that, a keyframe is encoded for it at most once per second. It also receives the
	// keyframes that are encoded for other clients.
	patience = 3

	// maxWait is the time without a message after which a client that has no baseline of the plan
	// affects the plan.
	maxWait = 50 * time.Millisecond
)

// keyframeRate limits the number of times that a client may lose all baselines of the plan. Above
// the limit, a keyframe is encoded for it at most once per second, and each of its keyframes is
// treated as a large one.
var keyframeRate = ratelimit.Rate{PerSecond: .1, Burst: 3}

// returnRate limits the number of holds that end early because a datagram of the client arrives
// after a silence. Above the limit, a client that falls silent repeatedly waits until the hold
// ends.
var returnRate = ratelimit.Rate{PerSecond: .2, Burst: 3}

// returns records the time at which a datagram of the client arrived after a silence.
type returns struct {
	last  time.Time        // newest known return
	first time.Time        // first known return: time 0 of the bucket
	count ratelimit.Bucket // limits returns to returnRate
}

// returned reports whether the client has returned since the last call and returnRate permits that
// its hold ends.
func (r *returns) returned(p Player) bool {
	at := p.Returned()
	if !at.After(r.last) {
		return false
	}
	if r.last = at; r.first.IsZero() {
		r.first = at
	}
	return r.count.Take(at.Sub(r.first), returnRate, 1)
}

type snapshotSender struct {
	world  *World
	player Player
	keyframeLimit

	active   bool
	receipts snapshot.Receipts
	sent     uint64 // number of the newest message, plus 1
	sentAt   time.Time
	age      uint64 // number of ticks between the last snapshot and its baseline
	sharing  uint64 // number of players that share the encoding of the last snapshot
	objects  int    // number of objects in the last snapshot
}

// keyframeLimit limits the keyframes to one client, also if it resubscribes.
type keyframeLimit struct {
	joined time.Time // time of the client's first subscription: time 0 of the bucket
	// bareSince is the time of the first keyframe since the last snapshot with a baseline, or zero.
	bareSince time.Time
	often     bool             // the client exceeds keyframeRate
	lost      ratelimit.Bucket // limits losses of all baselines to keyframeRate
	heldUntil time.Time        // no keyframe is sent before this time
	unacked   uint             // number of holds since the last snapshot with a baseline
	returns
}

func (s *snapshotSender) start(now time.Time) {
	if s.active = true; s.joined.IsZero() {
		s.joined = now
	}
}

func (s *snapshotSender) stop() {
	*s = snapshotSender{world: s.world, player: s.player, keyframeLimit: s.keyframeLimit}
}

// baselines returns the baselines that the client has for the newest snapshot, and reports whether
// they affect the plan.
func (s *snapshotSender) baselines(now time.Time) (c clientBaselines, ok bool) {
	c.step = s.receipts.Step()
	c.full, c.bare = s.receipts.Baselines(s.world.sets.Next()-1, c.step)
	c.waits = now.Sub(s.sentAt) > maxWait
	return c, c.judge(s.player.RTT().Seconds()*s.world.rate, s.world.every()) && s.active
}

func (s *snapshotSender) message(_ *[]byte, _ int, now time.Time) ([]byte, error) {
	w := s.world
	if w.begun == 0 || s.sent == w.sets.Next() {
		return nil, errNothing
	}
	c, _ := s.baselines(now)
	b, ok := w.plan.baseline(c)
	if now.Before(s.heldUntil) && s.returned(s.player) {
		s.heldUntil, s.unacked, s.often = time.Time{}, 0, false
	}
	switch {
	case ok:
	case c.bare != 0 && now.Sub(s.sentAt) < minHold:
		return nil, errNothing // the next tick likely has a baseline for this client
	case now.Before(s.heldUntil):
		return nil, errNothing
	default:
		b = s.receipts.Keyframe()
	}
	if b.Distance == 0 && s.bareSince.IsZero() {
		s.bareSince, s.often = now, !s.lost.Take(now.Sub(s.joined), keyframeRate, 1)
	}
	m := w.encodings.get(w.sets.Next()-1, b, s.often || s.unacked > patience)
	switch {
	case m.err != nil:
		return nil, m.err
	case m.number+1 <= s.sent:
		return nil, errNothing
	}
	s.sent, s.sentAt, s.heldUntil, s.age = m.number+1, now, time.Time{}, m.age
	s.sharing, s.objects = w.encodings.share(m, b), w.newest.Len()
	s.receipts.Sent(m.number, b)
	switch {
	case b.Distance > 0:
		s.unacked, s.bareSince, s.often = 0, time.Time{}, false
	case s.often || m.info.Bytes > transport.MaxPayload || now.Sub(s.bareSince) > min(max(2*minHold, 3*s.player.RTT()), maxBare):
		s.heldUntil = now.Add(min(max(minHold, s.player.RTT()*3/2)<<min(s.unacked, 6), maxHold))
		s.unacked++
	}
	return m.message, nil
}

func (s *snapshotSender) ack(b []byte, _ time.Time) (acked int, tick uint64, err error) {
	a, err := parseAck(b)
	if err != nil {
		return 0, 0, err
	}
	acked, err = s.receipts.Ack(a)
	return acked, s.world.newestAcked(&s.receipts), err
}

func parseAck(b []byte) (snapshot.Ack, error) {
	a, rest, err := snapshot.ParseAck(b)
	if err == nil && len(rest) > 0 {
		err = snapshot.ErrMalformed
	}
	return a, err
}

func (s *snapshotSender) received(dst []uint64) []uint64 { return s.receipts.Received(dst) }

func (s *snapshotSender) count(st *Stats) {
	st.BaselineAge, st.Objects = s.age, s.objects
	st.Sharing += s.sharing
}

// SnapshotDecoder decodes the messages of a world of snapshots at a client.
type SnapshotDecoder struct {
	schema  *snapshot.Schema
	types   []*snapshot.Schema // further types of objects
	initial *snapshot.Set      // known initial state: the client's own, or the last received one
	hash    uint64             // Hash(initial)
	dec     *snapshot.Decoder
	areas   *areas.Decoder // instead of dec, for a world with areas
	ticks   Ticks
	tickHz  float64    // ticks per second
	ages    [][]uint64 // ages of objects in ticks, by object type
}

// NewSnapshotDecoder returns a decoder for a client that knows an initial state.
func NewSnapshotDecoder(s *snapshot.Schema, initial *snapshot.Set) SnapshotDecoder {
	return SnapshotDecoder{schema: s, initial: initial, hash: Hash(initial)}
}

// Next returns a decoder for another offer of the same world, by this or another server.
func (d *SnapshotDecoder) Next() SnapshotDecoder {
	return SnapshotDecoder{schema: d.schema, initial: d.initial, hash: d.hash}
}

// SetTypes sets the object types of a world. Call it before Begin. If own differs from the
// decoder's schema, the decoder discards the initial state that it knows.
func (d *SnapshotDecoder) SetTypes(own *snapshot.Schema, further ...*snapshot.Schema) {
	if d.types = further; own != d.schema {
		d.schema, d.initial, d.hash = own, own.NewSet(), 0
	}
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
	d.dec, d.areas, d.ticks, d.tickHz = nil, nil, Ticks{}, o.TickHz
	if o.Areas {
		d.areas = areas.NewDecoder(append([]*snapshot.Schema{d.schema}, d.types...)...)
		d.ages = make([][]uint64, 1+len(d.types))
	} else {
		d.dec = snapshot.NewDecoder(d.schema, from)
	}
	return nil
}

// Decode decodes a message. The set is valid as long as the set that [snapshot.Decoder.Decode]
// returns.
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
	if tick, err = d.ticks.resolve(seq, distance, difference, d.tickHz); err == nil && d.areas != nil {
		for typ := range d.ages {
			d.ages[typ] = d.ageInTicks(d.ages[typ], seq, d.areas.Ages(typ))
		}
	}
	return tick, set, err
}

// ageInTicks converts the ages of objects of snapshot seq from snapshots to ticks, and stores them
// in dst. It leaves ages of snapshot.Ring and more as they are: the age in ticks is at least as
// high.
func (d *SnapshotDecoder) ageInTicks(dst []uint64, seq uint16, ages []uint64) []uint64 {
	dst = dst[:0]
	for _, age := range ages {
		if age < snapshot.Ring {
			age = d.ticks.age(seq, int(age))
		}
		dst = append(dst, age)
	}
	return dst
}

// Complete reports whether the last decoded message shows all objects of the client's view.
func (d *SnapshotDecoder) Complete() bool { return d.areas == nil || d.areas.Complete() }

// Ages returns the age of each object relative to the last decoded snapshot, in ticks. The objects
// of type 0 are the world's own; those of type n above 0 are the objects of Further(n-1). Ages
// returns an empty slice if no object is older. The slice is valid as long as the objects.
func (d *SnapshotDecoder) Ages(typ int) []uint64 {
	if d.areas == nil {
		return nil
	}
	return d.ages[typ]
}

// Further returns the objects of a further type in the last decoded message. They are valid as long
// as those of Decode.
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

// Memory returns the size of the stored snapshots, in bytes.
func (d *SnapshotDecoder) Memory() int {
	switch {
	case d.areas != nil:
		return d.areas.Memory()
	case d.dec != nil:
		return d.dec.Memory()
	}
	return 0
}
