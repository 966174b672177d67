package seal

import (
	"crypto/subtle"
	"encoding/binary"
	"slices"

	"golang.org/x/crypto/chacha20"
)

const sipTagSize = 8

// chachaSip is an AEAD of ChaCha20 and SipHash-2-4. The key stream begins with block 0 of RFC 8439.
// Its first 16 bytes are the key of the tag; the bytes after them encrypt. The tag is SipHash-2-4
// of the associated data, the ciphertext, and the length of the associated data in one byte.
// docs/design/compact-suite.md gives the reasons.
type chachaSip struct {
	key [chacha20.KeySize]byte
}

// start returns the key stream of a nonce, positioned after the key of the tag, and the state of
// the tag.
func (c *chachaSip) start(nonce []byte) (chacha20.Cipher, sipHash) {
	stream := must(chacha20.NewUnauthenticatedCipher(c.key[:], nonce))
	var key [sipHashKeySize]byte
	stream.XORKeyStream(key[:], key[:])
	return *stream, newSipHash(&key)
}

func (c *chachaSip) seal(dst, nonce, plain, aad []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(plain)+sipTagSize)[:n+len(plain)]
	stream, mac := c.start(nonce)
	stream.XORKeyStream(dst[n:], plain)
	return binary.LittleEndian.AppendUint64(dst, mac.tag(aad, dst[n:]))
}

func (c *chachaSip) open(dst, nonce, sealed, aad []byte) ([]byte, bool) {
	size := len(sealed) - sipTagSize
	if size < 0 {
		return dst, false
	}
	stream, mac := c.start(nonce)
	var tag [sipTagSize]byte
	binary.LittleEndian.PutUint64(tag[:], mac.tag(aad, sealed[:size]))
	if subtle.ConstantTimeCompare(tag[:], sealed[size:]) == 0 {
		return dst, false
	}
	n := len(dst)
	dst = slices.Grow(dst, size)[:n+size]
	stream.XORKeyStream(dst[n:], sealed[:size])
	return dst, true
}

// tag returns the tag of a datagram. The hashed text is unambiguous if aad has fewer than 256
// bytes.
func (h *sipHash) tag(aad, sealed []byte) uint64 {
	h.write(aad)
	h.write(sealed)
	h.write([]byte{uint8(len(aad))})
	return h.sum()
}
