package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"slices"
)

const (
	ctrKeySize     = 16
	ctrHMACKeySize = ctrKeySize + sha256.Size
	streamBlocks   = 4 // blocks of the key stream per iteration
)

// ctrHMAC is the AEAD of RFC 9605, section 4.5.1: AES-128 in counter mode, then HMAC-SHA-256 over
// the lengths, the nonce, the associated data and the ciphertext, truncated to tagSize bytes.
type ctrHMAC struct {
	block   cipher.Block
	mac     hash.Hash
	tagSize int
	scratch *ctrScratch
}

// ctrScratch contains arguments of interface methods, so that they do not escape to the heap in
// each call.
type ctrScratch struct {
	counter [aes.BlockSize]byte
	stream  [streamBlocks * aes.BlockSize]byte
	head    [3*8 + saltSize]byte
	sum     [sha256.Size]byte
}

func newCTRHMAC(key []byte, tagSize int) *ctrHMAC {
	return &ctrHMAC{
		block:   must(aes.NewCipher(key[:ctrKeySize])),
		mac:     hmac.New(sha256.New, key[ctrKeySize:]),
		tagSize: tagSize,
		scratch: &ctrScratch{},
	}
}

func (c *ctrHMAC) seal(dst, nonce, plain, aad []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(plain)+c.tagSize)[:n+len(plain)]
	c.xor(dst[n:], plain, nonce)
	return append(dst, c.tag(nonce, aad, dst[n:])...)
}

func (c *ctrHMAC) open(dst, nonce, sealed, aad []byte) ([]byte, bool) {
	size := len(sealed) - c.tagSize
	if size < 0 || subtle.ConstantTimeCompare(c.tag(nonce, aad, sealed[:size]), sealed[size:]) == 0 {
		return dst, false
	}
	n := len(dst)
	dst = slices.Grow(dst, size)[:n+size]
	c.xor(dst[n:], sealed[:size], nonce)
	return dst, true
}

// xor sets dst to src XOR the key stream. dst and src have the same length, and are either the same
// memory or do not overlap.
func (c *ctrHMAC) xor(dst, src, nonce []byte) {
	s := c.scratch
	copy(s.counter[:], nonce)
	for i := uint32(0); len(src) > 0; {
		stream := s.stream[:min((len(src)+aes.BlockSize-1)&^(aes.BlockSize-1), len(s.stream))]
		for b := stream; len(b) > 0; b = b[aes.BlockSize:] {
			binary.BigEndian.PutUint32(s.counter[saltSize:], i)
			c.block.Encrypt(b, s.counter[:])
			i++
		}
		n := subtle.XORBytes(dst, src, stream)
		dst, src = dst[n:], src[n:]
	}
}

func (c *ctrHMAC) tag(nonce, aad, sealed []byte) []byte {
	head := &c.scratch.head
	binary.BigEndian.PutUint64(head[0:], uint64(len(aad)))
	binary.BigEndian.PutUint64(head[8:], uint64(len(sealed)))
	binary.BigEndian.PutUint64(head[16:], uint64(c.tagSize))
	copy(head[24:], nonce)
	c.mac.Reset()
	c.mac.Write(head[:])
	c.mac.Write(aad)
	c.mac.Write(sealed)
	return c.mac.Sum(c.scratch.sum[:0])[:c.tagSize]
}
