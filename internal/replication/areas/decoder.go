package areas

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/ringcache"
)

const (
	// MaxObjects is the maximum number of objects of each type in a view.
	MaxObjects = snapshot.MaxObjects
	// maxMembers is the maximum number of groups that a message shows.
	maxMembers = 2048
	// noSlot is the slot of objects whose groups are not in the message.
	noSlot = maxMembers
	// keepMessages is the number of messages before the newest baseline that the decoder stores
	// while it does not know the step of references.
	keepMessages = 28
	// maxGroup is the maximum number of objects of a group: maxArrivals objects may enter a group
	// of groupSize objects in one message.
	maxGroup = groupSize + maxArrivals
	// maxMalformed is the number of consecutive malformed messages after which the decoder requests
	// a message without a baseline, because the server probably uses other baselines.
	maxMalformed = 8
)

// Decoder decodes the messages to one client, which may be lost, duplicated, reordered or forged.
// Not safe for concurrent use.
type Decoder struct {
	types    []*typeDecoder
	messages *ringcache.Ring[received] // decoded messages by number
	decoded  seq.Window                // numbers of decoded messages
	next     uint64                    // number of the newest message, plus 1
	floor    uint64                    // number of the newest message that was a baseline
	last     []receivedMember          // groups that the newest message shows, by slot

	epoch     uint8  // epoch of acks; each reset increases it
	waiting   bool   // a reset was requested; the next message without a baseline ends it
	first     uint64 // number of the message that ended the last reset
	malformed int    // consecutive malformed messages

	// The message that is being decoded:
	n        uint64 // number of the message
	distance uint64 // distance to the baseline, or 0
	bits     bitio.Reader
	members  []receivedMember // groups to which later messages may refer
	// All groups that the message shows; each is a reference to its set.
	visible []receivedMember
	parts   []receivedPart // groups whose coded bytes follow the directory
	objects int            // number of objects in visible
	step    uint64         // maximum step of the groups' references, or 0 without references
	partial bool           // some objects of the view are missing
}

// typeDecoder decodes the objects of one type.
type typeDecoder struct {
	groups           *snapshot.GroupDecoder
	group            *snapshot.Set // scratch: the decoded group
	one              *snapshot.Set // scratch: an object that entered the group
	free             freeSets
	shown            *snapshot.Set // objects that the last decoded message shows
	merged           *snapshot.Set // objects of the message that is being decoded
	order            []uint64      // scratch of Decoder.order
	ages, mergedAges ages          // ages of shown and of merged
}

// ages contains the age of each object of a set, in snapshots before the message.
type ages struct {
	of  []uint64 // by index of the object
	any bool     // some age is above 0
}

// received is a decoded message.
type received struct{ members []receivedMember }

// receivedMember is a group in a message.
type receivedMember struct {
	set  *countedSet
	slot uint16
	age  uint64 // number of snapshots by which the state of the group is older than the message
}

// receivedPart is a group whose coded bytes follow the directory.
type receivedPart struct {
	slot     uint16
	typ      *typeDecoder
	distance uint64 // distance to the baseline, 0 without one
	size     int
	entered  bool // the objects that entered the group follow
	counted  bool // later messages may refer to the group
	skipped  bool // the baseline is missing, so the bytes are skipped
}

// NewDecoder returns a decoder for a world with these object types.
func NewDecoder(types ...*snapshot.Schema) *Decoder {
	d := &Decoder{messages: ringcache.New[received](snapshot.Ring)}
	for _, s := range types {
		d.types = append(d.types, &typeDecoder{
			groups: s.NewGroupDecoder(), group: s.NewSet(), one: s.NewSet(), shown: s.NewSet(), merged: s.NewSet(),
		})
	}
	return d
}

// Decode decodes a message. [Decoder.Shown] returns the visible objects until the next call. Decode
// returns the low 16 bits of the message's number, and the distance to its baseline, or 0 without a
// baseline. Any input is safe. An error wraps one of [snapshot.ErrLate],
// [snapshot.ErrBaselineMissing], [snapshot.ErrDesync] and [snapshot.ErrMalformed]; the message is
// then not acked.
func (d *Decoder) Decode(b []byte) (number uint16, distance int, err error) {
	d.bits.Reset(b)
	low, width, back, err := parseHeader(&d.bits)
	if err != nil {
		return 0, 0, err
	}
	if width == longBits {
		d.n = seq.Unwrap(low, width, d.next, 4*snapshot.Ring)
	} else {
		d.n = seq.Nearest(low, width, d.next)
	}
	d.distance = back
	if err = d.check(); err == nil {
		if err = d.decode(); err != nil {
			d.drop()
			d.count(err)
		} else {
			d.accept()
		}
	}
	return uint16(d.n), int(back), err
}

