package areas

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Limits are those of the messages to one client.
type Limits struct {
	// Enter is the number of bytes per message for keyframes of groups that enter the view. The
	// first one of a message may be larger, and those that are sent again do not wait.
	Enter int
	// Hold is the number of snapshots after which an unacked keyframe is sent again.
	Hold int
}

// Builder builds messages. The zero value is ready. Not safe for concurrent use.
type Builder struct {
	bits     bitio.Writer
	parts    []*encoding
	entering []int       // slots
	objects  []int       // visible, by type
	found    []entered   // objects that were shown in other groups
	own      []*encoding // of these, for this client; the first used are in use
	used     int
	moving   []moving // those that are in no group of the message
}

// moving is objects of a type, at most maxEntered.
type moving struct {
	typ *Type
	*encoding
}

// message is a message that is being built.
type message struct {
	*Builder
	view   *View
	n      uint64
	from   uint64 // shift of masks
	base   snapshot.Baseline
	limits Limits
	known  uint64 // distances of messages that the client has
	acked  uint64 // and of those that are still references of their groups
	groups int    // that the client is shown
	keys   int    // bytes of keyframes
	resent bool
	seen   int // objects in the view
	wait   int // of these, not shown yet
	enters int // of these, those for which there was no room in a message yet
}

// Append appends the message of the newest snapshot to one client, coded against a message that the
// client has, and returns the extended slice. A distance of 0 means that it has none.
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

// sharing returns the mean number of players who share an encoding of the message.
func (b *Builder) sharing() uint64 {
	sum, n := 0, max(1, len(b.parts))
	for _, e := range b.parts {
		sum += int(e.players)
	}
	return uint64(max(1, (sum+n/2)/n))
}

// fits reports whether the client can show a group besides those before it, and counts its objects.
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

// has returns the distances of the messages that contained a member.
func (m *message) has(i int) uint64 { return m.view.members[i].had << m.from }

// appendMember appends a member of the baseline's message, or that it is not shown any more.
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

// hasReferences reports whether the messages at these distances have all references of a baseline.
func hasReferences(distances uint64, b snapshot.Baseline) bool {
	for _, lag := range snapshot.References {
		if d := b.Distance + lag*b.Step; d >= snapshot.Ring || distances>>d&1 == 0 {
			return false
		}
	}
	return true
}

// appendEntering appends a member that the baseline's message does not contain, if there is room.
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
	var e *encoding // none while the client seems not to receive anything
	if m.view.resends == 0 {
		e = mem.group.encodeAny(m.n, 1<<newest)
	}
	m.refer(entryShown, i, newest, e)
}

// appendKeyframe appends a member that is coded without a set of its own as the baseline.
func (m *message) appendKeyframe(i int, e *encoding) {
	mem := &m.view.members[i]
	m.groups++
	m.bits.WriteBits(entryKeyframe, entryBits)
	writeCount(&m.bits, uint64(i), slotBits)
	writeCount(&m.bits, uint64(mem.group.typ.number), typeBits)
	m.add(e)
	mem.now = true
}

// moved returns the objects of a group that the client may have been shown since they left other
// groups or entered this one, coded such that the client can decode them whatever it has received
// since the message's baseline. They are valid until the message is complete.
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

// shown reports whether the client may have been shown an object of a group in another group, and
// whether the message's baseline has it there.
func (m *message) shown(g *Group, o snapshot.Object) (was, known bool) {
	base := m.n - uint64(m.base.Distance)
	g.stays(o, func(s stay) bool {
		i := slices.IndexFunc(m.view.members, func(m member) bool { return m.group == s.group })
		if i >= 0 {
			has := m.has(i)
			was = was || has>>(m.n-s.end+1) != 0 // a later message may have shown changes since
			known = known || m.base.Distance > 0 && s.first <= base && base < s.end && (has&m.known)>>m.base.Distance&1 != 0
		}
		return true
	})
	return was, known
}

// find adds an object. known means that the message's baseline has it.
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

// encodingOf returns an encoding of objects for this client alone.
func (m *message) encodingOf(objects []entered) *encoding {
	if m.used == len(m.own) {
		m.own = append(m.own, new(encoding))
	}
	e := m.own[m.used]
	m.used++
	*e = encoding{baseline: m.base, entered: append(e.entered[:0], objects...), players: 1}
	return e
}

// showMoved shows objects of a group that the client may not have, as far as it can show them.
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

// appendMoving appends objects that are in no group of the message.
func (m *message) appendMoving(o moving) {
	m.bits.WriteBits(entryShown, entryBits)
	writeCount(&m.bits, 0, slotBits)
	m.bits.WriteBits(0, distanceBits)
	writeCount(&m.bits, uint64(o.typ.number), typeBits)
	m.add(o.encoding)
}

// keepMoving keeps which objects later messages must show although the client may not have their
// groups.
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

// refer appends a member, coded against another message than the baseline's.
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

// add adds the coded bytes of a group, which follow the directory.
func (m *message) add(e *encoding) {
	writeCount(&m.bits, uint64(len(e.data)), sizeBits)
	m.bits.WriteBits(bit(len(e.entered) > 0), 1)
	m.parts = append(m.parts, e)
}

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

// knew reports whether the client has a message at some distance that contains a group.
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
