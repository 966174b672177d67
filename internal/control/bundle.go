package control

import (
	"encoding/binary"
	"fmt"
)

// A bundle is several frames in one message. Its first byte has bundleFlag and, in
// four bits, how many frames there are, less 2. Each frame follows, ahead of it its
// length as a varint; the last one has none, it takes the rest.
const (
	bundleFlag = 1 << 5
	bundleMask = 15
)

// MaxBundle is the most frames of a bundle: more than a game has in a tick, and so
// few that a hostile one takes no more work than as many datagrams.
const MaxBundle = bundleMask + 2

// Bundler collects frames and makes one message of them: a bundle, or if it is
// only one the frame itself. The zero value has room for none; see [NewBundler].
type Bundler struct {
	buf   []byte // the first byte, then each frame after its length
	limit int
	count int
	last  int // where the last frame's length stands
}

// NewBundler makes one for messages of at most limit bytes.
func NewBundler(limit int) Bundler {
	// The last length is there until the end.
	return Bundler{buf: make([]byte, 1, limit+binary.MaxVarintLen16), limit: limit}
}

// Len is how many frames were collected.
func (b *Bundler) Len() int { return b.count }

// Add adds a frame if it fits, and says how many bytes more than its own it added
// to the message: nothing for the first one.
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

// lengthSize is the size of the last frame's length.
func (b *Bundler) lengthSize() int {
	_, n := binary.Uvarint(b.buf[b.last:])
	return n
}

// size is the message's size so far.
func (b *Bundler) size() int {
	n := len(b.buf) - b.lengthSize()
	if b.count == 1 {
		n--
	}
	return n
}

// Take gives the message, which is valid until the next Add, and begins the next
// one. It is nil if nothing was collected.
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

// Reset forgets what was collected.
func (b *Bundler) Reset() { b.buf, b.count, b.last = b.buf[:1], 0, 0 }

// Frames reads the frames of a bundle, one after the other.
type Frames struct {
	rest       []byte
	all, left  int
	lengthSize int // of the length before the frame that was read last
}

// ParseBundle begins to read a bundle, type included. All that follows is checked
// as it is read.
func ParseBundle(b []byte) Frames {
	n := int(b[0]&bundleMask) + 2
	return Frames{rest: b[1:], all: n, left: n}
}

// Left is how many frames are still to come.
func (f *Frames) Left() int { return f.left }

// Shared says whether the next frame comes after another one.
func (f *Frames) Shared() bool { return f.left < f.all }

// Next gives the next frame, and how many bytes more than its own it added to the
// message, as [Bundler.Add] does. After an error the rest cannot be read: none is
// left.
func (f *Frames) Next() (frame []byte, extra int, err error) {
	switch f.all - f.left {
	case 0:
	case 1:
		extra = f.lengthSize + 1
	default:
		extra = f.lengthSize
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