// check returns an error if the message is late, was decoded before, or lacks its baseline.
func (d *Decoder) check() error {
	switch {
	case d.n+snapshot.Ring < d.next || d.decoded.Has(d.n):
		return fmt.Errorf("%w: snapshot %d", snapshot.ErrLate, uint16(d.n))
	case d.distance == 0 || d.at(d.distance) != nil:
		return nil
	case d.n-d.distance < d.floor || d.n < d.first:
		return fmt.Errorf("%w: snapshot %d, %d after its baseline", snapshot.ErrLate, uint16(d.n), d.distance)
	}
	return d.missing(d.distance)
}

// Shown returns the objects of one type that the last decoded message shows. They are valid until
// Decode decodes another message.
func (d *Decoder) Shown(typ int) *snapshot.Set { return d.types[typ].shown }

// Complete reports whether the last decoded message shows all objects of the client's view: the
// server has sent all of them, and each group of the message has arrived. The result is valid until
// the next call of Decode.
func (d *Decoder) Complete() bool { return !d.partial }

// Ages returns the age of each object of Shown, in snapshots before the message. It returns nil if
// no object is older. The slice is valid as long as the set that Shown returns.
func (d *Decoder) Ages(typ int) []uint64 {
	if a := &d.types[typ].ages; a.any {
		return a.of
	}
	return nil
}

// at returns the message at a distance before the one that is being decoded, or nil.
func (d *Decoder) at(distance uint64) *received {
	if distance > d.n {
		return nil
	}
	return d.messages.Get(d.n - distance)
}

// set returns the set of a slot in the message at a distance, or nil.
func (d *Decoder) set(distance uint64, slot uint16) *countedSet {
	return setOf(d.at(distance), slot)
}

func compareSlot(m receivedMember, slot uint16) int { return cmp.Compare(m.slot, slot) }

func sortBySlot(members []receivedMember) {
	slices.SortStableFunc(members, func(a, b receivedMember) int { return cmp.Compare(a.slot, b.slot) })
}

// setOf returns the set of a slot in a message, or nil.
func setOf(m *received, slot uint16) *countedSet {
	if m == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(m.members, slot, compareSlot)
	if !ok {
		return nil
	}
	return m.members[i].set
}

// keepBefore shows the group that the newest message shows in a slot. The result is partial if the
// message that is being decoded is not newer, or is so much newer that the slot may have another
// group.
func (d *Decoder) keepBefore(slot uint16) error {
	i, ok := slices.BinarySearchFunc(d.last, slot, compareSlot)
	if !ok || d.n < d.next || d.n-(d.next-1) > maxDistance {
		d.partial = true
		return nil
	}
	m := d.last[i]
	m.age += d.n - (d.next - 1)
	return d.keep(m, false)
}

// missing returns the error for a message whose baseline or reference at a distance is missing, and
// requests a reset unless the message is late.
func (d *Decoder) missing(distance uint64) error {
	if d.n+1 < d.next { // a newer message may have made the decoder discard the baseline
		return fmt.Errorf("%w: snapshot %d", snapshot.ErrLate, uint16(d.n))
	}
	d.requestReset()
	return fmt.Errorf("%w: snapshot %d refers to the one %d before it", snapshot.ErrBaselineMissing, uint16(d.n), distance)
}

// requestReset begins an epoch of acks. The first message that the server sends in it has no
// baseline.
func (d *Decoder) requestReset() {
	if !d.waiting {
		d.epoch++
		d.waiting = true
	}
}

var errDirectory = fmt.Errorf("%w: directory", snapshot.ErrMalformed)

// decode decodes the directory and the groups.
func (d *Decoder) decode() error {
	d.release(d.visible)
	d.members, d.visible, d.parts, d.objects, d.step, d.partial = d.members[:0], d.visible[:0], d.parts[:0], 0, 0, false
	if d.distance > 0 {
		for _, m := range d.at(d.distance).members {
			if err := d.member(m); err != nil {
				return err
			}
		}
	}
	for {
		entry := d.bits.ReadBits(entryBits)
		if d.bits.Err() != nil {
			return errDirectory
		}
		if entry == entryEnd {
			break
		}
		if err := d.entry(entry); err != nil {
			return err
		}
	}
	d.bits.Align()
	if d.bits.Err() != nil {
		return errDirectory
	}
	rest := d.bits.Rest()
	for i := range d.parts {
		var err error
		if rest, err = d.part(&d.parts[i], rest); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes left", snapshot.ErrMalformed, len(rest))
	}
	return d.order()
}

