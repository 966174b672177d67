package replication

import (
	"errors"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/session"
)

// CountError counts an error of a codec's decoder in st, by its reason.
func CountError(st *session.ReplicationStats, err error) {
	for _, c := range []struct {
		reason error
		count  *uint64
	}{
		{snapshot.ErrLate, &st.Late},
		{snapshot.ErrBaselineMissing, &st.BaselineMissing},
		{snapshot.ErrDesync, &st.Desync},
		{malformed.ErrTruncated, &st.Truncated},
		{malformed.ErrCount, &st.BadCounts},
		{malformed.ErrID, &st.BadIDs},
		{malformed.ErrBounds, &st.BadValues},
	} {
		if errors.Is(err, c.reason) {
			*c.count++
			return
		}
	}
	st.Malformed++
}

// AddStats adds st to the element of all with the same name, or appends it.
func AddStats(all []session.ReplicationStats, st *session.ReplicationStats) []session.ReplicationStats {
	for i := range all {
		if all[i].Name == st.Name {
			all[i].Add(st)
			return all
		}
	}
	return append(all, *st)
}
