package seal

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
)

// mac is HMAC-SHA-256 under one key. Both of its hashes begin with a block that depends on the key
// alone, so the states behind these blocks are kept and restored. crypto/hmac does that too, but copies
// its hashes to finish them, which small datagrams feel: here the padding is written as part of the text,
// and the hash is read from the state behind it.
type mac struct {
	inner, outer sha256State
}

// sha256State is a marshaled hash: a magic number, the chaining value, a block not yet complete, the
// length.
type sha256State [108]byte

const stateMagic = "sha\x03"

// sum returns the chaining value, which is the hash if the padding was written.
func (s *sha256State) sum() []byte { return s[len(stateMagic):][:sha256.Size] }

// macScratch is what the computation of a [mac] needs beside the key. It can serve any number of keys.
type macScratch struct {
	hash  resumableHash
	state sha256State
	buf   [2 * sha256.BlockSize]byte // what is to be hashed, if it is small, and its padding
	size  int                        // how much was written
	held  int                        // how much of that is in buf and not in hash
}

type resumableHash interface {
	hash.Hash
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

func newMACScratch() *macScratch { return &macScratch{hash: sha256.New().(resumableHash)} }

// newMAC returns the MAC of a key of at most one block.
func newMAC(key []byte, s *macScratch) mac {
	return mac{inner: s.keyed(key, 0x36), outer: s.keyed(key, 0x5c)}
}

// keyed returns the state behind the key XOR pad.
func (s *macScratch) keyed(key []byte, pad byte) (state sha256State) {
	block := s.buf[:sha256.BlockSize]
	clear(block[copy(block, key):])
	for i := range block {
		block[i] ^= pad
	}
	s.hash.Reset()
	s.hash.Write(block)
	s.save()
	return s.state
}

// begin makes s ready for the text of a MAC of m.
func (s *macScratch) begin(m *mac) {
	s.restore(&m.inner)
	s.size, s.held = 0, 0
}

// write adds to the text. Once it is too long for the buffer, it goes to the hash.
func (s *macScratch) write(p []byte) {
	s.size += len(p)
	if len(p) > len(s.buf)-s.held {
		s.hash.Write(s.buf[:s.held])
		s.held = 0
		s.hash.Write(p)
		return
	}
	s.held += copy(s.buf[s.held:], p)
}

// end returns the MAC of what was written, in scratch.
func (s *macScratch) end(m *mac) []byte {
	s.finish()
	s.restore(&m.outer)
	s.size, s.held = sha256.Size, copy(s.buf[:], s.state.sum())
	s.finish()
	return s.state.sum()
}

// finish pads what was written and leaves the hash in state.
func (s *macScratch) finish() {
	const length = 8
	padding := sha256.BlockSize - (s.size+length)%sha256.BlockSize + length // 1 to 64, then the length
	if s.held+padding > len(s.buf) {
		s.hash.Write(s.buf[:s.held])
		s.held = 0
	}
	tail := s.buf[s.held:][:padding]
	clear(tail)
	tail[0] = 0x80
	binary.BigEndian.PutUint64(tail[padding-length:], 8*uint64(sha256.BlockSize+s.size))
	s.hash.Write(s.buf[:s.held+padding])
	s.save()
}

// save and restore panic if the standard library marshals hashes in another way than it did.
func (s *macScratch) save() {
	b := must(s.hash.AppendBinary(s.state[:0]))
	if len(b) != len(s.state) || string(b[:len(stateMagic)]) != stateMagic {
		panic("seal: unknown form of a SHA-256 state")
	}
}

func (s *macScratch) restore(state *sha256State) {
	if err := s.hash.UnmarshalBinary(state[:]); err != nil {
		panic("seal: " + err.Error())
	}
}
