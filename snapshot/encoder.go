package snapshot

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Baseline is what a payload is coded against. Both ends must have it.
type Baseline struct {
	// Distance is the distance from the snapshot to its baseline, 1 to 62. 0 means the initial set,
	// or with Empty an empty one.
	Distance int
	// Step is the distance between the snapshots that the client receives, 1 to 4. The payload
	// refers to the sets 1, 2, 4 and 6 steps before the baseline too. 0 means that it does not.
	Step int
	// Empty means an empty baseline.
	Empty bool
}

// Info describes an encoded or decoded snapshot.
type Info struct {
	Baseline
	// Seq is the low 16 bits of the sequence number.
	Seq uint16
	// Objects is the number of objects, 0 after an error of the decoder.
	Objects int
	// Bytes is the size of the payload.
	Bytes int
}

// Encoder encodes the snapshots of worlds. What it returns depends on the world and the baseline
// alone, so any client that has the baseline can decode it. The zero value is ready. Not safe for
// concurrent use; several encoders may be used for one world at the same time, but not while the
// caller fills a set.
type Encoder struct {
	codec payloadCodec
	empty *Set          // baseline of parts without one
	views [2 + refs]Set // of a part: the newest snapshot, its baseline and the references
}

// checkEvery is the number of snapshots per divergence check.
const checkEvery = 60

// Append appends the newest snapshot of w, coded against a baseline, and returns the extended
// slice. If it takes more than limit bytes, the error is [ErrTooLarge]; a baseline that the world
// does not have is [ErrBaselineMissing]. After an error dst is unchanged. Append does not allocate
// once warm if dst has room.
func (e *Encoder) Append(dst []byte, w *World, b Baseline, limit int) ([]byte, Info, error) {
	pc := &e.codec
	if pc.schema != w.schema {
		pc.init(w.schema, false)
	}
	if w.next == 0 {
		return dst, Info{}, fmt.Errorf("%w: the world has no snapshot: call Begin", ErrBaselineMissing)
	}
	n := w.next - 1
	cur := w.set(n)
	pc.oldOnly = false
	b.Empty = b.Distance == 0 && (b.Empty || w.initial.Len() == 0)
	info := Info{Baseline: b, Seq: uint16(n), Objects: cur.Len()}
	if err := w.load(&pc.refs, n, b); err != nil {
		return dst, info, err
	}
	h := header{seq: uint16(n), distance: uint64(b.Distance), empty: b.Empty}
	if h.checked = n%w.every == 0 || b.Distance == 0 && !b.Empty; h.checked {
		h.hash = pc.refs.base.hash()
	}
	pc.Enc.Reset(h.append(dst), 0)
	pc.encode(cur, w.model, b.Distance > 0)
	out := pc.Enc.Finish()
	if info.Bytes = len(out) - len(dst); info.Bytes > limit {
		return dst, info, fmt.Errorf("%w: snapshot %d of %d objects takes %d bytes, want at most %d",
			ErrTooLarge, info.Seq, info.Objects, info.Bytes, limit)
	}
	return out, info, nil
}

// load loads baseline and references of snapshot n.
func (w *World) load(refs *refFrames, n uint64, b Baseline) error {
	base := n - uint64(b.Distance)
	switch {
	case b.Distance == 0 && b.Empty:
		refs.begin(w.empty, 1, 0)
	case b.Distance == 0:
		refs.begin(w.initial, 1, 0)
	case b.Distance < 0 || b.Step < 0 || b.Step > maxStep || b.Distance+maxLag*b.Step >= Ring || uint64(b.Distance+maxLag*b.Step) > n:
		return fmt.Errorf("%w: snapshot %d, %d before the newest", ErrBaselineMissing, uint16(base), b.Distance)
	default:
		refs.begin(w.set(base), int64(b.Distance), b.Step)
	}
	refs.load(func(lag int) *Set { return w.set(base - uint64(lag)) })
	return nil
}

// init prepares a codec.
func (pc *payloadCodec) init(s *Schema, decoding bool) {
	pc.schema, pc.probs = s, make([]prob, s.layout.size)
	pc.Coder = rangecoder.NewCoder(rangecoder.MaxCount, decoding)
}

// encode codes cur against the loaded baseline, which is a snapshot if delta is set.
func (pc *payloadCodec) encode(cur *Set, m *modelSet, delta bool) {
	if delta {
		pc.codeStep(pc.refs.step)
	}
	pc.begin(m.at(&pc.refs))
	pc.codePhysics(cur)
	pc.loadPhysics(cur)
	pc.objects(cur)
	pc.rows(cur)
}
