package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
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

// newBody returns an empty body, or nil if the tag is unknown.
func newBody(tag byte) Body {
	if int(tag) >= len(bodies) || bodies[tag] == nil {
		return nil
	}
	return bodies[tag]()
}

var bodies = [...]func() Body{
	tagStart:           func() Body { return &Start{} },
	tagSchema:          func() Body { return &Schema{} },
	tagPrior:           func() Body { return &Prior{} },
	tagOpened:          func() Body { return &Opened{} },
	tagClosed:          func() Body { return &Closed{} },
	tagBound:           func() Body { return &Bound{} },
	tagReceived:        func() Body { return &Datagram{} },
	tagSent:            func() Body { return &Datagram{Sent: true} },
	tagReceivedMessage: func() Body { return &Message{} },
	tagSentMessage:     func() Body { return &Message{Sent: true} },
	tagDecoded:         func() Body { return &Decoded{} },
	tagDropped:         func() Body { return &Dropped{} },
	tagWithheld:        func() Body { return &Withheld{} },
	tagLost:            func() Body { return &Lost{} },
	tagCounts:          func() Body { return &Counts{} },
	tagEnd:             func() Body { return &End{} },
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

// Append implements [Body].
func (r *Datagram) Append(b []byte) []byte {
	// Most records are datagrams. Without a coder this takes a quarter less time.
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

func (r *Schema) fields(c *coder) { c.uint(&r.ID); rest(c, &r.JSON) }

func (r *Prior) fields(c *coder) { c.fixed(&r.Hash); rest(c, &r.File) }

func (r *Opened) fields(c *coder) {
	c.flags(&r.Again)
	c.uint(&r.Player)
	c.fixed(&r.Session)
	c.fixed(&r.Client)
	c.addr(&r.Addr)
	c.text(&r.Suite)
	c.int("AEAD overhead", &r.AEADOverhead, math.MaxUint8)
}

func (r *Closed) fields(c *coder) { c.uint(&r.Player); rest(c, &r.Cause) }

func (r *Bound) fields(c *coder) {
	repeats := r.Deadline > 0
	c.flags(&r.Again, &r.DeliverLate, &r.Reliable, &repeats)
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
	c.ints(&r.PerTick, schema.MaxFields)
	if repeats {
		c.int("deadline", &r.Deadline, rpcdelta.MaxRepairAge)
		c.int("batch", &r.Batch, rpcdelta.MaxHeld)
	}
}

func (r *Datagram) fields(c *coder) {
	c.uint(&r.Player)
	c.uint(&r.Number)
	c.int("size", &r.Size, math.MaxUint16)
	rest(c, &r.Body)
}

func (r *Message) fields(c *coder) { c.uint(&r.Player); rest(c, &r.Body) }

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
	rest(c, &r.Reason)
}

func (r *Withheld) fields(c *coder) {
	c.uint(&r.Player)
	c.rpc(&r.RPC)
	c.uint(&r.Seq)
	rest(c, &r.Reason)
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

// coder appends the fields of a body to b, or parses them from b. After an error it parses zeros.
type coder struct {
	b     []byte
	parse bool
	err   error // of parsing
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

// next returns the next n bytes to parse, or nil.
func (c *coder) next(n int) []byte {
	if n > len(c.b) {
		c.fail(errShort)
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *coder) uint(v *uint64) {
	if !c.parse {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	var n int
	if *v, n = binary.Uvarint(c.b); n <= 0 {
		*v = 0
		c.fail(errShort)
		return
	}
	c.b = c.b[n:]
}

// int codes a varint from 0 to limit.
func (c *coder) int(what string, v *int, limit int) {
	u := uint64(max(*v, 0))
	c.uint(&u)
	if c.parse && u > uint64(limit) {
		c.fail(fmt.Errorf("%s %d, want at most %d", what, u, limit))
		u = 0
	}
	*v = int(u)
}

func (c *coder) rpc(v *int) { c.int("RPC number", v, rpcdelta.MaxRPC) }

// fixed codes 8 bytes.
func (c *coder) fixed(v *uint64) {
	if !c.parse {
		c.b = binary.LittleEndian.AppendUint64(c.b, *v)
	} else if b := c.next(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

// hash codes 4 bytes.
func (c *coder) hash(v *uint32) {
	if !c.parse {
		c.b = binary.LittleEndian.AppendUint32(c.b, *v)
	} else if b := c.next(4); b != nil {
		*v = binary.LittleEndian.Uint32(b)
	}
}

// ints codes at most limit numbers of 8 bytes.
func (c *coder) ints(v *[]int64, limit int) {
	n := len(*v)
	c.int("number of factors", &n, limit)
	if c.parse {
		*v = nil
	}
	for i := 0; i < n && c.err == nil; i++ {
		var u uint64
		if !c.parse {
			u = uint64((*v)[i])
		}
		if c.fixed(&u); c.parse {
			*v = append(*v, int64(u))
		}
	}
}

func (c *coder) byte(v *byte) {
	if !c.parse {
		c.b = append(c.b, *v)
	} else if b := c.next(1); b != nil {
		*v = b[0]
	}
}

// flags codes the bits of one byte, lowest first.
func (c *coder) flags(bits ...*bool) {
	var v byte
	for i, bit := range bits {
		if *bit {
			v |= 1 << i
		}
	}
	c.byte(&v)
	for i, bit := range bits {
		*bit = v>>i&1 != 0
	}
}

// text codes a length and as many bytes.
func (c *coder) text(s *string) {
	n := len(*s)
	c.int("length", &n, len(c.b))
	if c.parse {
		*s = string(c.next(n))
	} else {
		c.b = append(c.b, *s...)
	}
}

func (c *coder) addr(a *netip.AddrPort) {
	var text string
	if b, err := a.MarshalText(); err == nil && !c.parse {
		text = string(b)
	}
	if c.text(&text); !c.parse || text == "" {
		return
	}
	var err error
	if *a, err = netip.ParseAddrPort(text); err != nil {
		c.fail(err)
	}
}

// rest codes all bytes up to the end of the record.
func rest[T string | []byte](c *coder, v *T) {
	if !c.parse {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = T(c.b), nil
}
