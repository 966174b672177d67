package snapshot

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Info says what an encoder made.
type Info struct {
	// Seq names the snapshot.
	Seq uint16
	// Baseline is how many snapshots before it its baseline is, 0 for the initial set or nothing.
	Baseline int
	// Objects of the set and Bytes of the payload.
	Objects, Bytes int
}

// Encoder codes a world's snapshots for one player. It keeps a state beside each that may still become a baseline: as
// many as are on their way, and a few.
type Encoder struct {
	world  *World
	walk   walk
	pairs  []pair
	sent   []fate
	states shelf[*state]
	newest uint64 // sequence + 1 of the newest that was acked
	due    int    // snapshots until the next hash

	epoch     uint8
	since     uint64 // only snapshots of the epoch are baselines: the first of them
	resets    uint64
	noInitial bool
}

// fate is what became of a snapshot.
type fate struct {
	next  uint64 // sequence + 1 of what was sent, or 0
	acked bool
}

// NewEncoder makes an encoder of the world's snapshots.
func NewEncoder(s *Schema, w *World) *Encoder {
	e := &Encoder{world: w, sent: make([]fate, w.cfg.Ring), states: newShelf(w.cfg.Ring, s.newState)}
	e.walk.schema, e.walk.Coder = s, rangecoder.NewCoder(rangecoder.MaxCount, false)
	return e
}

// Append appends the newest snapshot, against the newest one that was acked, and gives the extended slice. A snapshot
// of more than limit bytes is [ErrTooLarge], one that was coded before [ErrSent], with dst unchanged. It allocates
// nothing once warm and dst has room.
func (e *Encoder) Append(dst []byte, limit int) ([]byte, Info, error) {
	if e.world.next == 0 {
		return dst, Info{}, fmt.Errorf("snapshot: %w: the world has none yet: Begin first", ErrBaselineMissing)
	}
	seq := e.world.next - 1
	cur, w := e.world.set(seq), &e.walk
	h := e.header(seq)
	info := Info{Seq: h.seq, Baseline: int(h.distance), Objects: cur.Len()}
	if e.fate(seq).next == seq+1 {
		return dst, info, fmt.Errorf("%w: snapshot %d", ErrSent, info.Seq)
	}
	out := e.code(h.append(dst), seq, h.distance, cur)
	info.Bytes = len(out) - len(dst)
	if info.Bytes > limit {
		e.states.giveBack(w.state)
		return dst, info, fmt.Errorf("%w: snapshot %d of %d objects takes %d bytes, want at most %d",
			ErrTooLarge, info.Seq, info.Objects, info.Bytes, limit)
	}
	w.keep(e.pairs)
	e.states.put(seq, w.state)
	*e.fate(seq) = fate{next: seq + 1}
	if e.due--; h.checked {
		e.due = e.world.cfg.CheckEvery - 1
	}
	if oldest := seq + reach + 1; oldest > e.ring() {
		e.states.dropBefore(oldest - e.ring()) // too old to be a baseline
	}
	return out, info, nil
}

// header chooses the baseline and loads what is known of it.
func (e *Encoder) header(seq uint64) header {
	h, w := header{seq: uint16(seq)}, &e.walk
	w.Decoding, w.hist.distance = false, 1
	h.checked = e.due <= 0
	if e.newest > 0 && seq+1 > e.newest && seq+1-e.newest < e.ring()-reach {
		base := e.newest - 1
		h.distance = seq - base
		w.hist.base, w.hist.distance, w.from = e.world.set(base), int64(h.distance), e.states.get(base)
		if h.checked {
			h.hash = hash(w.hist.base, w.from)
		}
		return h
	}
	w.hist.base, w.from, h.epoch = e.world.initial, e.world.prior, e.epoch
	if h.nothing = e.noInitial || e.world.initial.Len() == 0; h.nothing {
		w.hist.base = e.world.empty
	}
	h.checked = h.checked || !h.nothing
	if h.hash = e.world.start; h.checked && h.nothing {
		h.hash = hash(w.hist.base, w.from)
	}
	return h
}

