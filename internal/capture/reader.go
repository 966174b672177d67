package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/uplink-rpc/uplink/internal/record"
)

// The errors of a file's contents. A [FileError] wraps one of them.
var (
	// ErrForeign means that a file is no capture, or has an unsupported version.
	ErrForeign = errors.New("not a capture file that this version reads")
	// ErrCut means that a file has no end record: the writer was killed, or the file was truncated.
	ErrCut = errors.New("the file is cut off")
	// ErrDamaged means that bytes of a file were changed.
	ErrDamaged = errors.New("the file is damaged")
)

// FileError is an error of a file's contents.
type FileError struct {
	// Offset is the start of the first unreadable record, in bytes. Everything before it is intact.
	Offset int64
	Err    error
}

// Error returns the offset and the error.
func (e *FileError) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset, e.Err) }

// Unwrap returns the error.
func (e *FileError) Unwrap() error { return e.Err }

// Record is one record of a file.
type Record struct {
	// Number counts the records of the file from 1. The record has Size bytes, from Offset on.
	Number int
	Offset int64
	Size   int
	// At is the time since the start of the file. It may decrease from a record of one session to a
	// record of another session.
	At   time.Duration
	Body record.Body
}

// Reader reads a file. Its input may be hostile: lengths are limited, and memory is only used for
// one record. It is not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	start  record.Start
	at     time.Duration
	offset int64
	number int
	buf    []byte
	first  *Record // was read by NewReader
	ended  bool
}

// NewReader returns a reader of a file. The error wraps [ErrForeign] if the file is no capture.
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
	start, ok := first.Body.(*record.Start)
	if !ok {
		return nil, &FileError{first.Offset, fmt.Errorf("%w: its first record is no start", ErrDamaged)}
	}
	in.start, in.first = *start, &first
	return in, nil
}

// Start returns the first record of the file. Next returns it too.
func (r *Reader) Start() record.Start { return r.start }

// Offset returns the position of the next record in bytes.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the next record. After the last record of a complete file the error is [io.EOF].
// Every other error of the contents is a [FileError]. Byte slices are valid until the next call.
func (r *Reader) Next() (Record, error) {
	if r.first != nil {
		first := *r.first
		r.first = nil
		return first, nil
	}
	b, size, err := r.read()
	if errors.Is(err, io.EOF) {
		return Record{}, io.EOF
	}
	if err != nil {
		return Record{}, &FileError{r.offset, err}
	}
	elapsed, n := binary.Varint(b)
	if n <= 0 || n == len(b) {
		return Record{}, &FileError{r.offset, fmt.Errorf("%w: a record without time or type", ErrDamaged)}
	}
	body, err := record.Parse(b[n:])
	if err != nil {
		return Record{}, &FileError{r.offset, fmt.Errorf("%w: %w", ErrDamaged, err)}
	}
	r.at += time.Duration(elapsed)
	r.number++
	rec := Record{Number: r.number, Offset: r.offset, Size: size, At: r.at, Body: body}
	r.offset += int64(size)
	_, r.ended = body.(*record.End)
	return rec, nil
}

// read returns the content of the next record, and the size of the whole record. It returns
// [io.EOF] after the end record.
func (r *Reader) read() (content []byte, size int, err error) {
	length, n, err := r.length()
	if err != nil {
		return nil, 0, err
	}
	sum := crc32.Checksum(binary.AppendUvarint(nil, length), castagnoli)
	need := int(length) + checksumSize
	if cap(r.buf) < need {
		r.buf = make([]byte, 0, max(need, 4096))
	}
	b := r.buf[:need]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return nil, 0, truncated(err)
	}
	content, tail := b[:length], b[length:]
	if crc32.Update(sum, castagnoli, content) != binary.LittleEndian.Uint32(tail) {
		return nil, 0, fmt.Errorf("%w: a checksum is wrong", ErrDamaged)
	}
	return content, n + need, nil
}

// length reads the length of the next record, which takes n bytes.
func (r *Reader) length() (length uint64, n int, err error) {
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		if r.ended {
			return 0, 0, io.EOF
		}
		return 0, 0, fmt.Errorf("%w: it has no end record", ErrCut)
	}
	if r.ended {
		return 0, 0, fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	for last := byte(0x80); last >= 0x80; n++ {
		if n == binary.MaxVarintLen32 {
			return 0, 0, fmt.Errorf("%w: a length of more than %d bytes", ErrDamaged, n)
		}
		if last, err = r.in.ReadByte(); err != nil {
			return 0, 0, truncated(err)
		}
		length |= uint64(last&0x7f) << (7 * n)
	}
	if length == 0 || length > record.MaxSize || n != len(binary.AppendUvarint(nil, length)) {
		return 0, 0, fmt.Errorf("%w: a record of %d bytes, want 1 to %d", ErrDamaged, length, record.MaxSize)
	}
	return length, n, nil
}

// truncated returns the error for the end of the input within a record.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w within a record", ErrCut)
	}
	return err
}
