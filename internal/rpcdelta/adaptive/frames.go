package adaptive

import (
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/ringcache"
)

// Frames is a ring of accepted frames by sequence number. A frame needs memory for its components
// and byte strings, and 16 bytes more. Not safe for concurrent use.
type Frames struct {
	width, blobs int
	ring         *ringcache.Ring[accepted]
	ints         []int32
	bytes        [][]byte
	newest       uint64 // sequence number of the last Put
	diffs        []byte // scratch of refFrames.diffs
}

// accepted is a stored frame. Its place selects its components in ints and its byte strings in
// bytes.
type accepted struct {
	place uint16 // number of the slot
	shape Shape  // shape of the payload whose newest frame is this one; zero if there is none
}

// NewFrames returns a ring of capacity frames, at most 65,536, with the given numbers of components
// and byte strings.
func NewFrames(ints, blobs, capacity int) *Frames {
	f := &Frames{
		width: ints,
		blobs: blobs,
		ints:  make([]int32, capacity*ints),
		diffs: make([]byte, ints+blobs+7),
	}
	place := 0
	f.ring = ringcache.NewFunc(capacity, func(a *accepted) { a.place, place = uint16(place), place+1 })
	if blobs > 0 {
		f.bytes = make([][]byte, capacity*blobs)
	}
	return f
}

// Cap returns the number of sequence numbers that the ring spans.
func (f *Frames) Cap() int { return f.ring.Cap() }

// Put stores a copy of r, which must be newer than all stored frames, and overwrites the frame that
// is Cap sequence numbers older. s is the shape of the accepted payload whose newest frame is r, or
// zero. Put does not allocate once the byte strings have grown.
func (f *Frames) Put(seq uint64, r *schema.Frame, s Shape) {
	a := f.ring.Put(seq)
	a.shape, f.newest = s, seq
	copy(f.intsOf(a), r.Ints)
	for k, b := range r.Bytes {
		at := &f.bytesOf(a)[k]
		*at = append((*at)[:0], b...)
	}
}

// Get returns frame seq, valid until its slot is overwritten, and whether it is stored.
func (f *Frames) Get(seq uint64) (r schema.Frame, ok bool) {
	if a := f.ring.Get(seq); a != nil {
		r.Ints, r.Bytes = f.intsOf(a), f.bytesOf(a)
		return r, true
	}
	return r, false
}

// Has reports whether frame seq is stored.
func (f *Frames) Has(seq uint64) bool { return f.ring.Get(seq) != nil }

// Reset removes all frames and keeps the memory.
func (f *Frames) Reset() { f.ring.Reset() }

func (f *Frames) intsOf(a *accepted) []int32 {
	return f.ints[int(a.place)*f.width:][:f.width]
}

func (f *Frames) bytesOf(a *accepted) [][]byte {
	return f.bytes[int(a.place)*f.blobs:][:f.blobs]
}

// view is the set of frames that are known while a frame is coded: accepted frames up to the
// baseline, and the earlier frames of the payload.
type view struct {
	known  *Frames
	base   int64 // newest sequence number to look up in known; -1 if none
	floor  int64 // sequence numbers up to floor are not read
	gap    span  // open interval of sequence numbers that are not read
	first  int64 // sequence number of frames[0]
	frames []*schema.Frame
}

// span is the open interval of sequence numbers between from and to.
type span struct{ from, to int64 }

func (s *span) includes(seq int64) bool { return seq > s.from && seq < s.to }

// newView returns a view of the frames after floor, up to base.
func newView(known *Frames, base, floor int64) view {
	floor = max(floor, base-int64(known.Cap()), -1)
	return view{known: known, base: base, floor: floor}
}

// find returns frame seq, or nil if it is not an accepted frame in the view.
func (v *view) find(seq int64) *accepted {
	if seq <= v.floor || seq > v.base {
		return nil
	}
	return v.known.ring.Get(uint64(seq))
}

// ints returns the components of frame seq, or nil.
func (v *view) ints(seq int64) []int32 {
	if seq > v.base {
		if r := v.frame(seq); r != nil {
			return r.Ints[:v.known.width:v.known.width]
		}
		return nil
	}
	if a := v.find(seq); a != nil {
		return v.known.intsOf(a)
	}
	return nil
}

// bytes returns the byte strings of frame seq.
func (v *view) bytes(seq int64) (b [][]byte, ok bool) {
	if a := v.find(seq); a != nil {
		return v.known.bytesOf(a), true
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
