package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
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

// coder appends the fields of a body to b, or parses them from b. After an error it parses zeros.
type coder struct {
	b     []byte
	parse bool
	err   error // parse error
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
