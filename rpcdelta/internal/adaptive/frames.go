package adaptive

// Frames is a ring buffer of accepted frames by sequence number. A frame takes its components, 8
// bytes, and its byte strings. Not safe for concurrent use.
type Frames struct {
	width, blobs int
	seqs         []uint64 // by slot: sequence number plus 1, or 0
	ints         []int32
	bytes        [][]byte
	newest       uint64 // sequence number of the last Put
	diffs        []byte // scratch of refFrames.diffs
}

// NewFrames returns a ring of capacity frames with the given numbers of components and byte
// strings.
func NewFrames(ints, blobs, capacity int) *Frames {
	f := &Frames{
		width: ints,
		blobs: blobs,
		seqs:  make([]uint64, capacity),
		ints:  make([]int32, capacity*ints),
		diffs: make([]byte, ints+blobs+7),
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
// sequence numbers older. It does not allocate once the byte strings have grown.
func (f *Frames) Put(seq uint64, r *Row) {
	i := f.slot(seq)
	f.seqs[i], f.newest = seq+1, seq
	copy(f.ints[i*f.width:(i+1)*f.width], r.Ints)
	for k, b := range r.Bytes {
		at := &f.bytes[i*f.blobs+k]
		*at = append((*at)[:0], b...)
	}
}

// Get returns frame seq, valid until its slot is overwritten, and whether it is stored.
func (f *Frames) Get(seq uint64) (Row, bool) {
	i := f.slot(seq)
	if f.seqs[i] != seq+1 {
		return Row{}, false
	}
	return Row{Ints: f.intsOf(i), Bytes: f.bytesOf(i)}, true
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
