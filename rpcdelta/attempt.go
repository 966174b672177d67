package rpcdelta

import "github.com/uplink-rpc/uplink/schema"

// encode appends the header and the coded part of payload n, whose newest frame is f. The payload
// contains the last fresh frames, and, if they fit, the frames of up to so many older payloads. It
// reports false if even the fresh frames do not fit.
func (e *Encoder) encode(dst []byte, f *schema.Frame, n uint64, fresh, payloads int) (h header, out []byte, older int, ok bool) {
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
func (e *Encoder) encodeRow(dst []byte, f *schema.Frame, n uint64, older int) (header, []byte) {
	p := &e.payload
	p.frames, p.newest, p.base = p.frames[:0], n, e.base
	for s := n - uint64(older); s < n; s++ {
		p.frames = append(p.frames, &e.sent.Get(s).Frame)
	}
	p.frames = append(p.frames, f)
	delta := attempt{}
	if p.baseline, p.hasBase = e.baseline(); p.hasBase {
		delta = e.appendDelta(dst, p)
		if delta.out != nil && e.intraIsLarger(p.frames[0], delta.first) {
			return delta.header, delta.out
		}
	}
	p.hasBase = false
	intra := e.attempt(e.spare[:0], p, e.header(n, 0))
	e.spare = intra.out
	if delta.out != nil && delta.size <= intra.size {
		return delta.header, delta.out
	}
	return intra.header, append(dst, intra.out...)
}

// intraIsLarger reports whether a payload of f without a baseline certainly has more than n bytes.
// n is rounded down, and the size of f is not known to the byte.
func (e *Encoder) intraIsLarger(f *schema.Frame, n int) bool {
	n += 1 - longHeader
	return n < e.coder.leastIntra(f) || n < e.coder.intraSize(f)
}

// attempt is the result of coding a payload in one way.
type attempt struct {
	header header
	out    []byte // nil if the payload cannot be coded in this way
	size   int    // bytes, without a hash
	first  int    // bytes of the header and the oldest frame
}

// attempt appends a header and the coded part.
func (e *Encoder) attempt(dst []byte, p *payload, h header) attempt {
	p.free = h.free()
	out, oldest, ok := e.coder.encode(h.append(dst), p)
	if !ok {
		return attempt{}
	}
	header := h.uncheckedSize()
	size := len(out) - len(dst) - h.size() + header
	return attempt{h, out, size, header + oldest}
}

// appendDelta appends the payload coded against its baseline, with a hash if one is due and fits.
func (e *Encoder) appendDelta(dst []byte, p *payload) attempt {
	h := e.header(p.newest, int(p.newest-p.base))
	if p.newest >= e.checkAt {
		h.check(hashFrame(&p.baseline) ^ e.coder.hash())
	}
	a := e.attempt(dst, p, h)
	if h.checked && len(a.out)-len(dst) > e.cfg.MaxPayload {
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
func (e *Encoder) header(n uint64, distance int) header {
	h := header{rpc: uint8(e.cfg.RPC), seq: uint16(n), epoch: e.epoch, distance: distance}
	h.long = distance == 0 || distance > maxShortDistance || h.rpc > maxShortRPC
	return h
}

// kind returns the kind that the decoder will most likely assign to the frame. Until a payload of
// an epoch is acked, each of its frames may be the one that resets the decoder.
func (e *Encoder) kind(h header) FrameKind {
	switch {
	case h.distance != 0:
		return Delta
	case e.acked:
		return Intra
	}
	return Reset
}
