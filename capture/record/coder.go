package record

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

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

// uint codes a varint.
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
func (c *coder) rest(b *[]byte) {
	if !c.parse {
		c.b = append(c.b, *b...)
		return
	}
	*b, c.b = c.b, nil
}

// restText codes a text up to the end of the record.
func (c *coder) restText(s *string) {
	if !c.parse {
		c.b = append(c.b, *s...)
		return
	}
	*s, c.b = string(c.b), nil
}
