package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

// encode appends the header and the coded part of payload n, whose newest frame is f. The payload
// contains the last fresh frames, and, if they fit, the frames of up to so many older payloads. It
// reports false if even the fresh frames do not fit.
func (e *Encoder) encode(dst []byte, f *schema.Frame, n uint64, fresh, payloads int) (h wire.Header, out []byte, older int, ok bool) {
	for older = e.older(n, fresh, payloads); older >= fresh-1; {
		h, out = e.encodeRow(dst, f, n, older)
		size, limit := len(out)-len(dst), e.cfg.MaxPayload
		if older >= fresh {
			limit = min(limit, e.cfg.RedundancyBytes)
		}
		if size <= limit {
			return h, out, older, true
		}
		if older == fresh-1 {
			break
		}
		older = max(fresh-1, min(older, (older+1)*limit/size)-1)
	}
	return h, out, older, false
}

// older returns the maximum number of older frames in payload n: those that no payload contained
// yet, and those of so many payloads before.
func (e *Encoder) older(n uint64, fresh, payloads int) int {
	if !e.cfg.combines() {
		return 0
	}
	older, left := fresh-1, n+1-uint64(fresh)
	for ; payloads > 0 && left > 0 && older < MaxRedundancy; payloads-- {
		k := e.sent.Get(left - 1).fresh
		older, left = older+int(k), left-uint64(k)
	}
	older = min(older, MaxRedundancy)
	if e.hasBase {
		return min(older, int(n-e.base-1)) // the decoder has the baseline and all frames before it
	}
	// A new decoder only knows the low 16 bits of the sequence.
	return min(older, int(uint16(n)))
}

// encodeRow appends the header and the coded part of frame n and the given number of frames before
// it. The oldest frame is coded against a baseline, unless it is smaller without one.
func (e *Encoder) encodeRow(dst []byte, f *schema.Frame, n uint64, older int) (wire.Header, []byte) {
	p := &e.payload
	p.frames, p.newest, p.base = p.frames[:0], n, e.base
	for s := n - uint64(older); s < n; s++ {
		p.frames = append(p.frames, &e.sent.Get(s).Frame)
	}
	p.frames = append(p.frames, f)
	delta := attempt{}
	if p.baseline, p.hasBase = e.baseline(); p.hasBase {
		delta = e.appendDelta(dst, p)
		if delta.out != nil && e.keyframeIsLarger(p.frames[0], delta.first) {
			return delta.header, delta.out
		}
	}
	p.hasBase = false
	keyframe := e.attempt(e.spare[:0], p, e.header(n, 0))
	e.spare = keyframe.out
	if delta.out != nil && delta.size <= keyframe.size {
		return delta.header, delta.out
	}
	return keyframe.header, append(dst, keyframe.out...)
}

// keyframeIsLarger reports whether a payload of f without a baseline certainly has more than n bytes.
// n is rounded down, and the size of f is not known to the byte.
func (e *Encoder) keyframeIsLarger(f *schema.Frame, n int) bool {
	n += 1 - wire.LongHeader
	return n < e.coder.minKeyframeBytes(f) || n < e.coder.keyframeBytes(f)
}

// attempt is the result of coding a payload in one way.
type attempt struct {
	header wire.Header
	out    []byte // nil if the payload cannot be coded in this way
	size   int    // bytes, without a hash
	first  int    // bytes of the header and the oldest frame
}

// attempt appends a header and the coded part.
func (e *Encoder) attempt(dst []byte, p *payload, h wire.Header) attempt {
	p.free = h.FreeBits()
	out, oldest, ok := e.coder.encode(h.Append(dst), p)
	if !ok {
		return attempt{}
	}
	header := h.UncheckedSize()
	size := len(out) - len(dst) - h.Size() + header
	return attempt{h, out, size, header + oldest}
}

// appendDelta appends the payload coded against its baseline, with a hash if one is due and fits.
func (e *Encoder) appendDelta(dst []byte, p *payload) attempt {
	h := e.header(p.newest, int(p.newest-p.base))
	if p.newest >= e.checkAt {
		h.SetHash(hashFrame(&p.baseline) ^ e.coder.hash())
	}
	a := e.attempt(dst, p, h)
	if h.Checked && len(a.out)-len(dst) > e.cfg.MaxPayload {
		a = e.attempt(dst, p, e.header(p.newest, int(p.newest-p.base)))
	}
	if len(a.out)-len(dst) > e.cfg.MaxPayload {
		return attempt{}
	}
	return a
}

// baseline returns the baseline of the next payload and reports whether there is one.
func (e *Encoder) baseline() (schema.Frame, bool) {
	if !e.hasBase || e.next-e.base > e.reach || !e.coder.learn(e.base) {
		return schema.Frame{}, false
	}
	f, ok := e.known.Get(e.base)
	return schema.Frame(f), ok
}

// header returns the header of payload n, in the short form if that is unambiguous.
func (e *Encoder) header(n uint64, distance int) wire.Header {
	return wire.NewHeader(e.cfg.RPC, n, distance, e.epoch)
}

// kind returns the kind that the decoder will most likely assign to the frame. Until a payload of
// an epoch is acked, each of its frames may be the one that resets the decoder.
func (e *Encoder) kind(h wire.Header) FrameKind {
	switch {
	case h.Distance != 0:
		return Delta
	case e.acked:
		return Keyframe
	}
	return Reset
}
