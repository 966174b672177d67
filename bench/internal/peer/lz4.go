package peer

import "github.com/pierrec/lz4/v4"

// lz4Block is the LZ4 block format at its highest level. A block that saves nothing is one run of literals.
type lz4Block struct {
	lz4.CompressorHC
	room []byte
}

func newLZ4([][]byte) (compressor, error) {
	return &lz4Block{CompressorHC: lz4.CompressorHC{Level: lz4.Level9}}, nil
}

func (b *lz4Block) compress(dst, src []byte) ([]byte, error) {
	if n := lz4.CompressBlockBound(len(src)); cap(b.room) < n {
		b.room = make([]byte, n)
	}
	n, err := b.CompressBlock(src, b.room[:cap(b.room)])
	return append(dst, b.room[:n]...), err
}

func (b *lz4Block) expand(dst, src []byte) ([]byte, error) {
	n, err := lz4.UncompressBlock(src, dst[len(dst):cap(dst)])
	return dst[:len(dst)+max(n, 0)], err
}
