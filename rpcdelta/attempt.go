package rpcdelta

import "github.com/uplink-rpc/uplink/schema"

// encode appends header and coded part of payload n, whose newest frame is f. The
// last fresh frames must be in it, and those of as many older payloads as there is
// room for, at most. It says false where that is too large.
func (e *Encoder) encode(dst []byte, f *schema.Frame, n uint64, fresh, payloads int) (h header, out []byte, older int, ok bool) {
	for older = e.older(n, fresh, payloads); older >= fresh-1; {
		h, out = e.encodeRow(dst, f, n, older)
		size, most := len(out)-len(dst), e.cfg.MaxPayload
		if older >= fresh {
			most = min(most, e.cfg.RedundancyBytes)
		}
		if size <= most {
			return h, out, older, true
		}
		if older == fresh-1 {
			break
		}
		older = max(fresh-1, min(older, (older+1)*most/size)-1)
	}
	return h, out, older, false
}

// older is how many older frames payload n should have, at most: those that no
// payload had yet, and those of so many payloads before.
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
		return min(older, int(n-e.base-1)) // the decoder has the others
	}
	// A fresh decoder counts from the 16 bits of the header.
	return min(older, int(uint16(n)))
}

// encodeRow appends header and coded part of frame n and those before it: the
// oldest as the difference from a baseline, unless that takes more than without.
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
		if delta.out != nil && e.takesMoreAlone(p.frames[0], delta.first) {
			return delta.header, delta.out
		}
	}
	p.hasBase = false
	alone := e.attempt(e.spare[:0], p, e.header(n, 0))
	e.spare = alone.out
	if delta.out != nil && delta.size <= alone.size {
		return delta.header, delta.out
	}
	return alone.header, append(dst, alone.out...)
}

// takesMoreAlone says whether a payload of the frame alone has more than n bytes for
// sure: n is rounded down, and what the frame takes is not known to the byte.
func (e *Encoder) takesMoreAlone(f *schema.Frame, n int) bool {
	n += 1 - longHeader
	return n < e.coder.leastIntra(f) || n < e.coder.intraSize(f)
}

// attempt is one way to send a frame.
type attempt struct {
	header header
	out    []byte // nil: it cannot be sent so
	size   int    // bytes, as they were without a hash
	first  int    // the oldest frame's part of them, with the header
}

// attempt appends header and coded part.
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

// appendDelta appends the payload as the difference from its baseline, with a
// hash if one is due and there is room.
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

// baseline gives the frame to code the next one against, if there is one.
func (e *Encoder) baseline() (schema.Frame, bool) {
	if !e.hasBase || e.next-e.base > e.reach || !e.coder.learn(e.base) {
		return schema.Frame{}, false
	}
	f, ok := e.known.Get(e.base)
	return schema.Frame(f), ok
}

// header makes the header of payload n, short where that is unambiguous.
func (e *Encoder) header(n uint64, distance int) header {
	h := header{rpc: uint8(e.cfg.RPC), seq: uint16(n), epoch: e.epoch, distance: distance}
	h.long = distance == 0 || distance > maxShortDistance || h.rpc > maxShortRPC
	return h
}

// kind names the frame as the decoder will most likely see it: until something
// of an epoch was acked, each of its frames may be the one that resets.
func (e *Encoder) kind(h header) FrameKind {
	switch {
	case h.distance != 0:
		return Delta
	case e.acked:
		return Intra
	}
	return Reset
}
