package perplayer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
)

// Encoder encodes a world's snapshots for one player. It stores the models of the snapshots that
// may become baselines: the newest acked one and later ones.
type Encoder struct {
	world  *World
	codec  payloadCodec
	pairs  []pair
	sent   *ringcache.Ring[bool] // acked, by sequence number
	states stateRing
	newest uint64 // newest acked sequence number + 1, or 0
}

// checkEvery is the number of snapshots per divergence check.
const checkEvery = 60

// NewEncoder returns an encoder of w's snapshots.
func NewEncoder(w *World) *Encoder {
	e := &Encoder{
		world: w, sent: ringcache.New[bool](ring),
		states: stateRing{schema: w.schema, ring: ringcache.New[*modelState](ring)},
	}
	e.codec.schema, e.codec.Coder = w.schema, rangecoder.NewCoder(rangecoder.MaxCount, false)
	return e
}

// Append appends the world's newest snapshot, encoded against the newest one that was acked, and
// returns the extended slice. It must be called once for a snapshot. Append does not allocate once
// warm if dst has room.
func (e *Encoder) Append(dst []byte) []byte {
	n := e.world.next - 1
	cur, pc := e.world.set(n), &e.codec
	pc.refs.base, pc.refs.distance, pc.from = e.world.initial, 1, e.world.prior
	distance := uint64(0)
	if e.newest > 0 && n+1-e.newest < ring-maxLag {
		base := e.newest - 1
		distance = n - base
		pc.refs.base, pc.refs.distance, pc.from = e.world.set(base), int64(distance), e.states.get(base)
	}
	pc.state = e.states.take()
	pc.copyState()
	pc.Enc.Reset(appendHeader(dst, n, distance), 0)
	if base := n - distance; distance > 0 {
		pc.begin(pc.mask(e.ackedBefore(base)), func(lag int) *set { return e.world.set(base - uint64(lag)) })
	} else {
		pc.begin(0, nil)
	}
	e.pairs = pc.objects(e.pairs, cur)
	pc.rows(e.pairs, cur)
	pc.updateObjects(e.pairs)
	e.states.put(n, pc.state)
	*e.sent.Put(n) = false
	if end := n + maxLag + 1; end > ring {
		e.states.removeBefore(end - ring) // too old for a baseline
	}
	return pc.Enc.Finish()
}

// appendHeader appends a header of the size that it had: the distance to the baseline, and the
// sequence number. Without a baseline or once in checkEvery snapshots, it is followed by more bits
// of them, and a hash for the divergence check, which is omitted here.
func appendHeader(dst []byte, n, distance uint64) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n<<6|distance))
	switch {
	case distance == 0:
		dst = append(dst, 0, 0, 0, 0)
	case n%checkEvery == 0:
		dst = append(dst, 0, 0, 0)
	}
	return dst
}

// ackedBefore returns a mask of the acked snapshots: bit i for the one i+1 before base.
func (e *Encoder) ackedBefore(base uint64) (mask uint32) {
	for lag := uint64(1); lag <= maxLag && lag <= base; lag++ {
		if acked := e.sent.Get(base - lag); acked != nil && *acked {
			mask |= 1 << (lag - 1)
		}
	}
	return mask
}

var errAck = errors.New("perplayer: ack of a snapshot that was not sent")

// Ack processes an ack: the number of a snapshot, and bit i of window for the one i+1 before it.
func (e *Encoder) Ack(newest, window uint64) error {
	if newest >= e.world.next {
		return fmt.Errorf("%w: %d of %d", errAck, newest, e.world.next)
	}
	for n := range seq.Acked(newest, window) {
		if acked := e.sent.Get(n); acked != nil {
			*acked = true
			e.newest = max(e.newest, n+1)
		}
	}
	if e.newest > 0 {
		e.states.removeBefore(e.newest - 1)
	}
	return nil
}
