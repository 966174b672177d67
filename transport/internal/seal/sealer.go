package seal

// Sealer seals the datagrams of one direction. It is not safe for concurrent use.
type Sealer struct {
	chain chain
	keys  aead
	next  uint64 // the lowest number that may be sealed
}

// NewSealer returns the sealer of a direction; the other end opens with [NewOpener] of the same suite
// and secret. It panics if the suite is not valid. A secret serves one sealer: a second one would use
// the same nonces again.
func NewSealer(suite Suite, secret [32]byte) *Sealer {
	s := &Sealer{chain: newChain(suite, secret)}
	s.keys = s.chain.next()
	return s
}

// Suite returns the suite that the sealer was made with.
func (s *Sealer) Suite() Suite { return s.chain.suite }

// Seal appends the sealed text of plain to dst and returns the extended slice, which is
// Suite().Overhead() bytes longer than dst and plain together. The associated data, aad, is the
// datagram's header as it is sent; it may be the contents of dst. plain may begin where dst ends, in the
// same array, and must not overlap with what is appended otherwise. Nothing is allocated if dst has
// room, but for the keys of an epoch once in 2^[EpochBits] numbers.
//
// Numbers go up, not necessarily by one, and the first one is in epoch 0. Seal panics if number is not
// higher than that of the call before, since two texts under one number give both away.
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
