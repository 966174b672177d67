package adaptive

import (
	"github.com/uplink-rpc/uplink/schema"
)

// Frames is a ring buffer of accepted frames by sequence number. A frame takes its components, 8
// bytes, and its byte strings. Not safe for concurrent use.
type Frames struct {
	width, blobs int
	seqs         []uint64 // by slot: sequence number plus 1, or 0
	shapes       []Shape  // by slot: of the payload whose newest frame this is, or zero
	ints         []int32
	bytes        [][]byte
	newest       uint64 // sequence number of the last Put
	diffs        []byte // scratch of refFrames.diffs
}

// NewFrames returns a ring of capacity frames with the given numbers of components and byte
// strings.
func NewFrames(ints, blobs, capacity int) *Frames {
	f := &Frames{
		width:  ints,
		blobs:  blobs,
		seqs:   make([]uint64, capacity),
		shapes: make([]Shape, capacity),
		ints:   make([]int32, capacity*ints),
		diffs:  make([]byte, ints+blobs+7),
	}
	if blobs > 0 {
		f.bytes = make([][]byte, capacity*blobs)
	}
	return f
}

// Cap returns the number of sequence numbers that the ring spans.
func (f *Frames) Cap() int { return len(f.seqs) }

func (f *Frames) slot(seq uint64) int { return int(seq % uint64(len(f.seqs))) }

// Put stores a copy of r, which must be newer than all frames before, and overwrites the frame Cap
// sequence numbers older. s is the shape of the accepted payload whose newest frame this is, or
// zero. Put does not allocate once the byte strings have grown.
func (f *Frames) Put(seq uint64, r *schema.Frame, s Shape) {
	i := f.slot(seq)
	f.seqs[i], f.shapes[i], f.newest = seq+1, s, seq
	copy(f.ints[i*f.width:(i+1)*f.width], r.Ints)
	for k, b := range r.Bytes {
		at := &f.bytes[i*f.blobs+k]
		*at = append((*at)[:0], b...)
	}
}

// Get returns frame seq, valid until its slot is overwritten, and whether it is stored.
func (f *Frames) Get(seq uint64) (schema.Frame, bool) {
	i := f.slot(seq)
	if f.seqs[i] != seq+1 {
		return schema.Frame{}, false
	}
	return schema.Frame{Ints: f.intsOf(i), Bytes: f.bytesOf(i)}, true
}

// Has reports whether frame seq is stored.
func (f *Frames) Has(seq uint64) bool { return f.seqs[f.slot(seq)] == seq+1 }

// Reset removes all frames and keeps the memory.
func (f *Frames) Reset() { clear(f.seqs) }

func (f *Frames) intsOf(slot int) []int32 {
	return f.ints[slot*f.width:][:f.width]
}

func (f *Frames) bytesOf(slot int) [][]byte {
	return f.bytes[slot*f.blobs:][:f.blobs]
}

// view is the set of frames that are known while a frame is coded: accepted frames up to the
// baseline, and the earlier frames of the payload.
type view struct {
	known  *Frames
	slot   int   // slot of base in known
	base   int64 // newest sequence number to look up in known; -1 if none
	floor  int64 // sequence numbers up to floor are not read
	gap    span  // sequence numbers in it are not read
	first  int64 // sequence number of frames[0]
	frames []*schema.Frame
}

// span is the sequence numbers between two others, which it does not include.
type span struct{ from, to int64 }

func (s *span) includes(seq int64) bool { return seq > s.from && seq < s.to }

// newView returns a view of the frames after floor, up to base.
func newView(known *Frames, base, floor int64) view {
	floor = max(floor, base-int64(known.Cap()), -1)
	return view{known: known, slot: known.slot(uint64(base)), base: base, floor: floor}
}

// find returns the slot of frame seq, or -1 if it is not an accepted frame in the view.
func (v *view) find(seq int64) int {
	if seq <= v.floor || seq > v.base {
		return -1
	}
	i := v.slot - int(v.base-seq)
	if i < 0 {
		i += len(v.known.seqs)
	}
	if v.known.seqs[i] != uint64(seq)+1 {
		return -1
	}
	return i
}

// ints returns the components of frame seq, or nil.
func (v *view) ints(seq int64) []int32 {
	if seq > v.base {
		if r := v.frame(seq); r != nil {
			return r.Ints[:v.known.width:v.known.width]
		}
		return nil
	}
	if i := v.find(seq); i >= 0 {
		return v.known.intsOf(i)
	}
	return nil
}

// bytes returns the byte strings of frame seq.
func (v *view) bytes(seq int64) (b [][]byte, ok bool) {
	if i := v.find(seq); i >= 0 {
		return v.known.bytesOf(i), true
	}
	if r := v.frame(seq); r != nil {
		return r.Bytes, true
	}
	return nil, false
}

// frame returns frame seq if it is an earlier frame of the payload, or nil.
func (v *view) frame(seq int64) *schema.Frame {
	if i := seq - v.first; seq > v.base && i >= 0 && i < int64(len(v.frames)) {
		return v.frames[i]
	}
	return nil
}
