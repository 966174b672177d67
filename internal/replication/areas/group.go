package areas

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Group is the objects of one type that are in the same areas. A group is coded as a unit.
type Group struct {
	typ     *Type
	objects int    // number of objects in the newest snapshot
	first   uint64 // number of the group's first snapshot
	used    uint64 // number of the newest snapshot in which the group had objects

	mu        sync.Mutex
	encoded   uint64      // number of the snapshot of encodings and shares
	encodings []*encoding // the first shares.count are valid, the others are free
	shares                // shares of the encodings, in their order

	content  snapshot.Group
	areas    []area.ID // ascending
	key      string    // key in History.keys
	arrivals []arrival // oldest first
	before   shares    // shares of the snapshot in which the group was coded before
	alone    []entered // objects of the newest snapshot, each coded without a baseline
	buf      []byte    // coded bytes of alone
	// Scratch: sets of one object, in the snapshot and in its baseline.
	one [2]*snapshot.Set
}

// shares counts, for one snapshot, the players that receive each encoding of a group. Baselines are
// packed by compact.
type shares struct {
	count     int
	baselines [maxEncodings]uint16
	players   [maxEncodings]int32
}

// of returns the number of players that receive the encoding against a baseline.
func (s *shares) of(baseline uint16) int32 {
	if i := slices.Index(s.baselines[:s.count], baseline); i >= 0 {
		return s.players[i]
	}
	return 0
}

// arrival records that an object entered a group.
type arrival struct {
	n      uint64 // number of the snapshot
	object snapshot.Object
	from   *Group // the object's group in the snapshot before, or nil
}

// commit ends snapshot n.
func (g *Group) commit(n uint64) {
	g.content.Commit()
	if g.objects = g.content.Len(); g.objects > 0 {
		g.used = n
	}
	g.arrivals = slices.DeleteFunc(g.arrivals, func(a arrival) bool { return a.n+snapshot.Ring <= n })
}

// arrived calls f for each object of g that entered it within the last snapshot.Ring snapshots,
// with the number of the snapshot in which it did. n is the number of the newest snapshot.
func (g *Group) arrived(n uint64, f func(o snapshot.Object, at uint64)) {
	for i := range g.arrivals {
		a := &g.arrivals[i]
		if p := g.typ.where(a.object, n); p != nil && p.group == g && p.entered == a.n {
			f(a.object, a.n)
		}
	}
}

// stay is a period in which an object was in one group.
type stay struct {
	group      *Group
	first, end uint64 // numbers of snapshots: from first to end-1; first is 0 if it is unknown
}

// stays calls f for each earlier period in which object o of g was in some group, the newest first,
// until f returns false. It omits periods whose snapshots are all too old to be baselines.
func (g *Group) stays(o snapshot.Object, f func(stay) bool) {
	a := g.arrival(o, math.MaxUint64)
	for a != nil && a.from != nil {
		s := stay{group: a.from, end: a.n}
		if a = a.from.arrival(o, a.n); a != nil {
			s.first = a.n
		}
		if !f(s) {
			return
		}
	}
}

// arrival returns the newest arrival of object o in g in a snapshot older than before, or nil.
func (g *Group) arrival(o snapshot.Object, before uint64) *arrival {
	for i := len(g.arrivals) - 1; i >= 0; i-- {
		if a := &g.arrivals[i]; a.object == o && a.n < before {
			return a
		}
	}
	return nil
}

// source returns the group that object o was in at snapshot c, before it entered g, and the
// object's row in that snapshot. It returns nil if there is none.
func (g *Group) source(o snapshot.Object, c uint64) (from *Group, row []int32) {
	g.stays(o, func(s stay) bool {
		if s.first <= c && c < s.end && s.group.content.Has(c) {
			from, row = s.group, s.group.content.Row(o, c)
		}
		return s.end > c && from == nil
	})
	if row == nil {
		from = nil
	}
	return from, row
}

