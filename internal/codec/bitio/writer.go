package bitio

import "encoding/binary"

// Writer packs bits into the slice given to Reset. The zero value appends to nil. It grows the
// slice as append does, so nothing is allocated while the slice has room.
type Writer struct {
	dst  []byte
	base int    // len(dst) at Reset
	acc  uint64 // bits not yet in dst, the oldest in the lowest place; bits above n are zero
	n    uint   // bits in acc, 0 to 63
}

// Reset discards the written bits and starts at the end of dst, at a byte boundary.
func (w *Writer) Reset(dst []byte) {
	*w = Writer{dst: dst, base: len(dst)}
}

// WriteBits writes the low n bits of v, lowest first, and ignores the others. It panics if n is
// over 64.
func (w *Writer) WriteBits(v uint64, n uint) {
	v &= 1<<n - 1
	if n < 64-w.n {
		w.acc |= v << w.n
		w.n += n
		return
	}
	w.spill(v, n)
}

// spill is the part of WriteBits for a full accumulator.
func (w *Writer) spill(v uint64, n uint) {
	if n > 64 {
		panic("bitio: more than 64 bits in one write")
	}
	w.dst = binary.LittleEndian.AppendUint64(w.dst, w.acc|v<<w.n)
	w.acc = v >> (64 - w.n)
	w.n += n - 64
}

// WriteTruncated writes v as the engine's truncated integer below limit, in TruncatedBits(v, limit)
// bits. It panics unless v < limit.
func (w *Writer) WriteTruncated(v, limit uint32) {
	w.WriteBits(uint64(v), uint(TruncatedBits(v, limit)))
}

// Bits returns the number of bits written since Reset, padding included.
func (w *Writer) Bits() int {
	return (len(w.dst)-w.base)*8 + int(w.n)
}

// Align writes zero bits up to the next byte boundary.
func (w *Writer) Align() {
	w.WriteBits(0, -w.n&7)
}

// AppendBytes appends b. It panics if the writer is not at a byte boundary.
func (w *Writer) AppendBytes(b []byte) {
	if w.n&7 != 0 {
		panic("bitio: AppendBytes between bytes: call Align first")
	}
	w.flush()
	w.dst = append(w.dst, b...)
}

// Bytes pads the last byte with zeros, as Align does, and returns the slice given to Reset,
// extended by the written bits. Writing may continue from the byte boundary as long as the caller
// does not append to the result.
func (w *Writer) Bytes() []byte {
	w.Align()
	w.flush()
	return w.dst
}

// flush moves the whole bytes of the aligned accumulator to dst.
func (w *Writer) flush() {
	for ; w.n > 0; w.n -= 8 {
		w.dst = append(w.dst, byte(w.acc))
		w.acc >>= 8
	}
}
