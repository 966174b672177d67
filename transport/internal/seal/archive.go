package seal

// MaxArchive is how many epochs an [Archive] reaches: more than 2^26 datagrams.
const MaxArchive = 64

// Archive opens the recorded datagrams of one direction, in any order and as often as they come. It keeps the
// keys of all epochs that it has been asked for, which a session must not. It is not safe for concurrent use.
type Archive struct {
	chain  chain
	epochs []aead
}

// NewArchive returns the archive of what a [Sealer] of the same suite and secret has sealed. It panics if the
// suite is not valid.
func NewArchive(suite Suite, secret [32]byte) *Archive {
	return &Archive{chain: newChain(suite, secret)}
}

// Suite returns the suite that the archive was made with.
func (a *Archive) Suite() Suite { return a.chain.suite }

// Open is [Opener.Open] for a number of any of the first [MaxArchive] epochs.
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
