package areas

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/snapshot"
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

	part     snapshot.Part
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
	g.part.Commit()
	if g.objects = g.part.Len(); g.objects > 0 {
		g.used = n
	}
	g.arrivals = slices.DeleteFunc(g.arrivals, func(a arrival) bool { return a.n+snapshot.Ring <= n })
}

// source returns the group in which object o of g was in snapshot c, and its row there, or nil.
func (g *Group) source(o snapshot.Object, c uint64) (*Group, []int32) {
	for range snapshot.Ring {
		i := len(g.arrivals) - 1
		for i >= 0 && g.arrivals[i].object != o {
			i--
		}
		if i < 0 || g.arrivals[i].n <= c || g.arrivals[i].from == nil {
			return nil, nil
		}
		if g = g.arrivals[i].from; g.part.Has(c) {
			if row := g.part.Row(o, c); row != nil {
				return g, row
			}
		}
	}
	return nil, nil
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

// encode returns the group in snapshot n, the newest, coded against a baseline. It is nil if that
// would be one encoding too many. Safe for concurrent use.
func (g *Group) encode(n uint64, b snapshot.Baseline) *encoding {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.encodeLocked(n, b)
}

func (g *Group) encodeLocked(n uint64, b snapshot.Baseline) *encoding {
	if g.encoded != n {
		g.before, g.encoded, g.count = g.shares, n, 0
		g.alone, g.buf = g.alone[:0], g.buf[:0]
	}
	k := compact(b)
	for i, have := range g.baselines[:g.count] {
		if have == k {
			g.players[i]++
			return g.encodings[i]
		}
	}
	if g.count >= maxEncodings {
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

// compact returns a baseline in 16 bits.
func compact(b snapshot.Baseline) uint16 { return uint16(b.Distance)<<8 | uint16(b.Step) }

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
	delta := b.Distance > 0 && g.part.Has(c)
	if e.same = delta && g.part.Same(c); e.same {
		return
	}
	g.typ.world.Encodings.Add(1)
	if o := g.typ.world.Observer; o != nil {
		o.Encoding()
		defer func() { o.Encoded(len(e.data) + len(e.buf)) }()
	}
	enc, _ := g.typ.encoders.Get().(*snapshot.Encoder)
	if enc == nil {
		enc = new(snapshot.Encoder)
	}
	defer g.typ.encoders.Put(enc)
	if delta && n%checkEvery == 0 {
		h := g.part.Check(c)
		e.data = append(e.data, byte(h), byte(h>>8))
	}
	left := 0
	e.data, left = enc.AppendPart(e.data, &g.part, b)
	if left > 0 {
		g.codeAllEntered(e, enc, n, b)
	}
}

// codeAllEntered codes the objects that are not in the baseline one by one.
func (g *Group) codeAllEntered(e *encoding, enc *snapshot.Encoder, n uint64, b snapshot.Baseline) {
	base, k := g.part.Objects(n-uint64(b.Distance)), 0
	for _, o := range g.part.Objects(n) {
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
	if g.one[0] == nil {
		g.one = [2]*snapshot.Set{g.typ.schema.NewSet(), g.typ.schema.NewSet()}
	}
	now, before := g.one[0], g.one[1]
	now.Reset()
	mustAdd(now, o, g.part.Row(o, n))
	in := entered{id: o.ID, absolute: g.codeAlone(enc, now)}
	c := n - uint64(b.Distance)
	if from, row := g.source(o, c); from != nil {
		before.Reset()
		mustAdd(before, o, row)
		at := len(e.buf)
		e.buf, _ = enc.AppendGroup(e.buf, now, snapshot.Baseline{Distance: b.Distance}, func(int) *snapshot.Set { return before })
		in.from, in.delta = from, e.buf[at:len(e.buf):len(e.buf)]
	}
	e.entered = append(e.entered, in)
}

// codeAlone codes an object without a baseline, once for all encodings of the snapshot.
func (g *Group) codeAlone(enc *snapshot.Encoder, now *snapshot.Set) []byte {
	id := now.Object(0).ID
	if i := slices.IndexFunc(g.alone, func(e entered) bool { return e.id == id }); i >= 0 {
		return g.alone[i].absolute
	}
	at := len(g.buf)
	g.buf, _ = enc.AppendGroup(g.buf, now, snapshot.Baseline{Empty: true}, nil)
	coded := g.buf[at:len(g.buf):len(g.buf)]
	g.alone = append(g.alone, entered{id: id, absolute: coded})
	return coded
}
