package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Trace contains the recorded frames of an RPC, quantized.
type Trace struct {
	// Name is the file name without directory and extensions.
	Name   string
	Schema *schema.Schema
	// Frames are the rows in order. There is at least one.
	Frames []schema.Frame
}

// At returns frame n of the trace. After the last frame, the trace starts again from frame 0. n
// must not be negative.
func (t *Trace) At(n int) *schema.Frame { return &t.Frames[n%len(t.Frames)] }

// Load reads a whole trace. If s is nil, Load reads the schema file at [SchemaPath]. A trace
// without rows is an error. If the file is truncated, damaged or exceeds a limit, Load returns the
// rows before that point and the error.
//
// For a file of up to 1 GiB, decompressed, Load takes less than 64 MiB plus 16 bytes for each
// value, which is a number or a byte string. Frames with fewer than six values or with long byte
// strings take more than 16 bytes per value; Load stops when the frames take 24 MiB more than 16
// bytes per value. This limit does not apply to a [Reader].
func Load(path string, s *schema.Schema) (*Trace, error) { return LoadFS(osFS{}, path, s) }

// LoadFS is [Load] for files of fsys.
func LoadFS(fsys fs.FS, path string, s *schema.Schema) (*Trace, error) {
	if s == nil {
		var err error
		if s, err = LoadSchemaFS(fsys, SchemaPath(path)); err != nil {
			return nil, err
		}
	}
	r, err := OpenFS(fsys, path, s)
	if err != nil {
		return nil, err
	}
	frames, err := r.readAll()
	err = errors.Join(err, r.Close())
	if len(frames) == 0 {
		return nil, err
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
	return &Trace{Name: name, Schema: s, Frames: frames}, err
}

// osFS opens any path of the operating system.
type osFS struct{}

func (osFS) Open(path string) (fs.File, error) { return os.Open(path) }

// readAll returns the rows before the first error, and the error unless it is the end of the file.
func (r *Reader) readAll() ([]schema.Frame, error) {
	frames := newCollector(r.schema)
	f := r.schema.NewFrame()
	for {
		switch err := r.Read(f); {
		case errors.Is(err, io.EOF) && frames.n == 0:
			return nil, fmt.Errorf("trace: %s: no rows below the header", r.name)
		case errors.Is(err, io.EOF):
			return frames.frames(), nil
		case err != nil:
			return frames.frames(), err
		}
		if !frames.add(f) {
			return frames.frames(), fmt.Errorf("trace: %s: row %d: the frames take %d MiB more than 16 bytes a value, which is the limit; split the trace",
				r.name, r.row, maxExcess>>20)
		}
	}
}

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
	n       int // number of frames
	ints    blocks[int32]
	bytes   blocks[byte]
	lengths blocks[int32] // lengths of byte strings
	values  int           // number of values of a frame
	excess  int64         // bytes
}

func newCollector(s *schema.Schema) *collector {
	c := &collector{schema: s}
	for i := range s.Fields() {
		c.values += s.Fields()[i].Values()
	}
	return c
}

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
	ints, blobs := c.schema.Components(), c.schema.Strings()
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
	size := blockSize / int(unsafe.Sizeof(*new(T)))
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
