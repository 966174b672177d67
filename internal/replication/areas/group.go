package areas

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Group is objects of one type that are in the same areas, and are coded together.
type Group struct {
	typ     *Type
	objects int    // in the newest snapshot
	first   uint64 // number of the first snapshot
	used    uint64 // the newest snapshot in which it had objects

	mu        sync.Mutex
	encoded   uint64      // number of the snapshot of the encodings
	encodings []*encoding // of the newest snapshot
	shares                // of that snapshot: as many as there are encodings

	content  snapshot.Group
	areas    []area.ID // ascending
	key      string
	arrivals []arrival        // oldest first
	before   shares           // of the snapshot in which the group was last coded before
	alone    []entered        // objects of the newest snapshot that are coded without a baseline
	buf      []byte           // of alone
	one      [2]*snapshot.Set // scratch: one object, in the snapshot and in its baseline
}

// shares are how many players got each encoding of a group, by baseline.
type shares struct {
	count     int
	baselines [maxEncodings]uint16
	players   [maxEncodings]int32
}

// of returns the number of players who got the encoding with a baseline.
func (s *shares) of(baseline uint16) int32 {
	if i := slices.Index(s.baselines[:s.count], baseline); i >= 0 {
		return s.players[i]
	}
	return 0
}

// arrival is an object that entered a group.
type arrival struct {
	n      uint64 // number of the snapshot
	object snapshot.Object
	from   *Group // nil if it was in no group
}

// commit ends snapshot n.
func (g *Group) commit(n uint64) {
	g.content.Commit()
	if g.objects = g.content.Len(); g.objects > 0 {
		g.used = n
	}
	g.arrivals = slices.DeleteFunc(g.arrivals, func(a arrival) bool { return a.n+snapshot.Ring <= n })
}

// arrived calls f for each object of g that entered it within the last snapshots, with the number
// of the snapshot. n is the newest one.
func (g *Group) arrived(n uint64, f func(o snapshot.Object, at uint64)) {
	for i := range g.arrivals {
		a := &g.arrivals[i]
		if p := g.typ.where(a.object, n); p != nil && p.group == g && p.entered == a.n {
			f(a.object, a.n)
		}
	}
}

// stay is in which group an object was in the snapshots from first to before end.
type stay struct {
	group      *Group
	first, end uint64
}

// stays calls f for the stays of object o of g in groups before its last one, the newest first,
// until f returns false. Those of which all snapshots are too old to be baselines are left out.
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

// arrival returns the newest arrival of an object in g before a snapshot, or nil.
func (g *Group) arrival(o snapshot.Object, before uint64) *arrival {
	for i := len(g.arrivals) - 1; i >= 0; i-- {
		if a := &g.arrivals[i]; a.object == o && a.n < before {
			return a
		}
	}
	return nil
}

// source returns the group in which object o of g was in snapshot c, and its row there, or nil.
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
	data     []byte // with the hash of the baseline in front, in snapshots that are checked
	same     bool   // nothing changed since the baseline
	entered  []entered
	buf      []byte // of entered
	players  int32  // who got the encoding with this baseline in the snapshot before, or 0
}

// entered is an object that was not in the baseline.
type entered struct {
	id       uint16
	from     *Group // where it was in the baseline's snapshot, or nil
	delta    []byte // relative to that, or nil
	absolute []byte
}

const (
	// maxEncodings is the maximum number of encodings of a group and snapshot.
	maxEncodings = 8
	// checkEvery is the number of snapshots per divergence check. It divides 2^longBits, because a
	// decoder knows only the low bits of numbers.
	checkEvery = 64
)

// encode returns the group in snapshot n, the newest, coded against a baseline. With a distance and
// Empty, the encoding has only the objects that were in another group in the baseline's snapshot.
// It is nil if that would be one encoding too many. Safe for concurrent use.
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
		room-- // for the one without a baseline, which all clients can decode
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

// begin discards the encodings of another snapshot than n.
func (g *Group) begin(n uint64) {
	if g.encoded != n {
		g.before, g.encoded, g.count = g.shares, n, 0
		g.alone, g.buf = g.alone[:0], g.buf[:0]
	}
}

// absolute returns an object of the group in snapshot n, the newest, coded without a baseline. Safe
// for concurrent use.
func (g *Group) absolute(n uint64, o snapshot.Object) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begin(n)
	enc := g.typ.encoder()
	defer g.typ.encoders.Put(enc)
	return g.codeAlone(enc, o, n)
}

// compact returns a baseline in 16 bits.
func compact(b snapshot.Baseline) uint16 {
	k := uint16(b.Distance)<<8 | uint16(b.Step)
	if b.Empty && b.Distance > 0 {
		k |= 1 << 7
	}
	return k
}

// encodeAny returns the group coded against one of several baselines without references, whose
// distances are the bits of a mask: one that exists, else the newest. It is nil if that would be
// one encoding too many.
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

// code codes the group into e.
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

// codeAllEntered codes the objects that are not in the baseline one by one.
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
		panic(err) // it was in a set before
	}
}

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

// codeAlone codes an object without a baseline, once for all encodings of the snapshot.
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
