package client

import (
	"errors"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/snapshot"
)

// ReplicationStats counts what was received of one of the server's worlds.
type ReplicationStats struct {
	// Name is the world's.
	Name string
	// Messages counts what could be used, of snapshots each one; Datagrams those that brought them or parts of them, of
	// which Fragments are parts.
	Messages, Datagrams, Fragments uint64
	// Updates counts the objects that messages of state updated or said to be gone.
	Updates uint64
	// Bytes is that of all messages that came whole, without headers.
	Bytes uint64
	// Initial is the size of the initial states that were asked for, of one for each connection, InitialBytes how much of
	// that has come.
	Initial, InitialBytes uint64
	// Acks counts the acks that were sent, AckBytes their bytes without headers.
	Acks, AckBytes uint64
	// What was not used: Late came before, or too late to be of use; BaselineMissing is the difference from what is not
	// held; Desync is found to be from something else; Incomplete are messages of which some fragments never came; Unpolled
	// are those for which Poll left no room.
	Late, BaselineMissing, Desync, Incomplete, Unpolled uint64
	// What no server sends: BadFragments fit no message; Truncated end in their header; BadCounts have more objects than
	// there can be, BadIDs an object's id that cannot be there, BadValues a value out of its field's bounds; Malformed is
	// everything else.
	BadFragments, Truncated, BadCounts, BadIDs, BadValues, Malformed uint64
}

// Add adds the counts of o.
func (st *ReplicationStats) Add(o *ReplicationStats) {
	st.Messages += o.Messages
	st.Datagrams += o.Datagrams
	st.Fragments += o.Fragments
	st.Updates += o.Updates
	st.Bytes += o.Bytes
	st.Initial += o.Initial
	st.InitialBytes += o.InitialBytes
	st.Acks += o.Acks
	st.AckBytes += o.AckBytes
	st.Late += o.Late
	st.BaselineMissing += o.BaselineMissing
	st.Desync += o.Desync
	st.Incomplete += o.Incomplete
	st.Unpolled += o.Unpolled
	st.BadFragments += o.BadFragments
	st.Truncated += o.Truncated
	st.BadCounts += o.BadCounts
	st.BadIDs += o.BadIDs
	st.BadValues += o.BadValues
	st.Malformed += o.Malformed
}

func (d *downstream) counted() ReplicationStats {
	st := d.stats
	st.Name = d.name
	return st
}

// count counts an error of a decoder.
func (st *ReplicationStats) count(err error) {
	switch {
	case errors.Is(err, snapshot.ErrLate):
		st.Late++
	case errors.Is(err, snapshot.ErrBaselineMissing):
		st.BaselineMissing++
	case errors.Is(err, snapshot.ErrDesync):
		st.Desync++
	case errors.Is(err, malformed.ErrTruncated):
		st.Truncated++
	case errors.Is(err, malformed.ErrCount):
		st.BadCounts++
	case errors.Is(err, malformed.ErrID):
		st.BadIDs++
	case errors.Is(err, malformed.ErrBounds):
		st.BadValues++
	default:
		st.Malformed++
	}
}

// safelyCounted is counted for who does not hold the lock.
func (d *downstream) safelyCounted() ReplicationStats {
	all := &d.conn.down
	all.mu.Lock()
	defer all.mu.Unlock()
	return d.counted()
}

// err is why the world is not taken.
func (d *downstream) err() error {
	all := &d.conn.down
	all.mu.Lock()
	defer all.mu.Unlock()
	return d.refused
}

// stats gives what was counted for each name, those that were closed too.
func (all *downstreams) stats() []ReplicationStats {
	all.mu.Lock()
	defer all.mu.Unlock()
	out := slices.Clone(all.past)
	for _, d := range all.taken {
		st := d.counted()
		out = addReplication(out, &st)
	}
	return out
}

// addReplication adds counts to those of the same name, or appends them.
func addReplication(all []ReplicationStats, st *ReplicationStats) []ReplicationStats {
	for i := range all {
		if all[i].Name == st.Name {
			all[i].Add(st)
			return all
		}
	}
	return append(all, *st)
}
