package areas

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Limits limits the messages to one client.
type Limits struct {
	// Enter is the maximum number of bytes per message for keyframes of groups that enter the view.
	// The first keyframe of a message may be larger. Keyframes that are sent again are not limited.
	Enter int
	// Hold is the number of snapshots after which an unacked keyframe is sent again.
	Hold int
}

// Builder builds messages. The zero value is ready. Not safe for concurrent use.
type Builder struct {
	bits     bitio.Writer
	parts    []*encoding // groups whose coded bytes follow the directory
	entering []int       // slots of visible groups that the baseline's message does not contain
	objects  []int       // number of visible objects by type
	found    []entered   // objects that moved has returned for this message
	own      []*encoding // encodings for this client alone; the first used are in use
	used     int
	moving   []moving // visible objects whose groups are not in the message
}

// moving contains objects of one type whose groups are not in the message, at most maxEntered.
type moving struct {
	typ *Type
	*encoding
}

// message is a message that is being built.
type message struct {
	*Builder
	view   *View
	n      uint64 // number of the snapshot
	from   uint64 // View.shift(n)
	base   snapshot.Baseline
	limits Limits
	known  uint64 // bit d is set if the client has the message at distance d
	acked  uint64 // bit d is set if the client has acked it, but may have discarded it since
	groups int    // number of groups that the message shows
	keys   int    // number of bytes of keyframes
	resent bool   // the message contains a keyframe that was sent before
	seen   int    // number of objects in the view
	wait   int    // number of objects in the view that are above the maximum
	enters int    // number of objects in the view for which no message had room yet
}

// Append appends the message of the newest snapshot for one client to dst and returns the extended
// slice. The message is coded against base, which the client has. A distance of 0 means no
// baseline.
func (b *Builder) Append(dst []byte, w *History, v *View, base snapshot.Baseline, limits Limits) []byte {
	v.update(w)
	n := w.next - 1
	m := message{Builder: b, view: v, n: n, from: v.shift(n), base: base, limits: limits}
	_, m.known = v.Receipts.Baselines(n, 1)
	m.acked = v.Receipts.Acked(n)
	b.parts, b.entering, b.found, b.moving, b.used = b.parts[:0], b.entering[:0], b.found[:0], b.moving[:0], 0
	b.bits.Reset(appendHeader(dst, n, base.Distance))
	b.objects = append(b.objects[:0], make([]int, len(w.types))...)
	for i := range v.members {
		mem := &v.members[i]
		shows := mem.sees && m.fits(mem.group)
		switch {
		case mem.group == nil:
		case base.Distance > 0 && m.has(i)>>base.Distance&1 != 0:
			m.appendMember(i, shows)
		case shows && mem.group.objects > 0:
			b.entering = append(b.entering, i)
		}
	}
	slices.SortStableFunc(b.entering, func(i, k int) int { return cmp.Compare(v.members[i].rank, v.members[k].rank) })
	for _, i := range b.entering {
		m.appendEntering(i)
	}
	for _, o := range b.moving[:min(len(b.moving), maxMembers-m.groups)] {
		m.appendMoving(o)
	}
	if m.enters > 0 {
		b.bits.WriteBits(entryShown, entryBits)
		writeCount(&b.bits, 0, slotBits)
		b.bits.WriteBits(distancePartial, distanceBits)
	}
	b.bits.WriteBits(entryEnd, entryBits)
	b.bits.Align()
	dst = b.bits.Bytes()
	for _, e := range b.parts {
		dst = m.appendPart(dst, e)
	}
	if m.resent {
		v.resends = min(v.resends+1, maxResends)
	}
	m.wait += m.enters
	v.Counts = Counts{Objects: m.seen - m.wait, Waiting: m.wait, Sharing: b.sharing()}
	m.keepMoving()
	v.sent(n, base)
	return dst
}

// sharing returns the mean number of players that share an encoding of the message, at least 1.
func (b *Builder) sharing() uint64 {
	sum, n := 0, max(1, len(b.parts))
	for _, e := range b.parts {
		sum += int(e.players)
	}
	return uint64(max(1, (sum+n/2)/n))
}

// fits counts the objects of a group and reports whether the client can show them in addition to
// those counted before.
func (m *message) fits(g *Group) bool {
	size := g.objects
	m.seen += size
	n := m.objects[g.typ.number] + size
	if n > MaxObjects {
		m.wait += size
		return false
	}
	m.objects[g.typ.number] = n
	return true
}

// has returns a mask of the messages that contained the group in slot i. Bit d stands for the
// message at distance d.
func (m *message) has(i int) uint64 { return m.view.members[i].had << m.from }

