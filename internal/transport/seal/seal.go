// Package seal implements the cryptography of the transport: the handshake that derives the secrets
// of a session ([Initiator], [Responder]), the cookies by which a listener validates addresses
// before a handshake ([Cookies]), the encryption of datagrams ([Sealer], [Opener]), and the replay
// window ([Window]). It has no socket and no clock.
//
// The handshake is Noise_NK_25519_ChaChaPoly_SHA256: the client knows the server's static key, and
// authenticates itself by the payload of its first message.
//
// Datagrams are encrypted like frames of SFrame (RFC 9605): its key schedule with the epoch as key
// id, its nonces with the packet number as counter, the datagram's header as associated data. An
// epoch is 2^20 packet numbers long; the secrets of successive epochs are SFrame's ratchet, a
// one-way function.
package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// EpochBits is the number of bits of a packet number within an epoch.
const EpochBits = 20

// Sealer encrypts the datagrams of one direction. It is not safe for concurrent use.
type Sealer struct {
	chain chain
	keys  aead
	next  uint64 // lowest number that may be encrypted next
}

// NewSealer returns the sealer of a direction; the other end uses [NewOpener] with the same suite
// and secret. It panics if the suite is invalid. Only one sealer may use a secret: a second one
// would reuse its nonces.
func NewSealer(suite Suite, secret [32]byte) *Sealer {
	s := &Sealer{chain: newChain(suite, secret)}
	s.keys = s.chain.next()
	return s
}

// Suite returns the suite of the sealer.
func (s *Sealer) Suite() Suite { return s.chain.suite }

// Seal appends the ciphertext of plain to dst and returns the extended slice, which is
// Suite().Overhead() bytes longer than dst and plain together. The associated data, aad, is the
// datagram's header as it is sent; it may be the contents of dst. plain may begin where dst ends,
// in the same array; otherwise it must not overlap with the appended bytes. If dst has room, only
// the keys of an epoch are allocated, once in 2^[EpochBits] numbers.
//
// Numbers increase, not necessarily by one, and the first one is in epoch 0. Seal panics if number
// is not larger than in the previous call: two texts with the same nonce would reveal each other.
func (s *Sealer) Seal(dst, aad, plain []byte, number uint64) []byte {
	if number < s.next {
		panic("seal: a packet number was used twice")
	}
	s.next = number + 1
	for number>>EpochBits >= s.chain.epoch {
		s.keys = s.chain.next()
	}
	return s.keys.seal(dst, aad, plain, number)
}

// Opener decrypts the datagrams of one direction. It is not safe for concurrent use.
//
// It holds the keys of the current epoch, and of the previous epoch until its numbers are too old
// for a [Window]. The keys of the next epoch are derived when a datagram indicates that epoch, and
// become the current ones when such a datagram is authentic.
type Opener struct {
	epoch    uint64 // epoch of current
	previous *aead  // keys of the previous epoch; nil once its numbers are too old
	current  aead
	next     *aead // keys of the next epoch; nil until a datagram indicates it
	chain    chain
}

// NewOpener returns the opener for a [Sealer] of the same suite and secret. It panics if the suite
// is invalid.
func NewOpener(suite Suite, secret [32]byte) *Opener {
	o := &Opener{chain: newChain(suite, secret)}
	o.current = o.chain.next()
	return o
}

// Suite returns the suite of the opener.
func (o *Opener) Suite() Suite { return o.chain.suite }

// Open authenticates a ciphertext, its header aad, and its complete packet number. It appends the
// plaintext to dst and returns the extended slice and true. If any of the three is not authentic,
// or there are no keys for the number's epoch, it returns dst and false and leaves the opener
// unchanged; the bytes of dst beyond its length may be overwritten.
//
// To decrypt in place, dst is sealed[:0]; otherwise sealed must not overlap with the appended
// bytes. If dst has room, only the keys of an epoch are allocated, once in 2^[EpochBits] numbers.
// Open does not detect replays; [Window] does.
func (o *Opener) Open(dst, aad, sealed []byte, number uint64) ([]byte, bool) {
	switch epoch := number >> EpochBits; epoch {
	case o.epoch:
		plain, ok := o.current.open(dst, aad, sealed, number)
		if ok && number%(1<<EpochBits) >= WindowSize {
			o.previous = nil
		}
		return plain, ok
	case o.epoch - 1:
		if o.previous == nil {
			return dst, false
		}
		return o.previous.open(dst, aad, sealed, number)
	case o.epoch + 1:
		return o.openNext(dst, aad, sealed, number)
	}
	return dst, false
}

func (o *Opener) openNext(dst, aad, sealed []byte, number uint64) ([]byte, bool) {
	if o.next == nil {
		keys := o.chain.next()
		o.next = &keys
	}
	plain, ok := o.next.open(dst, aad, sealed, number)
	if ok {
		last := o.current
		o.previous, o.current, o.next = &last, *o.next, nil
		o.epoch++
	}
	return plain, ok
}

// MaxArchive is the number of epochs of an [Archive]: 2^26 datagrams.
const MaxArchive = 64

// Archive decrypts the recorded datagrams of one direction, in any order and more than once. It
// retains the keys of all epochs that were used; a session must not do that. It is not safe for
// concurrent use.
type Archive struct {
	chain  chain
	epochs []aead
}

// NewArchive returns the archive for a [Sealer] of the same suite and secret. It panics if the
// suite is invalid.
func NewArchive(suite Suite, secret [32]byte) *Archive {
	return &Archive{chain: newChain(suite, secret)}
}

// Suite returns the suite of the archive.
func (a *Archive) Suite() Suite { return a.chain.suite }

// Open is like [Opener.Open] for a number in any of the first [MaxArchive] epochs.
func (a *Archive) Open(dst, aad, sealed []byte, number uint64) ([]byte, bool) {
	epoch := number >> EpochBits
	if epoch >= MaxArchive {
		return dst, false
	}
	for uint64(len(a.epochs)) <= epoch {
		a.epochs = append(a.epochs, a.chain.next())
	}
	return a.epochs[epoch].open(dst, aad, sealed, number)
}

const (
	saltSize   = 12
	secretSize = 32
)

// chain is the ratchet of one direction. It holds the secret of the next epoch to derive. Earlier
// secrets cannot be computed from it.
type chain struct {
	suite  Suite
	epoch  uint64
	secret [secretSize]byte
}

func newChain(suite Suite, secret [secretSize]byte) chain {
	if !suite.Valid() {
		panic("seal: there is no " + suite.String())
	}
	return chain{suite: suite, secret: secret}
}

// next returns the keys of the chain's epoch and advances the ratchet by one.
func (c *chain) next() aead {
	epoch := c.epoch
	c.epoch++
	if c.suite == None {
		return aead{}
	}
	s := &suites[c.suite]
	prk := extract(c.secret[:])
	copy(c.secret[:], expand(prk, "SFrame 1.0 Ratchet", secretSize))
	return newAEAD(c.suite, deriveKey(prk, s.sframe, epoch, s.keySize), deriveSalt(prk, s.sframe, epoch))
}

// deriveKey and deriveSalt implement RFC 9605, section 4.4.2.
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
	return must(hkdf.Extract(sha256.New, secret, nil))
}

func expand(prk []byte, info string, size int) []byte {
	return must(hkdf.Expand(sha256.New, prk, info, size))
}

// must returns v. err is not nil only if a length in this package is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic("seal: " + err.Error())
	}
	return v
}
