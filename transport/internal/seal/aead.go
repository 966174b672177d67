package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// aead is the keys of one epoch. The zero value is that of [None].
type aead struct {
	suite Suite
	gcm   cipher.AEAD
	ctr   *ctrHMAC
	salt  [saltSize]byte
	nonce [saltSize]byte // scratch, since what an interface is given would be moved to the heap
}

func keySize(s Suite) int {
	if s == AES128CTRHMAC8 {
		return ctrHMACKeySize
	}
	return 16
}

func newAEAD(suite Suite, key, salt []byte) aead {
	a := aead{suite: suite, salt: [saltSize]byte(salt)}
	switch suite {
	case AES128GCM:
		a.gcm = must(cipher.NewGCM(must(aes.NewCipher(key))))
	case AES128CTRHMAC8:
		a.ctr = newCTRHMAC(key, suites[suite].overhead)
	default:
		panic("seal: no keys for " + suite.String())
	}
	return a
}

// seal appends the sealed text to dst.
func (a *aead) seal(dst, aad, plain []byte, number uint64) []byte {
	switch a.suite {
	case AES128GCM:
		return a.gcm.Seal(dst, a.nonceOf(number), plain, aad)
	case AES128CTRHMAC8:
		return a.ctr.seal(dst, a.nonceOf(number), plain, aad)
	default:
		return append(dst, plain...)
	}
}

// open appends the plain text to dst, or returns dst and false.
func (a *aead) open(dst, aad, sealed []byte, number uint64) ([]byte, bool) {
	switch a.suite {
	case AES128GCM:
		plain, err := a.gcm.Open(dst, a.nonceOf(number), sealed, aad)
		if err != nil {
			return dst, false
		}
		return plain, true
	case AES128CTRHMAC8:
		return a.ctr.open(dst, a.nonceOf(number), sealed, aad)
	default:
		return append(dst, sealed...), true
	}
}

// nonceOf returns the salt XOR the number (RFC 9605, section 4.4.3), in scratch.
func (a *aead) nonceOf(number uint64) []byte {
	copy(a.nonce[:4], a.salt[:4])
	binary.BigEndian.PutUint64(a.nonce[4:], binary.BigEndian.Uint64(a.salt[4:])^number)
	return a.nonce[:]
}