// appendMember appends the code of a member of the baseline's message. If shows is false, the
// client no longer shows the member.
func (m *message) appendMember(i int, shows bool) {
	mem := &m.view.members[i]
	if !shows {
		m.bits.WriteBits(memberLeft, 3)
		return
	}
	b := m.base
	m.groups++
	if !hasReferences(m.has(i)&m.acked, b) {
		b.Step = 0
	}
	switch e := mem.group.encode(m.n, b); {
	case e == nil:
		m.bits.WriteBits(memberStale, 3)
		m.showMoved(mem.group, m.moved(mem.group))
		return
	case e.same:
		m.bits.WriteBits(memberSame, 2)
	default:
		m.bits.WriteBits(memberChanged, 1)
		m.add(e)
	}
	mem.now, mem.safe = true, true
}

// hasReferences reports whether the client has all references of a baseline. Bit d of distances is
// set if the client has the group at distance d.
func hasReferences(distances uint64, b snapshot.Baseline) bool {
	for _, lag := range snapshot.References {
		if d := b.Distance + lag*b.Step; d >= snapshot.Ring || distances>>d&1 == 0 {
			return false
		}
	}
	return true
}

// appendEntering appends an entry for a visible group that the baseline's message does not contain.
// If the limits permit no keyframe of the group, the entry shows the objects that the client may
// already have.
func (m *message) appendEntering(i int) {
	mem := &m.view.members[i]
	has := m.has(i)
	newest := bits.TrailingZeros64(has)
	known := has & m.known
	if known != 0 {
		if e := mem.group.encodeAny(m.n, known); e != nil {
			m.refer(entryResumed, i, e.baseline.Distance, e)
			mem.now, mem.safe = true, true
			return
		}
	}
	moved := m.moved(mem.group)
	switch {
	case len(moved) == mem.group.objects:
		m.appendKeyframe(i, m.encodingOf(moved))
		return
	case known != 0:
		m.refer(entryShown, i, bits.TrailingZeros64(known), nil)
		m.showMoved(mem.group, moved)
		return
	}
	if m.view.retry || newest > min(m.limits.Hold<<m.view.resends, maxDistance) {
		e := mem.group.encode(m.n, snapshot.Baseline{Empty: true})
		if e != nil && (has != 0 || m.keys == 0 || m.keys+len(e.data) <= m.limits.Enter) {
			m.keys += len(e.data)
			m.resent = m.resent || has != 0
			m.appendKeyframe(i, e)
			return
		}
	}
	m.showMoved(mem.group, moved)
	if newest > maxDistance {
		m.enters += mem.group.objects - len(moved)
		return
	}
	var e *encoding // stays nil while the client seems to receive nothing
	if m.view.resends == 0 {
		e = mem.group.encodeAny(m.n, 1<<newest)
	}
	m.refer(entryShown, i, newest, e)
}

// appendKeyframe appends an entry for a group that is coded without an earlier state of the group.
func (m *message) appendKeyframe(i int, e *encoding) {
	mem := &m.view.members[i]
	m.groups++
	m.bits.WriteBits(entryKeyframe, entryBits)
	writeCount(&m.bits, uint64(i), slotBits)
	writeCount(&m.bits, uint64(mem.group.typ.number), typeBits)
	m.add(e)
	mem.now = true
}

// moved returns the objects of group g that the client may already show. The client may have been
// shown them in another group, or they entered g after a message that contained g. The client can
// decode the objects with only the message's baseline. They are valid until the message is
// complete.
func (m *message) moved(g *Group) []entered {
	at := len(m.found)
	i := slices.IndexFunc(m.view.members, func(m member) bool { return m.group == g })
	g.arrived(m.n, func(o snapshot.Object, n uint64) {
		if was, known := m.shown(g, o); was || m.has(i)>>(m.n-n+1) != 0 {
			m.find(g, o, known)
		}
	})
	deltas := len(m.found)
	for _, x := range m.view.moving {
		if p := x.typ.where(x.object, m.n); p != nil && p.group == g &&
			!slices.ContainsFunc(m.found[at:deltas], func(e entered) bool { return e.id == x.object.ID }) {
			m.find(g, x.object, false)
		}
	}
	return m.found[at:len(m.found):len(m.found)]
}

// shown reports in was whether the client may have been shown object o of group g in another group,
// and in known whether the message's baseline contains o in that group.
func (m *message) shown(g *Group, o snapshot.Object) (was, known bool) {
	base := m.n - uint64(m.base.Distance)
	g.stays(o, func(s stay) bool {
		i := slices.IndexFunc(m.view.members, func(m member) bool { return m.group == s.group })
		if i >= 0 {
			has := m.has(i)
			// Later messages may also have shown changes of the group.
			was = was || has>>(m.n-s.end+1) != 0
			known = known || m.base.Distance > 0 && s.first <= base && base < s.end && (has&m.known)>>m.base.Distance&1 != 0
		}
		return true
	})
	return was, known
}

