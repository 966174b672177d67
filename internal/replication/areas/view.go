package areas

import (
	"slices"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// View is what one client sees of a world, and what the server knows that the client has. Not safe
// for concurrent use.
type View struct {
	Receipts snapshot.Receipts
	Counts   Counts // of the newest message

	areas   []area.ID    // by descending priority
	lists   []*groupList // of those areas that have had objects, and of area.All
	known   int          // number of areas of the world when lists was made
	version uint64       // sum of the versions of the lists when members was updated
	changes uint64       // of the world at that time, or later if nothing has changed here since
	stale   bool         // the areas have changed
	members []member     // by slot; some are unused
	moving  []movingObject
	next    uint64 // number of the newest message + 1
	resends uint8  // keyframes sent again since the last ack
	retry   bool   // the next message sends unacked keyframes again
}

// Counts describe a message to one client.
type Counts struct {
	Objects int    // that the client shows
	Waiting int    // that are in the view, but not shown yet
	Sharing uint64 // players who share the encoding of a group: the mean of the groups, 1 without any
}

// member is a group that the client sees or has seen.
type member struct {
	group  *Group // nil if the slot is unused
	had    uint64 // bit i: message next-1-i contains it
	rank   uint16 // priority of areas: the lowest first
	sees   bool
	now    bool  // the message that is being built contains it
	unseen uint8 // messages since the client saw it
	safe   bool  // and the client can decode it if it receives no other message
}

// movingObject is an object that the client is shown although it may not have its group.
type movingObject struct {
	typ    *Type
	object snapshot.Object
}

// noRank is the rank of groups that the client does not see.
const noRank = 1<<16 - 1

// See sets the areas that the client sees from now on, by descending priority. The view keeps the
// slice.
func (v *View) See(in []area.ID) { v.areas, v.stale = in, true }

// Reset forgets all messages.
func (v *View) Reset() {
	v.Receipts, v.Counts, v.members, v.moving, v.next, v.resends, v.stale = snapshot.Receipts{}, Counts{}, nil, nil, 0, 0, true
}

// update updates the members.
func (v *View) update(w *History) {
	if v.changes == w.changes && !v.stale {
		return
	}
	v.changes = w.changes
	if v.stale || v.known != len(w.areas) {
		v.stale, v.known, v.lists = true, len(w.areas), v.lists[:0]
		v.lists = append(v.lists, w.areas[area.All])
		for _, a := range v.areas {
			v.lists = append(v.lists, w.areas[a])
		}
		v.lists = slices.DeleteFunc(v.lists, func(l *groupList) bool { return l == nil })
	}
	version := uint64(0)
	for _, l := range v.lists {
		version += l.version
	}
	if version == v.version && !v.stale {
		return
	}
	v.version, v.stale = version, false
	for i := range v.members {
		v.members[i].sees, v.members[i].rank = false, noRank
	}
	for i, l := range v.lists {
		v.add(l, uint16(min(i, noRank-1)))
	}
}

// add adds the groups of an area.
func (v *View) add(l *groupList, rank uint16) {
	for _, g := range l.groups {
		i := slices.IndexFunc(v.members, func(m member) bool { return m.group == g })
		if i < 0 {
			if i = v.freeSlot(); i < 0 {
				v.stale = true // there may be room later
				return
			}
			v.members[i] = member{group: g}
		}
		if m := &v.members[i]; !m.sees {
			m.sees, m.rank = true, rank
		}
	}
}

// freeSlot returns an unused slot, or -1.
func (v *View) freeSlot() int {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.group == nil })
	if i < 0 && len(v.members) < maxMembers {
		v.members = append(v.members, member{})
		return len(v.members) - 1
	}
	return i
}

// shift is by how much masks of members are shifted such that bit d belongs to the message d before
// snapshot n.
func (v *View) shift(n uint64) uint64 { return n + 1 - v.next }

// sent records a message.
func (v *View) sent(n uint64, base snapshot.Baseline) {
	from := v.shift(n)
	for i := range v.members {
		m := &v.members[i]
		m.had <<= from
		if m.now {
			m.had |= 1
		}
		m.now, m.safe = false, false
		if m.unseen++; m.sees {
			m.unseen = 0
		}
		if m.unseen > maxDistance && m.had == 0 { // until then a client may show what the slot had
			m.group = nil
		}
	}
	v.next, v.retry = n+1, false
	v.Receipts.Sent(n, base)
}

// Ack applies an ack of the client, see [snapshot.Receipts.Ack].
func (v *View) Ack(a snapshot.Ack) (acked int, err error) {
	before := v.Receipts.Resets()
	acked, err = v.Receipts.Ack(a)
	if v.Receipts.Resets() != before { // the client has forgotten all messages
		for i := range v.members {
			v.members[i].had = 0
		}
	}
	if acked > 0 {
		v.resends = 0
	}
	return acked, err
}

// Resends returns how often the time for which an unacked keyframe is held was doubled.
func (v *View) Resends() int { return int(v.resends) }

// Retry ends the doubling and sends unacked keyframes again with the next message, to a client that
// is heard after a silence.
func (v *View) Retry() { v.resends, v.retry = 0, true }

// maxResends bounds how often the time for which an unacked keyframe is held is doubled.
const maxResends = 5
