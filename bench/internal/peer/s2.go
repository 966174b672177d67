package peer

import "github.com/klauspost/compress/s2"

// s2Block is S2's block format at its best level, without a dictionary.
type s2Block struct{ room []byte }

func newS2([][]byte) (compressor, error) { return &s2Block{}, nil }

func (b *s2Block) compress(dst, src []byte) ([]byte, error) {
	if n := s2.MaxEncodedLen(len(src)); cap(b.room) < n {
		b.room = make([]byte, n)
	}
	return append(dst, s2.EncodeBest(b.room[:cap(b.room)], src)...), nil
}

func (b *s2Block) expand(dst, src []byte) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil || n > cap(dst)-len(dst) {
		return dst, malformed("s2")
	}
	return s2.Decode(dst[len(dst):len(dst)+n], src)
}
