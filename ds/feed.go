package ds

import (
	"errors"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
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

// feedEvery is the time after which a client that leaves and returns may have the initial state
// once more. It may have it twice without waiting.
const feedEvery = 10 * time.Second

// feed sends pieces of initial states, as many as there is room for.
func (h *shard) feed(now time.Time) {
	since := now.Sub(h.start)
	h.feeding = slices.DeleteFunc(h.feeding, func(d *downstream) bool {
		d.listed = !d.push(&h.buf, since)
		return !d.listed
	})
}

// push sends pieces while there is room and the rate limit allows it, and reports whether
// nothing is left to send. since is the time since the shard's start.
func (d *downstream) push(buf *[]byte, since time.Duration) (over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	initial := d.way.terms().initial
	size := float64(len(initial))
	rate := ratelimit.Rate{PerSecond: size / feedEvery.Seconds(), Burst: 2 * size}
	for d.phase == feeding && d.fed < len(initial) {
		n := min(control.MaxPiece, len(initial)-d.fed)
		if d.link.Unacked() >= mostFed || !d.pieces.Take(since, rate, float64(n)) {
			return false
		}
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