// member reads the code of a group that the baseline's message contains.
func (d *Decoder) member(m receivedMember) error {
	switch {
	case d.bits.ReadBits(1) == 1:
		return d.addPart(receivedPart{slot: m.slot, typ: m.set.typ, distance: d.distance, counted: true})
	case d.bits.ReadBits(1) == 1:
		return d.keep(receivedMember{m.set, m.slot, 0}, true)
	case d.bits.ReadBits(1) == 1:
		return d.keep(receivedMember{m.set, m.slot, d.distance}, false)
	}
	return nil
}

// entry reads an entry for a group that the baseline's message does not contain.
func (d *Decoder) entry(entry uint64) error {
	slot := readCount(&d.bits, slotBits)
	p := receivedPart{slot: uint16(slot), counted: entry != entryShown}
	if slot >= maxMembers || len(d.visible)+len(d.parts) >= maxMembers {
		return errDirectory
	}
	if entry == entryKeyframe {
		return d.keyframe(p)
	}
	p.distance = d.bits.ReadBits(distanceBits)
	if entry == entryShown && p.distance == 0 {
		p.slot = noSlot
		return d.keyframe(p)
	}
	if entry == entryShown && p.distance == distancePartial {
		d.partial = true
		return nil
	}
	changed := d.bits.ReadBits(1) == 1
	set := d.set(p.distance, p.slot)
	switch {
	case p.distance == 0 || p.distance > maxDistance || d.bits.Err() != nil:
		return errDirectory
	case set == nil && p.counted:
		return d.missing(p.distance)
	case set == nil && !changed:
		return d.keepBefore(p.slot)
	case set == nil:
		p.skipped = true
	case !changed && p.counted:
		return d.keep(receivedMember{set, p.slot, 0}, true)
	case !changed:
		return d.keep(receivedMember{set, p.slot, p.distance}, false)
	default:
		p.typ = set.typ
	}
	return d.addPart(p)
}

// keyframe reads an entry for a group that is coded without an earlier state.
func (d *Decoder) keyframe(p receivedPart) error {
	n := readCount(&d.bits, typeBits)
	if n >= uint64(len(d.types)) {
		return fmt.Errorf("%w: object type %d of %d", snapshot.ErrMalformed, n, len(d.types))
	}
	p.typ = d.types[n]
	return d.addPart(p)
}

// addPart reads the size of a group's coded bytes.
func (d *Decoder) addPart(p receivedPart) error {
	p.size = int(readCount(&d.bits, sizeBits))
	p.entered = d.bits.ReadBits(1) == 1
	if p.size >= maxSize || d.bits.Err() != nil {
		return errDirectory
	}
	d.parts = append(d.parts, p)
	return nil
}

// keep adds a group to the message. Later messages may refer to it if counted is set. keep limits
// the number of objects, because a message of few bytes can refer to the same objects many times.
func (d *Decoder) keep(m receivedMember, counted bool) error {
	if d.objects+m.set.Len() > MaxObjects*len(d.types) {
		return fmt.Errorf("%w: more than %d objects", snapshot.ErrMalformed, MaxObjects*len(d.types))
	}
	m.set.used++
	d.visible = append(d.visible, m)
	d.objects += m.set.Len()
	if counted {
		d.members = append(d.members, m)
	}
	return nil
}

// part decodes the coded bytes of a group at the start of b and returns the rest of b.
func (d *Decoder) part(p *receivedPart, b []byte) ([]byte, error) {
	if p.size > len(b) {
		return nil, fmt.Errorf("%w: a group of %d bytes, %d are left", snapshot.ErrMalformed, p.size, len(b))
	}
	coded, rest := b[:p.size], b[p.size:]
	if p.skipped {
		if err := d.keepBefore(p.slot); err != nil {
			return nil, err
		}
		return d.skipEntered(p, rest)
	}
	before := func(age int) *snapshot.Packed {
		if s := d.set(p.distance+uint64(age), p.slot); s != nil && s.typ == p.typ {
			return &s.Packed
		}
		return nil
	}
	if p.distance > 0 && d.n%checkEvery == 0 {
		base := before(0)
		switch {
		case base == nil: // a hostile server has put groups of two types into one slot
			return nil, d.missing(p.distance)
		case len(coded) < 2:
			return nil, fmt.Errorf("%w: no hash", snapshot.ErrMalformed)
		case uint16(coded[0])|uint16(coded[1])<<8 != p.typ.groups.Check(base):
			return nil, d.desync()
		}
		coded = coded[2:]
	}
	set := p.typ.group
	if err := p.typ.groups.Decode(set, coded, int(p.distance), before); err != nil {
		if errors.Is(err, snapshot.ErrBaselineMissing) {
			return nil, d.missing(p.distance)
		}
		return nil, err
	}
	step := uint64(p.typ.groups.Step())
	if set.Len() > maxGroup {
		return nil, fmt.Errorf("%w: a group of %d objects, want at most %d", snapshot.ErrMalformed, set.Len(), maxGroup)
	}
	if p.entered {
		var err error
		if rest, err = d.entered(p, rest); err != nil {
			return nil, err
		}
	}
	d.step = max(d.step, step)
	return rest, d.keep(receivedMember{d.store(p.typ, p.slot), p.slot, 0}, p.counted)
}