// find appends object o of group g to found. known reports whether the message's baseline contains
// o in another group.
func (m *message) find(g *Group, o snapshot.Object, known bool) {
	if known {
		if e := g.encode(m.n, snapshot.Baseline{Distance: m.base.Distance, Empty: true}); e != nil {
			i := slices.IndexFunc(e.entered, func(e entered) bool { return e.id == o.ID })
			m.found = append(m.found, e.entered[i])
			return
		}
	}
	m.found = append(m.found, entered{id: o.ID, absolute: g.absolute(m.n, o)})
}

// encodingOf returns an encoding of the objects for this client alone.
func (m *message) encodingOf(objects []entered) *encoding {
	if m.used == len(m.own) {
		m.own = append(m.own, new(encoding))
	}
	e := m.own[m.used]
	m.used++
	*e = encoding{baseline: m.base, entered: append(e.entered[:0], objects...), players: 1}
	return e
}

// showMoved shows objects of group g, which the message does not contain. It omits objects above
// MaxObjects.
func (m *message) showMoved(g *Group, objects []entered) {
	if objects = objects[:min(len(objects), MaxObjects-m.objects[g.typ.number])]; len(objects) == 0 {
		return
	}
	m.objects[g.typ.number] += len(objects)
	for _, o := range m.moving {
		if o.typ == g.typ && len(o.entered)+len(objects) <= maxEntered {
			o.entered = append(o.entered, objects...)
			return
		}
	}
	m.moving = append(m.moving, moving{g.typ, m.encodingOf(objects)})
}

// appendMoving appends an entry for objects whose groups are not in the message.
func (m *message) appendMoving(o moving) {
	m.bits.WriteBits(entryShown, entryBits)
	writeCount(&m.bits, 0, slotBits)
	m.bits.WriteBits(0, distanceBits)
	writeCount(&m.bits, uint64(o.typ.number), typeBits)
	m.add(o.encoding)
}

// keepMoving updates View.moving, the objects that later messages must show although the client may
// not have their groups.
func (m *message) keepMoving() {
	v := m.view
	for _, o := range m.moving {
		for _, in := range o.entered {
			x := movingObject{o.typ, snapshot.Object{ID: in.id, Generation: o.typ.places[in.id].generation}}
			if !slices.Contains(v.moving, x) {
				v.moving = append(v.moving, x)
			}
		}
	}
	v.moving = slices.DeleteFunc(v.moving, func(x movingObject) bool {
		p := x.typ.where(x.object, m.n)
		return p == nil || !slices.ContainsFunc(v.members, func(m member) bool { return m.group == p.group && m.sees && !m.safe })
	})
}

// refer appends an entry for a member that is coded against the message at a distance, which may
// differ from the baseline's. If e is nil, the member is shown as it was in that message.
func (m *message) refer(entry uint64, slot, distance int, e *encoding) {
	m.groups++
	m.bits.WriteBits(entry, entryBits)
	writeCount(&m.bits, uint64(slot), slotBits)
	m.bits.WriteBits(uint64(distance), distanceBits)
	if e == nil || e.same {
		m.bits.WriteBits(0, 1)
		return
	}
	m.bits.WriteBits(1, 1)
	m.add(e)
}

// add appends the size of a group's coded bytes to the directory. The bytes follow the directory.
func (m *message) add(e *encoding) {
	writeCount(&m.bits, uint64(len(e.data)), sizeBits)
	m.bits.WriteBits(bit(len(e.entered) > 0), 1)
	m.parts = append(m.parts, e)
}

// appendPart appends the coded bytes of a group, and then the objects that entered it.
func (m *message) appendPart(dst []byte, e *encoding) []byte {
	dst = append(dst, e.data...)
	if len(e.entered) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.entered)))
	for i := range e.entered {
		in := &e.entered[i]
		if in.from == nil || !m.knew(in.from, e.baseline.Distance) {
			dst = append(binary.AppendUvarint(dst, uint64(len(in.absolute))<<1), in.absolute...)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(in.delta))<<1|1)
		dst = append(binary.LittleEndian.AppendUint16(dst, in.id), in.delta...)
	}
	return dst
}

// knew reports whether the client has the message at a distance and the message contains group g.
func (m *message) knew(g *Group, distance int) bool {
	i := slices.IndexFunc(m.view.members, func(m member) bool { return m.group == g })
	return i >= 0 && (m.has(i)&m.known)>>distance&1 != 0
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
