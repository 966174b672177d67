package trace

import (
	"unsafe"

	"github.com/uplink-rpc/uplink/schema"
)

const (
	// maxExcess limits the memory of collected frames beyond bytesPerValue per value, in bytes.
	maxExcess     = 24 << 20
	bytesPerValue = 16

	frameSize  = int(unsafe.Sizeof(schema.Frame{}))
	stringSize = int(unsafe.Sizeof([]byte{}))
	// blockSize is the size of the blocks that components and bytes are copied to.
	blockSize = 64 << 10
)

// collector copies frames of a schema to blocks, and creates a slice of frames when their number is
// known. A growing slice would take more than twice its size.
type collector struct {
	schema  *schema.Schema
	n       int // frames
	ints    blocks[int32]
	bytes   blocks[byte]
	lengths blocks[int32] // of byte strings
	values  int           // of a frame
	excess  int64         // bytes
}

func newCollector(s *schema.Schema) *collector {
	c := &collector{schema: s}
	for i := range s.Fields() {
		c.values += s.Fields()[i].Values()
	}
	return c
}

// add copies a frame. It reports whether the frames are still within the limit.
func (c *collector) add(f *schema.Frame) bool {
	copy(c.ints.next(len(f.Ints)), f.Ints)
	size := 4 * len(f.Ints)
	lengths := c.lengths.next(len(f.Bytes))
	for i, b := range f.Bytes {
		copy(c.bytes.next(len(b)), b)
		lengths[i] = int32(len(b))
		size += len(b) + 4
	}
	c.n++
	// While reading, the garbage is at most as large as the blocks. The slices are allocated
	// later.
	c.excess += int64(2*size + frameSize + stringSize*len(f.Bytes) - bytesPerValue*c.values)
	return c.excess < maxExcess
}

// frames returns the collected frames. They share the collector's memory.
func (c *collector) frames() []schema.Frame {
	if c.n == 0 {
		return nil
	}
	c.ints.rewind()
	c.bytes.rewind()
	c.lengths.rewind()
	ints, blobs := c.schema.Components(), 0
	for i := range c.schema.Fields() {
		if c.schema.Fields()[i].IsBytes() {
			blobs++
		}
	}
	all := make([]schema.Frame, c.n)
	strs := make([][]byte, c.n*blobs)
	for i := range all {
		all[i].Ints = c.ints.next(ints)
		all[i].Bytes, strs = strs[:blobs:blobs], strs[blobs:]
		for k, n := range c.lengths.next(blobs) {
			all[i].Bytes[k] = c.bytes.next(int(n))
		}
	}
	return all
}

// blocks allocates slices from blocks of blockSize bytes. The zero value is empty.
type blocks[T any] struct {
	all  [][]T
	at   int // current block
	used int // elements used in it
}

// next returns the next slice of n elements, at most a block. After rewind, the same calls return
// the same slices.
func (b *blocks[T]) next(n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	size := blockSize / int(unsafe.Sizeof(zero))
	if len(b.all) != 0 && b.used+n > size {
		b.at, b.used = b.at+1, 0
	}
	if b.at == len(b.all) {
		b.all = append(b.all, make([]T, size))
	}
	b.used += n
	return b.all[b.at][b.used-n : b.used : b.used]
}

func (b *blocks[T]) rewind() { b.at, b.used = 0, 0 }