// encoding is a group of the newest snapshot, coded against a baseline.
type encoding struct {
	baseline snapshot.Baseline
	// coded bytes. In snapshots with a divergence check they begin with the hash of the baseline.
	data    []byte
	same    bool      // nothing changed since the baseline
	entered []entered // objects that are not in the baseline
	buf     []byte    // deltas of entered
	// number of players that received the encoding against this baseline when the group was last
	// coded, or 0
	players int32
}

// entered is an object of a group that is not in the baseline.
type entered struct {
	id       uint16
	from     *Group // group of the object in the baseline's snapshot, or nil
	delta    []byte // coded against that state of the object; nil if from is nil
	absolute []byte // coded without a baseline
}

const (
	// maxEncodings is the maximum number of encodings of a group per snapshot.
	maxEncodings = 8
	// checkEvery is the interval of divergence checks, in snapshots. It divides 2^longBits, because
	// a decoder knows only the low bits of numbers.
	checkEvery = 64
)

// encode returns the group in snapshot n, the newest, coded against baseline b. If b is Empty and
// has a distance, the encoding contains only the objects that were in another group in the
// baseline's snapshot. encode returns nil if the group already has the maximum number of encodings.
// Safe for concurrent use.
func (g *Group) encode(n uint64, b snapshot.Baseline) *encoding {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.encodeLocked(n, b)
}

func (g *Group) encodeLocked(n uint64, b snapshot.Baseline) *encoding {
	g.begin(n)
	k := compact(b)
	for i, have := range g.baselines[:g.count] {
		if have == k {
			g.players[i]++
			return g.encodings[i]
		}
	}
	room := maxEncodings
	if b.Distance > 0 && !slices.Contains(g.baselines[:g.count], 0) {
		room-- // reserved for the encoding without a baseline, which all clients can decode
	}
	if g.count >= room {
		return nil
	}
	if g.count == len(g.encodings) {
		g.encodings = append(g.encodings, new(encoding))
	}
	e := g.encodings[g.count]
	g.baselines[g.count], g.players[g.count] = k, 1
	g.count++
	e.players = g.before.of(k)
	g.code(e, n, b)
	return e
}

// begin discards the encodings if they are not of snapshot n.
func (g *Group) begin(n uint64) {
	if g.encoded != n {
		g.before, g.encoded, g.count = g.shares, n, 0
		g.alone, g.buf = g.alone[:0], g.buf[:0]
	}
}

// absolute returns object o in snapshot n, the newest, coded without a baseline. Safe for
// concurrent use.
func (g *Group) absolute(n uint64, o snapshot.Object) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begin(n)
	enc := g.typ.encoder()
	defer g.typ.encoders.Put(enc)
	return g.codeAlone(enc, o, n)
}

// compact packs a baseline into 16 bits: its distance, whether it is Empty, and its step.
func compact(b snapshot.Baseline) uint16 {
	k := uint16(b.Distance)<<8 | uint16(b.Step)
	if b.Empty && b.Distance > 0 {
		k |= 1 << 7
	}
	return k
}

// encodeAny returns the group coded against one of several baselines without references. Bit d of
// distances stands for a baseline at distance d. encodeAny returns the existing encoding with the
// smallest distance. If there is none, it encodes against the baseline with the smallest distance,
// or returns nil if the group already has the maximum number of encodings.
func (g *Group) encodeAny(n, distances uint64) *encoding {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.encoded == n {
		best := -1
		for i, k := range g.baselines[:g.count] {
			if d := k >> 8; k&0xff == 0 && d > 0 && distances>>d&1 != 0 && (best < 0 || k < g.baselines[best]) {
				best = i
			}
		}
		if best >= 0 {
			g.players[best]++
			return g.encodings[best]
		}
	}
	return g.encodeLocked(n, snapshot.Baseline{Distance: bits.TrailingZeros64(distances)})
}

