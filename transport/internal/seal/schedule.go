package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

const (
	saltSize   = 12
	secretSize = 32
)

// chain is the ratchet of one direction: the secret of an epoch whose keys were not derived yet. What
// it was before cannot be found from what it is.
type chain struct {
	suite  Suite
	epoch  uint64
	secret [secretSize]byte
}

// newChain returns the chain at epoch 0. It panics if there is no such suite.
func newChain(suite Suite, secret [secretSize]byte) chain {
	if !suite.Valid() {
		panic("seal: there is no " + suite.String())
	}
	return chain{suite: suite, secret: secret}
}

// next returns the keys of the chain's epoch and turns the ratchet by one.
func (c *chain) next() aead {
	if c.suite == None {
		c.epoch++
		return aead{}
	}
	s := suites[c.suite]
	prk := extract(c.secret[:])
	a := newAEAD(c.suite, deriveKey(prk, s.sframe, c.epoch, keySize(c.suite)), deriveSalt(prk, s.sframe, c.epoch))
	copy(c.secret[:], expand(prk, "SFrame 1.0 Ratchet", secretSize))
	c.epoch++
	return a
}

// deriveKey and deriveSalt are RFC 9605, section 4.4.2.
func deriveKey(prk []byte, sframe uint16, kid uint64, size int) []byte {
	return expand(prk, label("SFrame 1.0 Secret key ", kid, sframe), size)
}

func deriveSalt(prk []byte, sframe uint16, kid uint64) []byte {
	return expand(prk, label("SFrame 1.0 Secret salt ", kid, sframe), saltSize)
}

func label(text string, kid uint64, sframe uint16) string {
	b := binary.BigEndian.AppendUint64([]byte(text), kid)
	return string(binary.BigEndian.AppendUint16(b, sframe))
}

func extract(secret []byte) []byte {
	prk, err := hkdf.Extract(sha256.New, secret, nil)
	return must(prk, err)
}

func expand(prk []byte, info string, size int) []byte {
	key, err := hkdf.Expand(sha256.New, prk, info, size)
	return must(key, err)
}

// must is for calls that fail only if a length in this package is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic("seal: " + err.Error())
	}
	return v
}
