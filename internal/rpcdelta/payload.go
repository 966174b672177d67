package rpcdelta

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// payloadWriter writes payloads: it chooses the frames, the baseline and the header.
type payloadWriter struct {
	ackTracker
	cfg        EncoderConfig
	payload    payload
	spare      []byte // buffer for a keyframe that is compared with a delta
	checkEvery uint64
	checkAt    uint64 // sequence from which the next delta carries a hash
}

// append appends the header and the coded part of payload n, whose newest frame is f. The payload
// contains the last fresh frames and, if they fit, older frames with planned copies. The result
// older is the number of frames before f. It reports false if even the fresh frames do not fit.
func (w *payloadWriter) append(dst []byte, f *schema.Frame, n uint64, fresh int) (h wire.Header, out []byte, older int, ok bool) {
	for older = w.older(n, fresh); older >= fresh-1; {
		h, out = w.appendFrames(dst, f, n, older, older >= fresh)
		size, limit := len(out)-len(dst), w.cfg.MaxPayload
		if older >= fresh {
			limit = min(limit, w.cfg.RedundancyBytes)
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

// appendFrames appends the header and the coded part of frame n and the given number of frames
// before it. The oldest frame is coded against a baseline, or as a keyframe if that is smaller.
func (w *payloadWriter) appendFrames(dst []byte, f *schema.Frame, n uint64, older int, repeats bool) (wire.Header, []byte) {
	p := &w.payload
	p.Frames, p.Newest, p.Base, p.Repeats = p.Frames[:0], n, w.base, repeats
	for s := n - uint64(older); s < n; s++ {
		p.Frames = append(p.Frames, &w.sent.Get(s).Frame)
	}
	p.Frames = append(p.Frames, f)
	delta := attempt{}
	if p.baseline, p.HasBase = w.baseline(); p.HasBase {
		delta = w.tryDelta(dst, p)
		if delta.out != nil && w.keyframeIsLarger(p.Frames[0], delta.first) {
			return delta.header, delta.out
		}
	}
	keyframe := w.tryKeyframe(p)
	if delta.out != nil && delta.size <= keyframe.size {
		return delta.header, delta.out
	}
	return keyframe.header, append(dst, keyframe.out...)
}

// keyframeIsLarger reports whether a keyframe payload of f is certainly larger than n bytes. It
// allows for n being rounded down and for the estimated size of f.
func (w *payloadWriter) keyframeIsLarger(f *schema.Frame, n int) bool {
	n += 1 - wire.LongHeader
	return n < w.coder.minKeyframeBytes(f) || n < w.coder.keyframeBytes(f)
}

// keyframeSize returns the size in bytes of a keyframe payload with the single frame f: an estimate
// if the frame certainly fits, exact otherwise.
func (w *payloadWriter) keyframeSize(f *schema.Frame) int {
	if n := wire.LongHeader + w.coder.keyframeBytes(f); n+maxUnderestimate <= w.cfg.MaxPayload {
		return n
	}
	p := &w.payload
	p.Frames, p.Newest, p.Repeats = append(p.Frames[:0], f), w.next, false
	return len(w.tryKeyframe(p).out)
}

// attempt is the result of coding a payload in one way.
type attempt struct {
	header wire.Header
	out    []byte // nil: the payload cannot be coded in this way
	size   int    // size in bytes, without a hash
	first  int    // size of the header and the oldest frame, in bytes
}

// tryDelta appends the payload coded against its baseline, with a hash if one is due and fits.
func (w *payloadWriter) tryDelta(dst []byte, p *payload) attempt {
	h := wire.NewHeader(w.cfg.RPC, p.Newest, int(p.Newest-p.Base), w.epoch)
	checked := h
	if p.Newest >= w.checkAt {
		checked.SetHash(hashFrame(&p.baseline) ^ w.coder.hash())
	}
	a := w.try(dst, p, checked)
	if checked.Checked && len(a.out)-len(dst) > w.cfg.MaxPayload {
		a = w.try(dst, p, h)
	}
	if len(a.out)-len(dst) > w.cfg.MaxPayload {
		return attempt{}
	}
	return a
}

// tryKeyframe codes the payload without a baseline. The result is valid until the next call.
func (w *payloadWriter) tryKeyframe(p *payload) attempt {
	p.HasBase = false
	a := w.try(w.spare[:0], p, wire.NewHeader(w.cfg.RPC, p.Newest, 0, w.epoch))
	w.spare = a.out
	return a
}

func (w *payloadWriter) try(dst []byte, p *payload, h wire.Header) attempt {
	p.FreeBits = h.FreeBits()
	out, oldest, ok := w.coder.encode(h.Append(dst), p)
	if !ok {
		return attempt{}
	}
	header := h.UncheckedSize()
	size := len(out) - len(dst) - h.Size() + header
	return attempt{h, out, size, header + oldest}
}
