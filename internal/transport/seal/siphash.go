package seal

import (
	"encoding/binary"
	"math/bits"
)

// sipHash computes SipHash-2-4 of Aumasson and Bernstein, with a result of 64 bits, over any number
// of writes.
type sipHash struct {
	state sipState
	word  uint64 // bytes of an incomplete word, little-endian
	size  int    // number of bytes written
}

type sipState struct{ v0, v1, v2, v3 uint64 }

const sipHashKeySize = 16

func newSipHash(key *[sipHashKeySize]byte) sipHash {
	k0, k1 := binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])
	return sipHash{state: sipState{
		k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573,
	}}
}

func (h *sipHash) write(b []byte) {
	s, word, shift := h.state, h.word, h.size%8*8
	h.size += len(b)
	for ; len(b) >= 8; b = b[8:] {
		next := binary.LittleEndian.Uint64(b)
		s = s.add(word | next<<shift)
		word = next >> (64 - shift)
	}
	for _, c := range b {
		word |= uint64(c) << shift
		if shift += 8; shift == 64 {
			s = s.add(word)
			word, shift = 0, 0
		}
	}
	h.state, h.word = s, word
}

// sum returns the hash of the bytes written so far.
func (h *sipHash) sum() uint64 {
	s := h.state.add(h.word | uint64(h.size)<<56)
	s.v2 ^= 0xff
	s = s.round().round().round().round()
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

func (s sipState) add(word uint64) sipState {
	s.v3 ^= word
	s = s.round().round()
	s.v0 ^= word
	return s
}

func (s sipState) round() sipState {
	s.v0 += s.v1
	s.v2 += s.v3
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 = bits.RotateLeft64(s.v0, 32) + s.v3
	s.v2 += s.v1
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v2 = bits.RotateLeft64(s.v2, 32)
	return s
}
