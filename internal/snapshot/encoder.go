package snapshot

import "fmt"

// Baseline identifies the set against which a payload is coded. Both ends must have this set.
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

// Encoder encodes the snapshots of worlds. A payload depends only on the world and the baseline, so
// any client that has the baseline can decode it. The zero value is ready. Not safe for concurrent
// use; several encoders may be used for one world at the same time, but not while the caller fills
// a set.
type Encoder struct {
	codec payloadCodec
	empty *Set          // empty baseline of groups
	views [2 + refs]Set // scratch: views of a group's newest snapshot, its baseline and the references
}

// checkEvery is the number of snapshots per divergence check.
const checkEvery = 60

// Append appends the newest snapshot of w, coded against a baseline, and returns the extended
// slice. If it takes more than limit bytes, the error is [ErrTooLarge]; a baseline that the world
// does not have is [ErrBaselineMissing]. After an error dst is unchanged. Append does not allocate
// once warm if dst has room.
func (e *Encoder) Append(dst []byte, w *History, b Baseline, limit int) ([]byte, Info, error) {
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

// AppendObjects appends the coded objects of cur, a group, and returns the extended slice. There is
// no header: the decoder must know the baseline's distance. before returns the group's set that is
// age snapshots older than the baseline, where age is 0 (the baseline) or b.Step times one of
// [References]. Objects that are not in the baseline are left out; left is their number. If
// b.Distance is 0, there is no baseline: before is not called, and all objects are coded.
// AppendObjects does not allocate once warm if dst has room.
func (e *Encoder) AppendObjects(dst []byte, cur *Set, b Baseline, before func(age int) *Set) (coded []byte, left int) {
	pc := &e.codec
	if pc.schema != cur.schema {
		pc.init(cur.schema, false)
		e.empty = cur.schema.NewSet()
	}
	if pc.oldOnly = b.Distance > 0; pc.oldOnly {
		pc.refs.begin(before(0), int64(b.Distance), b.Step)
	} else {
		pc.refs.begin(e.empty, 1, 0)
	}
	pc.refs.load(before)
	pc.Enc.Reset(dst, 0)
	pc.encode(cur, defaultModel(pc.schema), b.Distance > 0)
	return pc.Enc.Finish(), pc.leftOut
}

// AppendGroup appends the newest snapshot of a group, coded against an earlier snapshot of the
// group, in the format of [Encoder.AppendObjects].
func (e *Encoder) AppendGroup(dst []byte, p *Group, b Baseline) (coded []byte, left int) {
	n, k := p.next-1, 0
	return e.AppendObjects(dst, p.view(&e.views[0], n), b, func(age int) *Set {
		k++
		return p.view(&e.views[k], n-uint64(b.Distance+age))
	})
}
