package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/snapshot"
)

// MaxTick is the highest tick of a world.
const MaxTick = 1<<53 - 1

// Ticks is a ring of the ticks of the most recent snapshots, by sequence number. It encodes the
// tick in front of a snapshot's payload: as a signed varint, the difference from the tick that the
// snapshot would have if one was sent every tick since its baseline. The zero value is ready.
type Ticks [snapshot.Ring]uint64

// Set stores the tick of a snapshot.
func (t *Ticks) Set(seq uint16, tick uint64) { t[seq%snapshot.Ring] = tick }

// expected returns the tick that the difference refers to. A distance of 0 means no baseline.
func (t *Ticks) expected(seq uint16, distance int) uint64 {
	if distance == 0 {
		return 0
	}
	return t[(seq-uint16(distance))%snapshot.Ring] + uint64(distance)
}

// age returns the number of ticks between a snapshot and its baseline, 0 if it has none.
func (t *Ticks) age(seq uint16, distance int) uint64 {
	if distance == 0 {
		return 0
	}
	return t[seq%snapshot.Ring] - t[(seq-uint16(distance))%snapshot.Ring]
}

// Append appends the tick of a snapshot, of at most binary.MaxVarintLen64 bytes.
func (t *Ticks) Append(dst []byte, seq uint16, distance int) []byte {
	return binary.AppendVarint(dst, int64(t[seq%snapshot.Ring]-t.expected(seq, distance)))
}

// parseTick splits a message into the difference, an argument of resolve, and the payload.
func parseTick(message []byte) (difference int64, payload []byte, err error) {
	difference, n := binary.Varint(message)
	if n <= 0 || difference < -MaxTick || difference > MaxTick {
		return 0, nil, fmt.Errorf("%w: no tick before the payload", snapshot.ErrMalformed)
	}
	return difference, message[n:], nil
}

// resolve returns the tick of a snapshot and stores it. The ring must hold the tick of its
// baseline.
func (t *Ticks) resolve(seq uint16, distance int, difference int64) (uint64, error) {
	tick := t.expected(seq, distance) + uint64(difference)
	if tick > MaxTick {
		return 0, fmt.Errorf("%w: tick %d of snapshot %d", snapshot.ErrMalformed, int64(tick), seq)
	}
	t.Set(seq, tick)
	return tick, nil
}
