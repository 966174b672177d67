package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20"
	"golang.org/x/crypto/chacha20poly1305"
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
	// ChaCha20Poly1305 is the AEAD of RFC 8439, with a tag of 16 bytes.
	ChaCha20Poly1305
	// ChaCha20SipHash8 is ChaCha20, then SipHash-2-4 with a key of its own for each datagram, and a
	// tag of 8 bytes. One of 2^64 forged datagrams is accepted.
	ChaCha20SipHash8
)

var suites = [...]struct {
	name     string
	overhead int
	keySize  int
	sframe   uint16 // number in the registry of RFC 9605; an input of the key schedule
}{
	None:             {name: "none"},
	AES128GCM:        {name: "aes128gcm", overhead: 16, keySize: 16, sframe: sframeGCM128},
	AES128CTRHMAC8:   {name: "aes128ctr-hmac8", overhead: 8, keySize: ctrHMACKeySize, sframe: sframeCTR64},
	ChaCha20Poly1305: {name: "chacha20-poly1305", overhead: 16, keySize: chacha20poly1305.KeySize, sframe: sframeChaChaPoly},
	ChaCha20SipHash8: {name: "chacha20-siphash8", overhead: sipTagSize, keySize: chacha20.KeySize, sframe: sframeChaChaSip},
}

// Numbers of cipher suites in RFC 9605, section 4.5, and two of the range for private use.
const (
	sframeCTR64      = 0x0002
	sframeGCM128     = 0x0004
	sframeChaChaPoly = 0xf001
	sframeChaChaSip  = 0xf002
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

// ParseSuite returns the suite of a name that [Suite.String] returns.
func ParseSuite(name string) (Suite, error) {
	var names []string
	for s, suite := range suites {
		if suite.name == name {
			return Suite(s), nil
		}
		names = append(names, suite.name)
	}
	return None, fmt.Errorf("seal: no suite is named %q: want one of %s", name, strings.Join(names, ", "))
}

// aead contains the keys of one epoch. The zero value is the AEAD of [None].
type aead struct {
	std   cipher.AEAD // for suites with a tag of 16 bytes
	small compactAEAD // for compact suites
	salt  [saltSize]byte
	nonce [saltSize]byte // scratch: arguments of interface methods escape to the heap
}

// compactAEAD is an AEAD with a tag of less than 16 bytes. Its methods are like those of
// [cipher.AEAD], but open returns dst if the ciphertext is not authentic.
type compactAEAD interface {
	seal(dst, nonce, plain, aad []byte) []byte
	open(dst, nonce, sealed, aad []byte) ([]byte, bool)
}

func newAEAD(suite Suite, key, salt []byte) aead {
	a := aead{salt: [saltSize]byte(salt)}
	switch suite {
	case AES128GCM:
		a.std = must(cipher.NewGCM(must(aes.NewCipher(key))))
	case AES128CTRHMAC8:
		a.small = newCTRHMAC(key, suites[suite].overhead)
	case ChaCha20Poly1305:
		a.std = must(chacha20poly1305.New(key))
	case ChaCha20SipHash8:
		a.small = &chachaSip{key: [chacha20.KeySize]byte(key)}
	default:
		panic("seal: no keys for " + suite.String())
	}
	return a
}

func (a *aead) seal(dst, aad, plain []byte, number uint64) []byte {
	switch {
	case a.std != nil:
		return a.std.Seal(dst, a.nonceOf(number), plain, aad)
	case a.small != nil:
		return a.small.seal(dst, a.nonceOf(number), plain, aad)
	default:
		return append(dst, plain...)
	}
}

func (a *aead) open(dst, aad, sealed []byte, number uint64) ([]byte, bool) {
	switch {
	case a.std != nil:
		plain, err := a.std.Open(dst, a.nonceOf(number), sealed, aad)
		if err != nil {
			return dst, false
		}
		return plain, true
	case a.small != nil:
		return a.small.open(dst, a.nonceOf(number), sealed, aad)
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
