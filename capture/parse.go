package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// maxCounts is how many counts a record has at most.
const maxCounts = 64

// cursor reads a record's body. After an error it gives zeros.
type cursor struct {
	b   []byte
	err error
}

var errShort = errors.New("it ends too early")

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// int reads a number from 0 to most.
func (c *cursor) int(what string, most int) int {
	v := c.uint()
	if v > uint64(most) {
		c.fail(fmt.Errorf("%s %d, at most %d can be", what, v, most))
		return 0
	}
	return int(v)
}

func (c *cursor) bytes(n int) []byte {
	if n > len(c.b) {
		c.fail(errShort)
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) fixed() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) text() string { return string(c.bytes(c.int("length", len(c.b)))) }

func (c *cursor) rest() []byte {
	b := c.b
	c.b = nil
	return b
}

func (c *cursor) rpc() int { return c.int("RPC number", rpcdelta.MaxRPC) }

// parse reads the body of a record, tag included. Byte slices in it share b's memory.
func parse(b []byte) (Body, error) {
	c := &cursor{b: b}
	body := c.body(tag(c.byte()))
	switch {
	case c.err != nil:
		return nil, fmt.Errorf("record of type %d: %w", b[0], c.err)
	case body == nil:
		return nil, fmt.Errorf("record of type %d, which this version does not know", b[0])
	case len(c.b) != 0:
		return nil, fmt.Errorf("record of type %d: %d bytes follow its end", b[0], len(c.b))
	}
	return body, nil
}

func (c *cursor) body(t tag) Body {
	switch t {
	case tagStart:
		return &Start{Wall: time.Unix(0, int64(c.fixed())), Index: c.int("index", math.MaxInt32), Run: c.fixed()}
	case tagSchema:
		return &Schema{ID: c.uint(), JSON: c.rest()}
	case tagPrior:
		return &Prior{Hash: c.fixed(), File: c.rest()}
	case tagOpened:
		return c.opened()
	case tagClosed:
		return &Closed{Player: c.uint(), Cause: string(c.rest())}
	case tagBound:
		return c.bound()
	case tagReceived, tagSent:
		return &Datagram{Sent: t == tagSent, Player: c.uint(), Number: c.uint(), Size: c.int("size", math.MaxUint16), Body: c.rest()}
	case tagReceivedMessage, tagSentMessage:
		return &Message{Sent: t == tagSentMessage, Player: c.uint(), Body: c.rest()}
	case tagDecoded:
		return c.decoded()
	case tagDropped:
		return &Dropped{Player: c.uint(), RPC: c.int("RPC number", rpcdelta.MaxRPC+1) - 1, Decoder: c.byte()&1 != 0, Reason: string(c.rest())}
	case tagWithheld:
		return &Withheld{Player: c.uint(), RPC: c.rpc(), Seq: c.uint(), Reason: string(c.rest())}
	case tagLost:
		return &Lost{Records: c.uint()}
	case tagCounts:
		return c.counts()
	case tagEnd:
		return &End{More: c.byte()&1 != 0}
	}
	return nil
}

func (c *cursor) opened() Body {
	r := &Opened{Again: c.byte()&flagAgain != 0, Player: c.uint(), Session: c.fixed(), Client: c.fixed()}
	if addr := c.text(); addr != "" {
		var err error
		if r.Addr, err = netip.ParseAddrPort(addr); err != nil {
			c.fail(err)
		}
	}
	r.Suite = c.text()
	r.Seal = c.int("seal", math.MaxUint8)
	return r
}

func (c *cursor) bound() Body {
	flags := c.byte()
	r := &Bound{
		Again: flags&flagAgain != 0, DeliverLate: flags&flagDeliverLate != 0, Reliable: flags&flagReliable != 0,
		Player: c.uint(), RPC: c.rpc(), Schema: c.uint(), RateHz: math.Float64frombits(c.fixed()),
		PeerRing: c.int("ring", rpcdelta.MaxRing), Frames: c.int("frames", rpcdelta.MaxHeld), Ring: c.int("ring", rpcdelta.MaxRing),
		Codec: rpcdelta.Codec(c.byte()), Prior: c.fixed(),
	}
	return r
}

func (c *cursor) decoded() Body {
	r := &Decoded{Player: c.uint(), RPC: c.rpc(), Seq: c.uint(), Frames: c.int("frames", math.MaxUint8), Kind: rpcdelta.FrameKind(c.byte())}
	if b := c.bytes(4); b != nil {
		r.Hash = binary.LittleEndian.Uint32(b)
	}
	return r
}

func (c *cursor) counts() Body {
	r := &Counts{}
	for range c.int("number of counts", maxCounts) {
		r.Drops = append(r.Drops, Count{Reason: c.text(), N: c.uint()})
	}
	return r
}
