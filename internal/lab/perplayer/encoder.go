package perplayer

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
)

// Info describes an encoded or decoded snapshot.
type Info struct {
	// Seq is the low 16 bits of the sequence number.
	Seq uint16
	// Baseline is the distance to the baseline in snapshots, 0 for the initial set or none.
	Baseline int
	// Objects is the number of objects, 0 after an error of the decoder.
	Objects int
	// Bytes is the size of the payload.
	Bytes int
}

// Encoder encodes a world's snapshots for one player. It stores the models of the snapshots that
// may become baselines: the newest acked one and later ones. Not safe for concurrent use; the
// encoders of one world may be used at the same time, but not while the caller fills a set.
type Encoder struct {
	world  *World
	codec  payloadCodec
	pairs  []pair
	sent   *ringcache.Ring[bool] // acked, by sequence number
	states stateRing[*modelState]
	newest uint64 // newest acked sequence number + 1, or 0
	due    int    // snapshots until the next divergence check

	epoch     uint8
	since     uint64 // first sequence number of the epoch; older snapshots are no baselines
	resets    uint64
	noInitial bool
}

// NewEncoder returns an encoder of w's snapshots. Its schema must be s.
func NewEncoder(s *Schema, w *World) *Encoder {
	e := &Encoder{world: w, sent: ringcache.New[bool](w.cfg.Ring), states: newStateRing(w.cfg.Ring, s.newState)}
	e.codec.schema, e.codec.Coder = s, rangecoder.NewCoder(rangecoder.MaxCount, false)
	return e
}

// Append appends the world's newest snapshot, encoded against the newest one that was acked, and
// returns the extended slice. If it takes more than limit bytes, the error is [ErrTooLarge]. A
// second call for the same snapshot is an error too. After an error dst is unchanged. Append does
// not allocate once warm if dst has room.
func (e *Encoder) Append(dst []byte, limit int) ([]byte, Info, error) {
	if e.world.next == 0 {
		return dst, Info{}, fmt.Errorf("%w: the world has no snapshot: call Begin", ErrBaselineMissing)
	}
	n := e.world.next - 1
	cur, pc := e.world.set(n), &e.codec
	h := e.header(n)
	info := Info{Seq: h.seq, Baseline: int(h.distance), Objects: cur.Len()}
	if e.sent.Get(n) != nil {
		return dst, info, fmt.Errorf("%w: snapshot %d", errSent, info.Seq)
	}
	out := e.encode(h.append(dst), n, h.distance, cur)
	info.Bytes = len(out) - len(dst)
	if info.Bytes > limit {
		e.states.release(pc.state)
		return dst, info, fmt.Errorf("%w: snapshot %d of %d objects takes %d bytes, want at most %d",
			ErrTooLarge, info.Seq, info.Objects, info.Bytes, limit)
	}
	pc.updateObjects(e.pairs)
	e.states.put(n, pc.state)
	*e.sent.Put(n) = false
	if e.due--; h.checked {
		e.due = e.world.cfg.CheckEvery - 1
	}
	if end := n + maxLag + 1; end > e.ring() {
		e.states.removeBefore(end - e.ring()) // too old for a baseline
	}
	return out, info, nil
}

// header chooses and loads the baseline of snapshot n.
func (e *Encoder) header(n uint64) header {
	h, pc := header{seq: uint16(n), checked: e.due <= 0}, &e.codec
	if e.newest > 0 && n+1 > e.newest && n+1-e.newest < e.ring()-maxLag {
		base := e.newest - 1
		h.distance = n - base
		pc.refs.base, pc.refs.distance, pc.from = e.world.set(base), int64(h.distance), e.states.get(base)
		if h.checked {
			h.hash = hash(pc.refs.base, pc.from)
		}
		return h
	}
	h.empty, h.epoch = e.noInitial || e.world.initial.Len() == 0, e.epoch
	h.hash, h.checked = e.world.load(pc, h.empty), h.checked || !h.empty
	return h
}

// encode appends the coded part. The state of the codec is then one that it took from the ring.
func (e *Encoder) encode(dst []byte, n, distance uint64, cur *Set) []byte {
	pc := &e.codec
	pc.state = e.states.take()
	pc.copyState()
	pc.Enc.Reset(dst, 0)
	if base := n - distance; distance > 0 {
		pc.begin(pc.mask(e.ackedBefore(base)), func(lag int) *Set { return e.world.set(base - uint64(lag)) })
	} else {
		pc.begin(0, nil)
	}
	e.pairs, _ = pc.objects(e.pairs, cur)
	pc.rows(e.pairs, cur)
	return pc.Enc.Finish()
}

func (e *Encoder) ring() uint64 { return uint64(e.sent.Cap()) }

// ackedBefore returns a mask of those acked in this epoch: bit i for the one i+1 before base.
func (e *Encoder) ackedBefore(base uint64) (mask uint32) {
	for lag := uint64(1); lag <= maxLag && lag <= base && base-lag >= e.since; lag++ {
		if acked := e.sent.Get(base - lag); acked != nil && *acked {
			mask |= 1 << (lag - 1)
		}
	}
	return mask
}

// Ack processes an ack of the decoder. Old and repeated acks have no effect. An ack of a snapshot
// that was never sent is [ErrAck] and has no effect either. An ack of another epoch resets the
// encoder, but at most once in Config.Ring snapshots.
func (e *Encoder) Ack(a Ack) error {
	if !a.None {
		newest, recent, err := e.check(a)
		if err != nil {
			return err
		}
		if recent {
			e.acked(newest, a.Window)
		}
	}
	e.noInitial = e.noInitial || a.NoInitial
	if a.Epoch != e.epoch {
		e.reset(a.Epoch)
	}
	return nil
}

// check returns the ack's newest snapshot, and reports whether the ring still contains it.
func (e *Encoder) check(a Ack) (newest uint64, recent bool, err error) {
	w := a.wire()
	behind := w.Behind(e.world.next - 1)
	if behind >= e.world.next {
		return 0, false, fmt.Errorf("%w: snapshot %d of %d", ErrAck, a.Newest, e.world.next)
	}
	if behind >= e.ring() {
		return 0, false, nil
	}
	newest = e.world.next - 1 - behind
	for n := range seq.Acked(newest, a.Window) {
		if n > newest || n+e.ring() >= e.world.next && e.sent.Get(n) == nil {
			return 0, false, fmt.Errorf("%w: snapshot %d was not sent", ErrAck, uint16(n))
		}
	}
	return newest, true, nil
}

func (e *Encoder) acked(newest, window uint64) {
	for n := range seq.Acked(newest, window) {
		if acked := e.sent.Get(n); acked != nil && n >= e.since {
			*acked = true
			e.newest = max(e.newest, n+1)
		}
	}
	if e.newest > 0 {
		e.states.removeBefore(e.newest - 1)
	}
}

// reset starts an epoch. Acks in flight carry another epoch too, hence at most one reset per ring.
func (e *Encoder) reset(epoch uint8) {
	if e.resets > 0 && e.world.next < e.since+e.ring() {
		return
	}
	e.epoch, e.since, e.newest = epoch, e.world.next, 0
	e.resets++
	e.states.clear()
}