// desync discards all messages and requests a reset, because the baseline differs from the
// server's.
func (d *Decoder) desync() error {
	d.requestReset()
	d.decoded = seq.Window{}
	d.release(d.last)
	d.last = d.last[:0]
	d.removeBefore(math.MaxUint64)
	return fmt.Errorf("%w: the baseline of snapshot %d", snapshot.ErrDesync, uint16(d.n))
}

// accept stores the decoded message and discards messages that are no longer needed.
func (d *Decoder) accept() {
	d.malformed = 0
	sortBySlot(d.members)
	if end := max(d.next, d.n+1); end > snapshot.Ring {
		d.removeBefore(end - snapshot.Ring)
	}
	m := d.messages.Put(d.n)
	m.members = append(m.members[:0], d.members...)
	for _, e := range m.members {
		e.set.used++
	}
	for _, t := range d.types {
		t.shown, t.merged = t.merged, t.shown
		t.ages, t.mergedAges = t.mergedAges, t.ages
	}
	if d.decoded.Add(d.n); d.n%trimEvery == 0 {
		for _, t := range d.types {
			t.free.trim()
		}
	}
	if d.n >= d.next {
		d.next = d.n + 1
		d.release(d.last)
		d.last = append(d.last[:0], d.visible...)
		for _, e := range d.last {
			e.set.used++
		}
		sortBySlot(d.last)
	}
	if d.distance == 0 {
		if d.waiting {
			d.waiting, d.first = false, d.n
		}
		return
	}
	d.floor = max(d.floor, d.n-d.distance)
	before := uint64(keepMessages)
	if d.step > 0 && d.n+1 == d.next {
		before = snapshot.MaxAge(d.step)
	}
	d.removeBefore(d.floor - min(d.floor, before))
}

// drop releases the sets of a message that could not be decoded.
func (d *Decoder) drop() {
	d.release(d.visible)
	d.visible = d.visible[:0]
}

// count requests a reset after maxMalformed consecutive malformed messages.
func (d *Decoder) count(err error) {
	if !errors.Is(err, snapshot.ErrMalformed) {
		return
	}
	if d.malformed++; d.malformed == maxMalformed {
		d.malformed = 0
		d.requestReset()
	}
}

// removeBefore removes the messages with numbers below end.
func (d *Decoder) removeBefore(end uint64) {
	for n := range d.messages.All() {
		if n < end {
			d.remove(n)
		}
	}
}

func (d *Decoder) remove(n uint64) {
	if m := d.messages.Get(n); m != nil {
		d.release(m.members)
		m.members = m.members[:0]
		d.messages.Delete(n)
	}
}

// Ack returns an ack of the decoded messages.
func (d *Decoder) Ack() snapshot.Ack {
	a := snapshot.Ack{None: !d.decoded.Any, Epoch: d.epoch}
	if !a.None {
		a.Newest, a.Window = uint16(d.decoded.Newest), d.decoded.Low(snapshot.Ring-1)
	}
	return a
}

// store returns a copy of the decoded group of a slot. If the newest message has the same objects
// in that slot, which is likely, the copy shares their list.
func (d *Decoder) store(t *typeDecoder, slot uint16) *countedSet {
	s := t.free.take(t.group.Len())
	if s == nil {
		s = &countedSet{typ: t}
	}
	var like *snapshot.Packed
	if newest := setOf(d.messages.Get(d.next-1), slot); newest != nil {
		like = &newest.Packed
	}
	t.groups.Store(&s.Packed, t.group, like)
	return s
}

// release removes references to the sets of members and frees the sets that have no other
// references.
func (d *Decoder) release(members []receivedMember) {
	for _, m := range members {
		if m.set.used--; m.set.used == 0 {
			m.set.typ.free.put(m.set)
		}
	}
}

// Memory returns the size of the stored objects, in bytes.
func (d *Decoder) Memory() (sum int) {
	for _, m := range d.messages.All() {
		for _, e := range m.members {
			sum += e.set.Memory() / e.set.used
		}
	}
	for _, t := range d.types {
		for _, l := range t.free {
			for _, s := range l.sets {
				sum += s.Memory()
			}
		}
		sum += t.shown.Memory() + t.merged.Memory()
	}
	return sum
}
