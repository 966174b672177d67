package rangecoder

import "encoding/binary"

// decoder decodes one payload. Any input decodes to something: bytes after the end read as zero.
// Call Reset before use.
type decoder struct {
	in     []byte
	pos    int
	code   uint64 // offset into the range, below rng
	rng    uint64
	bad    bool // the input is in the part of the range that no encoder uses
	shared int  // 1 if the first byte also holds bits before the payload
}

// Reset starts at the first byte of in, which is not modified. If free is not 0, the payload starts
// in the low bits of that byte, as in [Encoder.Reset].
func (d *decoder) Reset(in []byte, free uint) {
	d.in, d.pos, d.rng, d.bad, d.shared = in, 0, 1<<64-1, false, 0
	d.code = d.next()
	d.code = d.code<<stepBits | d.next()
	if free > 0 {
		d.rng, d.shared = 1<<(56+free&63), 1
		d.code &= d.rng - 1
	}
	d.check()
}

// Complete reports whether the input is the output of an Encoder for the decisions read. It is
// false if the input ends with a zero byte, with bytes that no decision needs, or is not the lowest
// of its length.
func (d *decoder) Complete() bool {
	n := len(d.in)
	switch {
	case d.bad || n < d.shared:
		return false
	case n == 0:
		return true
	}
	return n <= d.pos && (d.in[n-1] != 0 || n == d.shared) && d.code>>(8*uint(d.pos-n)) == 0
}

// check keeps code within the range. No encoder uses the part of the range that is left over when
// frequencies are rounded.
func (d *decoder) check() {
	if d.code >= d.rng {
		d.code, d.bad = d.rng-1, true
	}
}

// next reads the bytes of one step, most significant byte first.
func (d *decoder) next() (v uint64) {
	pos := d.pos
	d.pos += stepBytes
	if d.pos <= len(d.in) {
		return uint64(binary.BigEndian.Uint32(d.in[pos:]))
	}
	for i := pos; i < d.pos; i++ {
		v <<= 8
		if i < len(d.in) {
			v |= uint64(d.in[i])
		}
	}
	return v
}

func (d *decoder) shift() {
	d.code = d.code<<stepBits | d.next()
	d.rng <<= stepBits
}

// BitNoRenorm reads one decision. p0 is the frequency of 0, as in [Encoder.BitNoRenorm]. Renorm
// must follow.
func (d *decoder) BitNoRenorm(p0 uint32) bool {
	t := (d.rng >> ScaleBits) * uint64(p0)
	bit, below, rng := d.code >= t, uint64(0), t
	if bit {
		below = t
	}
	if bit {
		rng = d.rng - t
	}
	d.code -= below
	d.rng = rng
	return bit
}

// Renorm widens the range to the minimum that the next decision needs.
func (d *decoder) Renorm() {
	if d.rng < least {
		d.shift()
	}
}

// Symbol reads a symbol of t.
func (d *decoder) Symbol(t *Table) int {
	r := d.rng >> ScaleBits
	x := int(min(d.code/r, Scale-1))
	s := int(t.hint[x>>hintShift])
	for s < Symbols-1 && x >= int(t.cum[s+1]) {
		s++
	}
	s &= Symbols - 1
	d.code -= r * uint64(t.cum[s])
	d.rng = r * uint64(t.cum[s+1]-t.cum[s])
	d.check()
	d.Renorm()
	return s
}

// Raw reads n bits, n at most 64.
func (d *decoder) Raw(n uint) uint64 {
	var v uint64
	for n > 0 {
		k := min(n, ScaleBits)
		n -= k
		d.rng >>= k & 63
		x := min(d.code/d.rng, 1<<(k&63)-1)
		d.code -= x * d.rng
		d.check()
		v = v<<(k&63) | x
		d.Renorm()
	}
	return v
}
