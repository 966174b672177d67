package message

import (
	"encoding/binary"
	"fmt"
)

// A bundle is a message with 2 to MaxBundle frames. Its first byte has bundleFlag and, in four
// bits, the number of frames less 2. The frames follow, each with its length as a varint before it.
// The last frame has no length and takes the rest of the message.
const (
	bundleFlag = 1 << 5
	bundleMask = 15
)

// MaxBundle is the maximum number of frames in a bundle. A game sends fewer per tick, and a hostile
// bundle takes no more work than the same number of datagrams.
const MaxBundle = bundleMask + 2

// Bundler collects frames and returns them as one message: a bundle, or a single frame as it is.
// The zero value has no room; see [NewBundler].
type Bundler struct {
	buf   []byte // first byte, then the length and the bytes of each frame
	limit int
	count int
	last  int // offset of the last frame's length
}

// NewBundler returns a Bundler for messages of at most limit bytes.
func NewBundler(limit int) Bundler {
	// The length of the last frame is removed by Take.
	return Bundler{buf: make([]byte, 1, limit+binary.MaxVarintLen16), limit: limit}
}

// Len returns the number of collected frames.
func (b *Bundler) Len() int { return b.count }

// Add adds a frame. It returns false if the frame does not fit. extra is the number of bytes by
// which the message grew in addition to the frame: 0 for the first frame.
func (b *Bundler) Add(frame []byte) (extra int, ok bool) {
	if b.count == 0 {
		if len(frame) > b.limit {
			return 0, false
		}
	} else {
		if extra = b.lengthSize(); b.count == 1 {
			extra++
		}
		if b.count == MaxBundle || b.size()+extra+len(frame) > b.limit {
			return 0, false
		}
	}
	b.last = len(b.buf)
	b.buf = binary.AppendUvarint(b.buf, uint64(len(frame)))
	b.buf = append(b.buf, frame...)
	b.count++
	return extra, true
}

// lengthSize returns the size of the last frame's length in bytes.
func (b *Bundler) lengthSize() int {
	_, n := binary.Uvarint(b.buf[b.last:])
	return n
}

func (b *Bundler) size() int {
	n := len(b.buf) - b.lengthSize()
	if b.count == 1 {
		n--
	}
	return n
}

// Take returns the message, which is valid until the next Add, and resets the Bundler. It returns
// nil if there are no frames.
func (b *Bundler) Take() (message []byte) {
	n := b.count
	if n == 0 {
		return nil
	}
	at := b.lengthSize()
	b.buf = append(b.buf[:b.last], b.buf[b.last+at:]...)
	b.buf[0] = byte(Bundle) | byte(n-2)
	message = b.buf
	if n == 1 {
		message = b.buf[1:]
	}
	b.Reset()
	return message
}

// Reset removes the collected frames.
func (b *Bundler) Reset() { b.buf, b.count, b.last = b.buf[:1], 0, 0 }

// Frames parses the frames of a bundle one by one.
type Frames struct {
	rest       []byte
	all, left  int
	lengthSize int // size of the previous frame's length
}

// ParseBundle returns the frames of a bundle, which starts with its type. Next validates them.
func ParseBundle(b []byte) Frames {
	n := int(b[0]&bundleMask) + 2
	return Frames{rest: b[1:], all: n, left: n}
}

// Left returns the number of frames that Next has not returned.
func (f *Frames) Left() int { return f.left }

// Shared reports whether Next has already returned a frame of the message.
func (f *Frames) Shared() bool { return f.left < f.all }

// Next returns the next frame, and the bytes that it takes in the message in addition to its own,
// as [Bundler.Add] does. After an error, no frames are left.
func (f *Frames) Next() (frame []byte, extra int, err error) {
	if extra = f.lengthSize; f.all-f.left == 1 {
		extra++ // the type
	}
	f.left--
	if f.left == 0 {
		return f.rest, extra, nil
	}
	size, n := binary.Uvarint(f.rest)
	if n <= 0 || size > uint64(len(f.rest)-n) {
		f.left = 0
		return nil, 0, fmt.Errorf("%w: a bundle ends in a frame", ErrMalformed)
	}
	frame, f.rest = f.rest[n:n+int(size)], f.rest[n+int(size):]
	f.lengthSize = n
	return frame, extra, nil
}
