package seal

// Opener opens the datagrams of one direction. It is not safe for concurrent use.
//
// It has the keys of the current epoch, and those of the one before until its numbers are too old for a
// [Window]; those of the one after are made when a datagram claims to be of it, and become the current
// ones when a datagram of it has been opened.
type Opener struct {
	epoch    uint64 // of current
	previous *aead  // nil if there is none any more
	current  aead
	next     *aead // nil until it is needed
	chain    chain
}

// NewOpener returns the opener of what a [Sealer] of the same suite and secret seals. It panics if the
// suite is not valid.
func NewOpener(suite Suite, secret [32]byte) *Opener {
	o := &Opener{chain: newChain(suite, secret)}
	o.current = o.chain.next()
	return o
}

// Suite returns the suite that the opener was made with.
func (o *Opener) Suite() Suite { return o.chain.suite }

// Open authenticates a sealed text with its header, aad, and its unwrapped packet number, appends the
// plain text to dst and returns the extended slice and true. If anything of the three is not what was
// sealed, or the number is of an epoch whose keys are gone or not due, it returns dst and false, and
// the opener is as it was; the bytes behind dst up to its capacity may have been overwritten.
//
// In place is sealed[:0] as dst. Otherwise sealed must not overlap with what is appended. Nothing is
// allocated if dst has room for the plain text, but for the keys of an epoch once in 2^[EpochBits]
// numbers. Open does not know of replays: that is what [Window] is for.
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

// openNext is Open for the epoch after the current one.
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
