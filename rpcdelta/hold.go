package rpcdelta

import (
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

// MaxHeld is the maximum number of frames that an encoder holds back.
const MaxHeld = MaxRedundancy + 1

// Hold assigns the next sequence to f without encoding a payload. The next call of AppendHeld or
// AppendFrame encodes it, with the frames after it, in one payload of the adaptive codec. Errors
// are those of [Encoder.AppendFrame], but the frame must fit into a payload without a baseline. If
// it does not, it may still fit as a difference: encode the held frames, then call AppendFrame. It
// is an error to hold more than MaxHeld frames. Hold does not allocate once warm.
//
// See [Decoder] for a condition on the channel.
func (e *Encoder) Hold(f *schema.Frame) error {
	if e.held >= MaxHeld {
		return fmt.Errorf("rpcdelta: %s: %d frames are held back; call AppendHeld first", e.format.RPC(), e.held)
	}
	if err := e.format.Check(f); err != nil {
		return err
	}
	if n := e.soloSize(f); n > e.cfg.MaxPayload {
		return e.tooLarge(n)
	}
	e.put(f)
	e.held++
	return nil
}

// keyframeShort exceeds the maximum underestimate of keyframeBytes, in bytes.
const keyframeShort = 16

// soloSize returns the size in bytes of a payload of f alone: an estimate if the frame certainly
// fits, exact otherwise. A held frame must fit, or no later frame could be sent.
func (e *Encoder) soloSize(f *schema.Frame) int {
	if n := wire.LongHeader + e.coder.keyframeBytes(f); n+keyframeShort <= e.cfg.MaxPayload {
		return n
	}
	p := &e.payload
	p.frames, p.newest, p.hasBase = append(p.frames[:0], f), e.next, false
	a := e.attempt(e.spare[:0], p, e.header(e.next, 0))
	e.spare = a.out
	return len(a.out)
}

// Held returns the number of frames that are held back.
func (e *Encoder) Held() int { return e.held }

// AppendHeld appends the payload of the oldest held frames, as many as fit. Call it until Held
// returns 0. If no frame is held, it returns dst unchanged. It does not allocate once warm.
func (e *Encoder) AppendHeld(dst []byte) ([]byte, Info) {
	first, payloads := e.next-uint64(e.held), e.chooseRedundancy()
	for fresh := e.held; fresh > 0; fresh-- {
		n := first + uint64(fresh) - 1
		h, out, older, ok := e.encode(dst, &e.sent.Get(n).Frame, n, fresh, payloads)
		if ok {
			e.held -= fresh
			return out, e.finish(n, h, len(out)-len(dst), older, fresh)
		}
	}
	return dst, Info{}
}
