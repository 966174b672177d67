package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// Suite is the algorithm that encrypts and authenticates the datagrams of a session. Both ends use
// the same suite in both directions.
type Suite uint8

// The suites.
const (
	// None neither encrypts nor authenticates. It is for measurements.
	None Suite = iota
	// AES128GCM is AES-128 in Galois/counter mode with a tag of 16 bytes.
	AES128GCM
	// AES128CTRHMAC8 is AES-128 in counter mode, then HMAC-SHA-256 truncated to 8 bytes: half the
	// tag, at more computation. One of 2^64 forged datagrams is accepted.
	AES128CTRHMAC8
)

var suites = [...]struct {
	name     string
	overhead int
	keySize  int
	sframe   uint16 // its number in the registry of RFC 9605, which enters the key schedule
}{
	None:           {name: "none"},
	AES128GCM:      {name: "aes128gcm", overhead: 16, keySize: 16, sframe: sframeGCM128},
	AES128CTRHMAC8: {name: "aes128ctr-hmac8", overhead: 8, keySize: ctrHMACKeySize, sframe: sframeCTR64},
}

// Numbers of cipher suites in RFC 9605, section 4.5.
const (
	sframeCTR64  = 0x0002
	sframeGCM128 = 0x0004
)

// Valid reports whether s is one of the suites of this package.
func (s Suite) Valid() bool { return int(s) < len(suites) }

// Overhead returns the AEAD overhead per datagram in bytes. It is 0 for an invalid suite.
func (s Suite) Overhead() int {
	if !s.Valid() {
		return 0
	}
	return suites[s].overhead
}

// String returns the suite's name, which [ParseSuite] parses.
func (s Suite) String() string {
	if !s.Valid() {
		return fmt.Sprintf("suite(%d)", uint8(s))
	}
	return suites[s].name
}

// ParseSuite returns the suite of that name: none, aes128gcm or aes128ctr-hmac8.
func ParseSuite(name string) (Suite, error) {
	for s, suite := range suites {
		if suite.name == name {
			return Suite(s), nil
		}
	}
	return None, fmt.Errorf("seal: no suite is named %q: want %s, %s or %s", name, AES128GCM, AES128CTRHMAC8, None)
}

// aead contains the keys of one epoch. The zero value is that of [None].
type aead struct {
	suite Suite
	gcm   cipher.AEAD
	ctr   *ctrHMAC
	salt  [saltSize]byte
	nonce [saltSize]byte // scratch: arguments of interface methods escape to the heap
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
