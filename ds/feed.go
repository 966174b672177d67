package ds

import (
	"errors"
	"slices"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/transport"
)

// mostFed is how many segments of the reliable channel may wait while an initial state is sent: a quarter of what it
// holds, so that the game's own messages find room.
const mostFed = 64

// feed begins to send the initial state, and says whether it does.
func (d *downstream) feed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != offered {
		return false
	}
	d.phase = feeding
	return true
}

// feed sends pieces of initial states, as many as there is room for.
func (h *shard) feed() {
	h.feeding = slices.DeleteFunc(h.feeding, func(d *downstream) bool { return d.push(&h.buf) })
}

// push sends pieces while there is room, and says whether that is over.
func (d *downstream) push(buf *[]byte) (over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	initial := d.way.terms().initial
	for d.phase == feeding && d.fed < len(initial) {
		if d.link.Unacked() >= mostFed {
			return false
		}
		n := min(control.MaxPiece, len(initial)-d.fed)
		*buf = append((*buf)[:0], byte(control.Piece), d.number)
		*buf = append(*buf, initial[d.fed:d.fed+n]...)
		if err := d.link.SendReliable(*buf); err != nil {
			return !errors.Is(err, transport.ErrBacklog)
		}
		d.fed += n
		d.stats.InitialBytes += uint64(n)
	}
	return true
}
