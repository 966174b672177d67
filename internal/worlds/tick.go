package worlds

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/snapshot"
)

// MaxTickSize is what a tick takes in a message at most, in bytes.
const MaxTickSize = binary.MaxVarintLen64

// MaxTick is the highest tick of a world.
const MaxTick = 1<<53 - 1

// Ticks has the tick of each of the last snapshots, by sequence. The zero value is ready.
type Ticks [snapshot.Ring]uint64

// Set notes a snapshot's tick.
func (t *Ticks) Set(seq uint16, tick uint64) { t[seq%snapshot.Ring] = tick }

// base is what a snapshot's tick would be if there were one for each since its baseline; distance 0 means that it has
// none.
func (t *Ticks) base(seq uint16, distance int) uint64 {
	if distance == 0 {
		return 0
	}
	return t[(seq-uint16(distance))%snapshot.Ring] + uint64(distance)
}

// Age is how many ticks lie between a snapshot and its baseline, 0 if it has none.
func (t *Ticks) Age(seq uint16, distance int) uint64 {
	if distance == 0 {
		return 0
	}
	return t[seq%snapshot.Ring] - t[(seq-uint16(distance))%snapshot.Ring]
}

// Append appends the tick of a snapshot: how far it is from base, as a signed varint.
func (t *Ticks) Append(dst []byte, seq uint16, distance int) []byte {
	return binary.AppendVarint(dst, int64(t[seq%snapshot.Ring]-t.base(seq, distance)))
}

// Parse takes a message apart: what its tick is from base, to be given to Resolve once the snapshot is decoded, and the
// payload.
func Parse(message []byte) (offset int64, payload []byte, err error) {
	offset, n := binary.Varint(message)
	if n <= 0 || offset < -MaxTick || offset > MaxTick {
		return 0, nil, fmt.Errorf("%w: no tick ahead of the payload", snapshot.ErrMalformed)
	}
	return offset, message[n:], nil
}

// Resolve gives a snapshot's tick and notes it. The baseline's must be noted.
func (t *Ticks) Resolve(seq uint16, distance int, offset int64) (uint64, error) {
	tick := t.base(seq, distance) + uint64(offset)
	if tick > MaxTick {
		return 0, fmt.Errorf("%w: tick %d of snapshot %d", snapshot.ErrMalformed, int64(tick), seq)
	}
	t.Set(seq, tick)
	return tick, nil
}
