package areas

import (
	"slices"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// View is the part of a world that one client sees. It also records which messages the client has
// acked. Not safe for concurrent use.
type View struct {
	Receipts snapshot.Receipts
	Counts   Counts // counts of the newest message

	areas   []area.ID    // by descending priority
	lists   []*groupList // groups of area.All and of those areas that have had objects
	known   int          // number of areas of the world when lists was made
	version uint64       // sum of the versions of lists when members was updated
	changes uint64       // value of History.changes at the last call of update
	stale   bool         // members must be updated: the areas have changed, or slots ran out
	members []member     // by slot; the group of an unused slot is nil
	// objects to show although the client may not have their groups
	moving  []movingObject
	next    uint64 // number of the newest message, plus 1
	resends uint8  // messages since the last ack that repeated keyframes, at most maxResends
	retry   bool   // the next message sends unacked keyframes again
}

// Counts describes a message to one client.
type Counts struct {
	Objects int    // number of objects that the client shows
	Waiting int    // number of objects in the view that the client does not show yet
	Sharing uint64 // mean number of players that share the encoding of a group, at least 1
}

// member is a group that the client sees or has seen.
type member struct {
	group  *Group // nil if the slot is unused
	had    uint64 // bit i is set if message View.next-1-i contains the group
	rank   uint16 // priority of the group's areas: 0 is the highest
	sees   bool
	now    bool  // the message that is being built contains the group
	unseen uint8 // number of messages since the client saw the group
	safe   bool  // the message that is being built codes it against an acked message
}

// movingObject is an object that the client is shown although it may not have the object's group.
type movingObject struct {
	typ    *Type
	object snapshot.Object
}

// noRank is the rank of groups that the client does not see.
const noRank = 1<<16 - 1

// See sets the areas that the client sees, by descending priority. The view keeps the slice.
func (v *View) See(in []area.ID) { v.areas, v.stale = in, true }

// Reset removes the records of all messages.
func (v *View) Reset() {
	v.Receipts, v.Counts, v.members, v.moving, v.next, v.resends, v.stale = snapshot.Receipts{}, Counts{}, nil, nil, 0, 0, true
}

// update updates the members if the areas of the client or their groups have changed.
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

// add makes the groups of an area visible.
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

// shift returns the number of bits by which to shift member.had so that bit d stands for the
// message that is d snapshots older than snapshot n.
func (v *View) shift(n uint64) uint64 { return n + 1 - v.next }

// sent records that the message of snapshot n was sent, coded against base.
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
		// Before, a client may still show the group of this slot.
		if m.unseen > maxDistance && m.had == 0 {
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
	if v.Receipts.Resets() != before { // the client has discarded all messages
		for i := range v.members {
			v.members[i].had = 0
		}
	}
	if acked > 0 {
		v.resends = 0
	}
	return acked, err
}

// Resends returns the number of times that the hold time of an unacked keyframe was doubled since
// the last ack.
func (v *View) Resends() int { return int(v.resends) }

// Retry resets the hold time of unacked keyframes, and sends them again with the next message. Call
// it when a datagram of the client arrives after a silence.
func (v *View) Retry() { v.resends, v.retry = 0, true }

// maxResends is the maximum number of times that the hold time of an unacked keyframe is doubled.
const maxResends = 5
