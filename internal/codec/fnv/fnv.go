// Package fnv implements the FNV-1a hash of 64 bits over whole 64-bit words, for the divergence
// checks of the codecs. It differs from hash/fnv, which hashes bytes, and is faster.
package fnv

// Hash is the state of a hash. Start a hash from [Offset].
type Hash uint64

// Offset is the hash of no words.
const Offset Hash = 14695981039346656037

const prime = 1099511628211

// Add returns the hash with the word v added.
func (h Hash) Add(v uint64) Hash { return (h ^ Hash(v)) * prime }

// AddBytes returns the hash with each byte of b added as a word of its own. For single bytes it
// equals FNV-1a of hash/fnv.
func (h Hash) AddBytes(b []byte) Hash {
	for _, c := range b {
		h = h.Add(uint64(c))
	}
	return h
}

// Fold16 returns the exclusive or of the four 16-bit words of the hash.
func (h Hash) Fold16() uint16 { return uint16(h ^ h>>16 ^ h>>32 ^ h>>48) }