// code encodes the group in snapshot n against b and stores the result in e.
func (g *Group) code(e *encoding, n uint64, b snapshot.Baseline) {
	e.baseline, e.same, e.entered, e.data, e.buf = b, false, e.entered[:0], e.data[:0], e.buf[:0]
	c := n - uint64(b.Distance)
	delta := b.Distance > 0 && !b.Empty && g.content.Has(c)
	if e.same = delta && g.content.Same(c); e.same {
		return
	}
	g.typ.world.Encodings.Add(1)
	if o := g.typ.world.Observer; o != nil {
		o.Encoding()
		defer func() { o.Encoded(len(e.data) + len(e.buf)) }()
	}
	enc := g.typ.encoder()
	defer g.typ.encoders.Put(enc)
	if b.Distance > 0 && b.Empty {
		g.arrived(n, func(o snapshot.Object, _ uint64) {
			if from, _ := g.source(o, c); from != nil {
				g.codeEntered(e, enc, o, n, b)
			}
		})
		return
	}
	if delta && n%checkEvery == 0 {
		h := g.content.Check(c)
		e.data = append(e.data, byte(h), byte(h>>8))
	}
	left := 0
	e.data, left = enc.AppendGroup(e.data, &g.content, b)
	if left > 0 {
		g.codeAllEntered(e, enc, n, b)
	}
}

// codeAllEntered codes each object that is not in the baseline.
func (g *Group) codeAllEntered(e *encoding, enc *snapshot.Encoder, n uint64, b snapshot.Baseline) {
	base, k := g.content.Objects(n-uint64(b.Distance)), 0
	for _, o := range g.content.Objects(n) {
		for k < len(base) && base[k].ID < o.ID {
			k++
		}
		if k == len(base) || base[k] != o {
			g.codeEntered(e, enc, o, n, b)
		}
	}
}

func mustAdd(s *snapshot.Set, o snapshot.Object, row []int32) {
	if err := s.Add(o, row); err != nil {
		panic(err) // the object was valid in another set
	}
}

// codeEntered codes an object without a baseline, and, if it was in another group in the baseline's
// snapshot, also against its state there.
func (g *Group) codeEntered(e *encoding, enc *snapshot.Encoder, o snapshot.Object, n uint64, b snapshot.Baseline) {
	in := entered{id: o.ID, absolute: g.codeAlone(enc, o, n)}
	now, before := g.one[0], g.one[1]
	now.Reset()
	mustAdd(now, o, g.content.Row(o, n))
	c := n - uint64(b.Distance)
	if from, row := g.source(o, c); from != nil {
		before.Reset()
		mustAdd(before, o, row)
		at := len(e.buf)
		e.buf, _ = enc.AppendObjects(e.buf, now, snapshot.Baseline{Distance: b.Distance}, func(int) *snapshot.Set { return before })
		in.from, in.delta = from, e.buf[at:len(e.buf):len(e.buf)]
	}
	e.entered = append(e.entered, in)
}

// codeAlone codes an object without a baseline. All encodings of a snapshot share the result.
func (g *Group) codeAlone(enc *snapshot.Encoder, o snapshot.Object, n uint64) []byte {
	if i := slices.IndexFunc(g.alone, func(e entered) bool { return e.id == o.ID }); i >= 0 {
		return g.alone[i].absolute
	}
	if g.one[0] == nil {
		g.one = [2]*snapshot.Set{g.typ.schema.NewSet(), g.typ.schema.NewSet()}
	}
	now := g.one[0]
	now.Reset()
	mustAdd(now, o, g.content.Row(o, n))
	at := len(g.buf)
	g.buf, _ = enc.AppendObjects(g.buf, now, snapshot.Baseline{Empty: true}, nil)
	coded := g.buf[at:len(g.buf):len(g.buf)]
	g.alone = append(g.alone, entered{id: o.ID, absolute: coded})
	return coded
}
