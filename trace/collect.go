package trace

import (
	"unsafe"

	"github.com/uplink-rpc/uplink/schema"
)

const (
	// maxExcess is how much more than bytesPerValue for each value collected frames may take, in bytes.
	maxExcess     = 24 << 20
	bytesPerValue = 16

	frameSize  = int(unsafe.Sizeof(schema.Frame{}))
	stringSize = int(unsafe.Sizeof([]byte{}))
	// blockSize is the size of the blocks that components and bytes are copied to.
	blockSize = 64 << 10
)

// collector copies frames of a schema to blocks, and makes a slice of them once their number is known: a slice that
// grows would take more than twice its size.
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
	copy(c.ints.take(len(f.Ints)), f.Ints)
	size := 4 * len(f.Ints)
	lengths := c.lengths.take(len(f.Bytes))
	for i, b := range f.Bytes {
		copy(c.bytes.take(len(b)), b)
		lengths[i] = int32(len(b))
		size += len(b) + 4
	}
	c.n++
	// While blocks are filled, the garbage of reading takes as much again, at most. The rest comes when there is none.
	c.excess += int64(2*size + frameSize + stringSize*len(f.Bytes) - bytesPerValue*c.values)
	return c.excess < maxExcess
}

// frames returns what was collected. The frames share the collector's memory.
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
		all[i].Ints = c.ints.take(ints)
		all[i].Bytes, strs = strs[:blobs:blobs], strs[blobs:]
		for k, n := range c.lengths.take(blobs) {
			all[i].Bytes[k] = c.bytes.take(int(n))
		}
	}
	return all
}

// blocks is memory for slices, in blocks of blockSize. The zero value is empty.
type blocks[T any] struct {
	all  [][]T
	at   int // the current block, and
	used int // how much of it was taken
}

// take returns a slice of n elements, at most a block's. After rewind the same calls return the same slices.
func (b *blocks[T]) take(n int) []T {
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
