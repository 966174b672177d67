package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// The tags, the first byte of each record. Never change one: captures are kept for years.
const (
	tagStart byte = iota + 1
	tagSchema
	tagPrior
	tagOpened
	tagClosed
	tagBound
	tagReceived
	tagSent
	tagReceivedMessage
	tagSentMessage
	tagDecoded
	tagDropped
	tagWithheld
	tagLost
	tagCounts
	tagEnd
)

// maxCounts is the maximum number of entries of Counts.
const maxCounts = 64

var errShort = errors.New("it ends too early")

// Parse parses the tag and the body of a record. Byte slices of the result share b's memory.
func Parse(b []byte) (Body, error) {
	if len(b) == 0 {
		return nil, errShort
	}
	body := newBody(b[0])
	if body == nil {
		return nil, fmt.Errorf("record of unknown type %d", b[0])
	}
	c := coder{b: b[1:], parse: true}
	body.fields(&c)
	if c.err == nil && len(c.b) != 0 {
		c.err = fmt.Errorf("%d bytes follow its end", len(c.b))
	}
	if c.err != nil {
		return nil, fmt.Errorf("record of type %d: %w", b[0], c.err)
	}
	return body, nil
}

// newBody returns an empty body of the type of a tag, or nil if the tag is unknown.
func newBody(tag byte) Body {
	switch tag {
	case tagStart:
		return &Start{}
	case tagSchema:
		return &Schema{}
	case tagPrior:
		return &Prior{}
	case tagOpened:
		return &Opened{}
	case tagClosed:
		return &Closed{}
	case tagBound:
		return &Bound{}
	case tagReceived, tagSent:
		return &Datagram{Sent: tag == tagSent}
	case tagReceivedMessage, tagSentMessage:
		return &Message{Sent: tag == tagSentMessage}
	case tagDecoded:
		return &Decoded{}
	case tagDropped:
		return &Dropped{}
	case tagWithheld:
		return &Withheld{}
	case tagLost:
		return &Lost{}
	case tagCounts:
		return &Counts{}
	case tagEnd:
		return &End{}
	}
	return nil
}

// encode appends a tag and a body. It is inlined into the Append methods, so that bodies do not
// escape to the heap.
func encode(b []byte, tag byte, body Body) []byte {
	c := coder{b: append(b, tag)}
	body.fields(&c)
	return c.b
}

func (r *Start) Append(b []byte) []byte    { return encode(b, tagStart, r) }
func (r *Schema) Append(b []byte) []byte   { return encode(b, tagSchema, r) }
func (r *Prior) Append(b []byte) []byte    { return encode(b, tagPrior, r) }
func (r *Opened) Append(b []byte) []byte   { return encode(b, tagOpened, r) }
func (r *Closed) Append(b []byte) []byte   { return encode(b, tagClosed, r) }
func (r *Bound) Append(b []byte) []byte    { return encode(b, tagBound, r) }
func (r *Decoded) Append(b []byte) []byte  { return encode(b, tagDecoded, r) }
func (r *Dropped) Append(b []byte) []byte  { return encode(b, tagDropped, r) }
func (r *Withheld) Append(b []byte) []byte { return encode(b, tagWithheld, r) }
func (r *Lost) Append(b []byte) []byte     { return encode(b, tagLost, r) }
func (r *Counts) Append(b []byte) []byte   { return encode(b, tagCounts, r) }
func (r *End) Append(b []byte) []byte      { return encode(b, tagEnd, r) }

// Append implements [Body]. Without a coder it takes a quarter less time, and most records are
// datagrams.
func (r *Datagram) Append(b []byte) []byte {
	tag := tagReceived
	if r.Sent {
		tag = tagSent
	}
	b = binary.AppendUvarint(append(b, tag), r.Player)
	b = binary.AppendUvarint(b, r.Number)
	b = binary.AppendUvarint(b, uint64(max(r.Size, 0)))
	return append(b, r.Body...)
}

// Append implements [Body].
func (r *Message) Append(b []byte) []byte {
	if r.Sent {
		return encode(b, tagSentMessage, r)
	}
	return encode(b, tagReceivedMessage, r)
}

func (r *Start) fields(c *coder) {
	nanos := uint64(r.Wall.UnixNano())
	if c.fixed(&nanos); c.parse {
		r.Wall = time.Unix(0, int64(nanos))
	}
	c.int("index", &r.Index, math.MaxInt32)
	c.fixed(&r.Run)
}

func (r *Schema) fields(c *coder) { c.uint(&r.ID); c.rest(&r.JSON) }

func (r *Prior) fields(c *coder) { c.fixed(&r.Hash); c.rest(&r.File) }

func (r *Opened) fields(c *coder) {
	c.flags(&r.Again)
	c.uint(&r.Player)
	c.fixed(&r.Session)
	c.fixed(&r.Client)
	c.addr(&r.Addr)
	c.text(&r.Suite)
	c.int("AEAD overhead", &r.AEADOverhead, math.MaxUint8)
}

func (r *Closed) fields(c *coder) { c.uint(&r.Player); c.restText(&r.Cause) }

func (r *Bound) fields(c *coder) {
	c.flags(&r.Again, &r.DeliverLate, &r.Reliable)
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Schema)
	rate := math.Float64bits(r.RateHz)
	c.fixed(&rate)
	r.RateHz = math.Float64frombits(rate)
	c.int("ring", &r.PeerRing, rpcdelta.MaxRing)
	c.int("frames", &r.Frames, rpcdelta.MaxHeld)
	c.int("ring", &r.Ring, rpcdelta.MaxRing)
	c.byte((*byte)(&r.Codec))
	c.fixed(&r.Prior)
}

func (r *Datagram) fields(c *coder) {
	c.uint(&r.Player)
	c.uint(&r.Number)
	c.int("size", &r.Size, math.MaxUint16)
	c.rest(&r.Body)
}

func (r *Message) fields(c *coder) { c.uint(&r.Player); c.rest(&r.Body) }

func (r *Decoded) fields(c *coder) {
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Seq)
	c.int("frames", &r.Frames, math.MaxUint8)
	c.byte((*byte)(&r.Kind))
	c.hash(&r.Hash)
}

func (r *Dropped) fields(c *coder) {
	c.uint(&r.Player)
	number := r.RPC + 1
	c.int("RPC number", &number, rpcdelta.MaxRPC+1)
	r.RPC = number - 1
	c.flags(&r.Decoder)
	c.restText(&r.Reason)
}

func (r *Withheld) fields(c *coder) {
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Seq)
	c.restText(&r.Reason)
}

func (r *Lost) fields(c *coder) { c.uint(&r.Records) }

func (r *Counts) fields(c *coder) {
	n := len(r.Drops)
	c.int("number of counts", &n, maxCounts)
	for i := 0; i < n && c.err == nil; i++ {
		if c.parse {
			r.Drops = append(r.Drops, Count{})
		}
		c.text(&r.Drops[i].Reason)
		c.uint(&r.Drops[i].N)
	}
}

func (r *End) fields(c *coder) { c.flags(&r.More) }
