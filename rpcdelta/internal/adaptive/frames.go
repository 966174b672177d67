package adaptive

// Frames keeps the last frames of a stream that were taken, by sequence. They
// lie in one array: a frame takes its components, 8 bytes, and its byte strings.
// Not safe for concurrent use.
type Frames struct {
	width, blobs int
	seqs         []uint64 // by slot: the sequence plus 1, or 0
	ints         []int32
	bytes        [][]byte
	newest       uint64
	moved        []byte // scratch: see [past.compare]
}

// NewFrames makes room for capacity frames of so many components and byte
// strings.
func NewFrames(ints, blobs, capacity int) *Frames {
	f := &Frames{width: ints, blobs: blobs, seqs: make([]uint64, capacity), ints: make([]int32, capacity*ints), moved: make([]byte, ints+blobs+7)}
	if blobs > 0 {
		f.bytes = make([][]byte, capacity*blobs)
	}
	return f
}

// Cap is how many sequences it spans.
func (f *Frames) Cap() int { return len(f.seqs) }

func (f *Frames) slot(seq uint64) int { return int(seq % uint64(len(f.seqs))) }

// Put keeps a copy of r, newer than all before, in place of the frame Cap
// sequences older. Nothing is allocated once the byte strings have room.
func (f *Frames) Put(seq uint64, r *Row) {
	i := f.slot(seq)
	f.seqs[i], f.newest = seq+1, seq
	copy(f.ints[i*f.width:(i+1)*f.width], r.Ints)
	for k, b := range r.Bytes {
		at := &f.bytes[i*f.blobs+k]
		*at = append((*at)[:0], b...)
	}
}

// Get gives a frame, valid until its slot is put again; false if it is not kept.
func (f *Frames) Get(seq uint64) (Row, bool) {
	i := f.slot(seq)
	if f.seqs[i] != seq+1 {
		return Row{}, false
	}
	return Row{f.intsOf(i), f.bytesOf(i)}, true
}

// Has says whether a frame is kept.
func (f *Frames) Has(seq uint64) bool { return f.seqs[f.slot(seq)] == seq+1 }

// Reset forgets all frames. Their room is kept.
func (f *Frames) Reset() { clear(f.seqs) }

func (f *Frames) intsOf(slot int) []int32 {
	return f.ints[slot*f.width:][:f.width]
}

func (f *Frames) bytesOf(slot int) [][]byte {
	return f.bytes[slot*f.blobs:][:f.blobs]
}
