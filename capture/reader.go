package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// Record is one record of a file.
type Record struct {
	// Number counts the records of the file from 1, Offset is where it begins and Size how many bytes it has.
	Number int
	Offset int64
	Size   int
	// At is the time since the file's beginning. Records of different sessions may be a little out of order.
	At   time.Duration
	Body Body
}

// Reader reads a file. Any bytes are safe: lengths have limits, what is read takes memory for one record. Not safe
// for concurrent use.
type Reader struct {
	in     *bufio.Reader
	start  Start
	at     time.Duration
	offset int64
	number int
	buf    []byte
	first  *Record // was read by NewReader
	ended  bool
}

// NewReader begins to read a file. A file that is none wraps [ErrForeign].
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{in: bufio.NewReaderSize(r, 64<<10)}
	head := make([]byte, headerSize)
	n, err := io.ReadFull(in.in, head)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if string(head[:min(n, len(magic))]) == magic[:min(n, len(magic))] && n > 0 {
			return nil, &FileError{0, fmt.Errorf("%w within its first %d bytes", ErrCut, headerSize)}
		}
		return nil, &FileError{0, fmt.Errorf("%w: it has %d bytes", ErrForeign, n)}
	case err != nil:
		return nil, err
	case string(head[:len(magic)]) != magic:
		return nil, &FileError{0, fmt.Errorf("%w: it begins with %q", ErrForeign, head)}
	case head[len(magic)] != version:
		return nil, &FileError{int64(len(magic)), fmt.Errorf("%w: version %d, want %d", ErrForeign, head[len(magic)], version)}
	}
	in.offset = int64(headerSize)
	first, err := in.Next()
	if err != nil {
		return nil, err
	}
	start, ok := first.Body.(*Start)
	if !ok {
		return nil, &FileError{first.Offset, fmt.Errorf("%w: its first record is no start", ErrDamaged)}
	}
	in.start, in.first = *start, &first
	return in, nil
}

// Start is the file's first record, which Next gives too.
func (r *Reader) Start() Start { return r.start }

// Offset is where the next record begins.
func (r *Reader) Offset() int64 { return r.offset }

// Next gives the next record. Behind the end of a whole file it is [io.EOF]; else the error is a [FileError], and all
// that Next gave before is good. Byte slices are valid until the next call.
func (r *Reader) Next() (Record, error) {
	if r.first != nil {
		first := *r.first
		r.first = nil
		return first, nil
	}
	b, size, err := r.next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return Record{}, io.EOF
		}
		return Record{}, &FileError{r.offset, err}
	}
	elapsed, n := binary.Varint(b)
	if n <= 0 || n == len(b) {
		return Record{}, &FileError{r.offset, fmt.Errorf("%w: a record without time or type", ErrDamaged)}
	}
	body, err := parse(b[n:])
	if err != nil {
		return Record{}, &FileError{r.offset, fmt.Errorf("%w: %w", ErrDamaged, err)}
	}
	r.at += time.Duration(elapsed)
	r.number++
	rec := Record{Number: r.number, Offset: r.offset, Size: size, At: r.at, Body: body}
	r.offset += int64(size)
	if _, ok := body.(*End); ok {
		r.ended = true
	}
	return rec, nil
}

// next gives what the next record's check sum covers but for its length, and the size of all of it.
func (r *Reader) next() (b []byte, size int, err error) {
	length, n, err := r.length()
	if err != nil {
		return nil, 0, err
	}
	sum := crc32.Checksum(binary.AppendUvarint(nil, length), castagnoli)
	need := int(length) + checksumSize
	if cap(r.buf) < need {
		r.buf = make([]byte, 0, max(need, 4096))
	}
	b = r.buf[:need]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return nil, 0, cut(err)
	}
	b, tail := b[:length], b[length:]
	if sum = crc32.Update(sum, castagnoli, b); sum != binary.LittleEndian.Uint32(tail) {
		return nil, 0, fmt.Errorf("%w: a check sum is wrong", ErrDamaged)
	}
	return b, n + need, nil
}

// length reads the length of the next record; [io.EOF] means that the file ends here as it should.
func (r *Reader) length() (length uint64, n int, err error) {
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		if r.ended {
			return 0, 0, io.EOF
		}
		return 0, 0, fmt.Errorf("%w: it has no end mark", ErrCut)
	}
	if r.ended {
		return 0, 0, fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	counted := &countingReader{in: r.in}
	if length, err = binary.ReadUvarint(counted); err != nil {
		return 0, 0, cut(err)
	}
	if length == 0 || length > MaxRecord || counted.n != len(binary.AppendUvarint(nil, length)) {
		return 0, 0, fmt.Errorf("%w: a record of %d bytes, want 1 to %d", ErrDamaged, length, MaxRecord)
	}
	return length, counted.n, nil
}

// cut says what an error within a record means.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w within a record", ErrCut)
	}
	if errors.Is(err, errOverflow) {
		return fmt.Errorf("%w: a length of more than 64 bits", ErrDamaged)
	}
	return err
}

var errOverflow = errors.New("overflow")

// countingReader reads the bytes of one length.
type countingReader struct {
	in *bufio.Reader
	n  int
}

func (c *countingReader) ReadByte() (byte, error) {
	if c.n == binary.MaxVarintLen32 {
		return 0, errOverflow
	}
	c.n++
	return c.in.ReadByte()
}
