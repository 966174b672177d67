package snapshot

import (
	"fmt"
)

// Info says what an encoder made.
type Info struct {
	// Seq names the snapshot.
	Seq uint16
	// Baseline is how many snapshots before it its baseline is, 0 for the initial set.
	Baseline int
	// Objects of the set and Bytes of the payload.
	Objects, Bytes int
}

// Encoder codes a world's snapshots for one player. It keeps a state beside each of the last [Ring].
type Encoder struct {
	world  *World
	walk   walk
	pairs  []pair
	states [Ring]*state
	prior  *state
	work   *state
	sent   [Ring]uint64 // sequence + 1 of what was sent, at its place
	acked  [Ring]bool
	newest uint64 // sequence + 1 of the newest that was acked
}

// NewEncoder makes an encoder of the world's snapshots.
func NewEncoder(s *Schema, w *World) *Encoder {
	e := &Encoder{world: w, prior: s.newState(), work: s.newState()}
	e.walk.schema = s
	for i := range e.states {
		e.states[i] = s.newState()
	}
	return e
}

// Append appends the newest snapshot, against the newest one that was acked, and gives the extended slice. A snapshot
// of more than limit bytes is [ErrTooLarge], with dst unchanged. It allocates nothing once warm and dst has room.
func (e *Encoder) Append(dst []byte, limit int) ([]byte, Info, error) {
	if e.world.next == 0 {
		return dst, Info{}, fmt.Errorf("snapshot: %w: the world has none yet: Begin first", ErrBaselineMissing)
	}
	seq := e.world.next - 1
	cur, w := e.world.set(seq), &e.walk
	distance := e.prepare(seq)
	info := Info{Seq: uint16(seq), Baseline: int(distance), Objects: cur.Len()}

	out := appendHeader(dst, seq, distance)
	w.decoding = false
	w.enc.Reset(out, 0)
	if distance > 0 {
		base := seq - distance
		w.begin(w.mask(e.known(base)), func(lag int) *Set { return e.world.set(base - uint64(lag)) })
	} else {
		w.begin(0, nil)
	}
	e.pairs, _ = w.names(e.pairs, cur)
	w.rows(e.pairs, cur)
	out = w.enc.Finish()
	info.Bytes = len(out) - len(dst)
	if info.Bytes > limit {
		return dst, info, fmt.Errorf("%w: snapshot %d of %d objects takes %d bytes, want at most %d",
			ErrTooLarge, info.Seq, info.Objects, info.Bytes, limit)
	}
	at := seq % Ring
	e.states[at].copyFrom(w.state)
	w.keep(e.states[at], e.pairs)
	e.sent[at], e.acked[at] = seq+1, false
	return out, info, nil
}

// prepare finds the baseline and loads its state.
func (e *Encoder) prepare(seq uint64) (distance uint64) {
	w := &e.walk
	w.state = e.work
	from := e.prior
	w.hist.base, w.hist.distance = e.world.initial, 1
	if e.newest > 0 && seq+1-e.newest < Ring-reach && seq+1 > e.newest {
		distance = seq + 1 - e.newest
		w.hist.base, w.hist.distance = e.world.set(e.newest-1), int64(distance)
		from = e.states[(e.newest-1)%Ring]
	}
	w.borrow(from)
	return distance
}

// known says which sets before baseline base were acked.
func (e *Encoder) known(base uint64) (mask uint32) {
	for lag := uint64(1); lag <= reach && lag <= base; lag++ {
		at := (base - lag) % Ring
		if e.acked[at] && e.sent[at] == base-lag+1 {
			mask |= 1 << (lag - 1)
		}
	}
	return mask
}

// Ack takes the decoder's ack. Old and repeated ones do nothing; one that names a snapshot that was never sent is
// [ErrAck].
func (e *Encoder) Ack(a Ack) error {
	if a.None {
		return nil
	}
	behind := uint64(uint16(e.world.next-1) - a.Newest)
	if behind >= e.world.next {
		return fmt.Errorf("%w: snapshot %d of %d", ErrAck, a.Newest, e.world.next)
	}
	if behind >= Ring {
		return nil
	}
	newest := e.world.next - 1 - behind
	if e.sent[newest%Ring] != newest+1 {
		return fmt.Errorf("%w: snapshot %d was not sent", ErrAck, a.Newest)
	}
	e.mark(newest)
	for i := range uint64(64) {
		if a.Window>>i&1 != 0 && newest > i {
			e.mark(newest - i - 1)
		}
	}
	return nil
}

func (e *Encoder) mark(seq uint64) {
	if at := seq % Ring; e.sent[at] == seq+1 {
		e.acked[at] = true
		e.newest = max(e.newest, seq+1)
	}
}

// borrow makes a scratch copy of a baseline's state.
func (w *walk) borrow(from *state) {
	w.state.copyFrom(from)
	n := w.hist.base.Len()
	w.state.last, w.state.rested = resize(w.state.last, len(w.schema.fields)*n), resize(w.state.rested, n)
	clear(w.state.last)
	clear(w.state.rested)
	copy(w.state.last, from.last)
	copy(w.state.rested, from.rested)
}

// begin prepares the history once the mask is known.
func (w *walk) begin(mask uint32, get func(lag int) *Set) {
	w.hist.choose(mask, get)
	w.hist.index()
	w.hist.bound(w.schema)
}
