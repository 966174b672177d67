package rpcdelta

import (
	"fmt"

	"github.com/uplink-rpc/uplink/schema"
)

// MaxHeld is how many frames an encoder holds back at most: what a payload has
// room for.
const MaxHeld = MaxRedundancy + 1

// Hold gives f the next sequence without making a payload of it: it leaves with
// those after it, in one payload of the adaptive codec, by AppendHeld or
// AppendFrame. Errors are those of [Encoder.AppendFrame], but a frame has to fit a
// payload without a baseline; one that does not may still fit as a difference: make
// the payloads of those that are held, and call AppendFrame. More than MaxHeld
// frames are an error. It allocates nothing once warm.
//
// Short headers rely on it that whoever carries payloads drops one that comes after
// another whose newest frame is 64 or more newer; see [Decoder].
func (e *Encoder) Hold(f *schema.Frame) error {
	if e.held >= MaxHeld {
		return fmt.Errorf("rpcdelta: %s: %d frames are held back: AppendHeld first", e.format.RPC(), e.held)
	}
	if err := e.format.Check(f); err != nil {
		return err
	}
	if n := e.aloneSize(f); n > e.cfg.MaxPayload {
		return e.tooLarge(n)
	}
	e.put(f)
	e.held++
	return nil
}

// intraShort is more than what a coder's intraSize can be too low.
const intraShort = 16

// aloneSize is how many bytes the payload of f alone takes: about, as long as it
// surely fits, to the byte otherwise. What is held has to fit, or nothing that
// comes after it could leave.
func (e *Encoder) aloneSize(f *schema.Frame) int {
	if n := longHeader + e.coder.intraSize(f); n+intraShort <= e.cfg.MaxPayload {
		return n
	}
	p := &e.payload
	p.frames, p.newest, p.hasBase = append(p.frames[:0], f), e.next, false
	a := e.attempt(e.spare[:0], p, e.header(e.next, 0))
	e.spare = a.out
	return len(a.out)
}

// Held is how many frames are held back.
func (e *Encoder) Held() int { return e.held }

// AppendHeld appends the payload of frames that are held back, the oldest ones, as
// many as fit: call it while Held is not 0. If it is, dst is returned as it was. It
// allocates nothing once warm.
func (e *Encoder) AppendHeld(dst []byte) ([]byte, Info) {
	first, payloads := e.next-uint64(e.held), e.chooseRedundancy()
	for fresh := e.held; fresh > 0; fresh-- {
		n := first + uint64(fresh) - 1
		h, out, older, ok := e.encode(dst, &e.sent.Get(n).Frame, n, fresh, payloads)
		if ok {
			e.held -= fresh
			return out, e.named(n, h, len(out)-len(dst), older, fresh)
		}
	}
	return dst, Info{}
}