// code appends the coded part. The state goes on in one that is taken for it.
func (e *Encoder) code(dst []byte, seq, distance uint64, cur *Set) []byte {
	w := &e.walk
	w.state = e.states.take()
	w.borrow(w.from)
	w.Enc.Reset(dst, 0)
	if base := seq - distance; distance > 0 {
		w.begin(w.mask(e.known(base)), func(lag int) *Set { return e.world.set(base - uint64(lag)) })
	} else {
		w.begin(0, nil)
	}
	e.pairs, _ = w.names(e.pairs, cur)
	w.rows(e.pairs, cur)
	return w.Enc.Finish()
}

func (e *Encoder) ring() uint64 { return uint64(len(e.sent)) }

func (e *Encoder) fate(seq uint64) *fate { return &e.sent[seq%e.ring()] }

// known says which sets before baseline base were acked.
func (e *Encoder) known(base uint64) (mask uint32) {
	for lag := uint64(1); lag <= reach && lag <= base && base-lag >= e.since; lag++ {
		if f := e.fate(base - lag); f.acked && f.next == base-lag+1 {
			mask |= 1 << (lag - 1)
		}
	}
	return mask
}

// Ack takes the decoder's ack. Old and repeated ones do nothing. One that names a snapshot that was never sent is
// [ErrAck], and does nothing. One of another epoch has the encoder start again, at most once in a ring of snapshots.
func (e *Encoder) Ack(a Ack) error {
	if !a.None {
		newest, known, err := e.check(a)
		if err != nil {
			return err
		}
		if known {
			e.take(newest, a.Window)
		}
	}
	e.noInitial = e.noInitial || a.NoInitial
	if a.Epoch != e.epoch {
		e.reset(a.Epoch)
	}
	return nil
}

// check says which snapshot the ack's newest is, and whether it is recent enough to matter.
func (e *Encoder) check(a Ack) (newest uint64, recent bool, err error) {
	behind := uint64(uint16(e.world.next-1) - a.Newest)
	if behind >= e.world.next {
		return 0, false, fmt.Errorf("%w: snapshot %d of %d", ErrAck, a.Newest, e.world.next)
	}
	if behind >= e.ring() {
		return 0, false, nil
	}
	newest = e.world.next - 1 - behind
	if e.fate(newest).next != newest+1 {
		return 0, false, fmt.Errorf("%w: snapshot %d was not sent", ErrAck, a.Newest)
	}
	for i := range uint64(64) {
		if a.Window>>i&1 == 0 {
			continue
		}
		if i >= newest {
			return 0, false, fmt.Errorf("%w: the one %d before snapshot %d", ErrAck, i+1, a.Newest)
		}
		seq := newest - i - 1
		if seq+e.ring() >= e.world.next && e.fate(seq).next != seq+1 {
			return 0, false, fmt.Errorf("%w: snapshot %d was not sent", ErrAck, uint16(seq))
		}
	}
	return newest, true, nil
}

// take notes what is acked.
func (e *Encoder) take(newest, window uint64) {
	e.mark(newest)
	for i := range min(newest, 64) {
		if window>>i&1 != 0 {
			e.mark(newest - i - 1)
		}
	}
	if e.newest > 0 {
		e.states.dropBefore(e.newest - 1)
	}
}

func (e *Encoder) mark(seq uint64) {
	if f := e.fate(seq); f.next == seq+1 && seq >= e.since {
		f.acked = true
		e.newest = max(e.newest, seq+1)
	}
}

// reset opens an epoch: nothing that was sent before is known. Acks from before it are of another epoch too, so it
// happens once in a ring.
func (e *Encoder) reset(epoch uint8) {
	if e.resets > 0 && e.world.next < e.since+e.ring() {
		return
	}
	e.epoch, e.since, e.newest = epoch, e.world.next, 0
	e.resets++
	e.states.clear()
}

// Resets is how often the encoder started again because the decoder asked for it.
func (e *Encoder) Resets() uint64 { return e.resets }

// Memory is how many bytes the encoder keeps of what it sent.
func (e *Encoder) Memory() int { return e.states.memory() + 16*len(e.sent) + 2*cap(e.walk.spare) }
