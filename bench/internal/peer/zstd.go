package peer

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// zstdDict is the most bytes of the dictionary's content, and zstdID its number. The content is the newest records of the
// training; the tables are made of its first half, since records that are content would be taken for all known.
// (dict.BuildZstdDict, which chooses content itself, took more bits, and differs from run to run.)
const (
	zstdDict = 32 << 10
	zstdID   = 1
)

// zstandard is Zstandard with a trained dictionary, as klauspost/compress has it. Its matcher leaves the last 8 bytes of
// an input alone, and all of one of less than 10: small differences. The fastest level took the fewest bits; the best one
// takes a millisecond a frame. Of a frame only the content of its one block goes out, behind a byte for the block's type
// and the length of a run: the rest is the same each time, or follows from the length.
type zstandard struct {
	enc  *zstd.Encoder
	dec  *zstd.Decoder
	room []byte
}

func newZstd(records [][]byte) (compressor, error) {
	half := len(records) / 2
	content := newest(records[half:], zstdDict)
	trained, err := zstd.BuildDict(zstd.BuildDictOptions{ID: zstdID, Contents: records[:half], History: content, Offsets: [3]int{1, 4, 8}, Level: zstd.SpeedFastest})
	encoderDict, decoderDict := zstd.WithEncoderDict(trained), zstd.WithDecoderDicts(trained)
	if err != nil { // there was nothing to make tables of: the content says it all
		encoderDict, decoderDict = zstd.WithEncoderDictRaw(zstdID, content), zstd.WithDecoderDictRaw(zstdID, content)
	}
	z := &zstandard{}
	z.enc, err = zstd.NewWriter(nil, encoderDict, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(false), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	z.dec, err = zstd.NewReader(nil, decoderDict, zstd.WithDecoderConcurrency(1))
	return z, err
}

// Layout of a frame, after RFC 8878: a magic number, a descriptor, the window's size, the dictionary's number of one
// byte, the content's size in two bytes if it is at least 256, and blocks behind headers of three bytes.
const (
	zstdMagic      = 0xfd2fb528
	zstdWithDict   = 1       // the descriptor of a frame without size
	zstdWindow     = 10 << 3 // 2^20 bytes
	zstdBlock      = 7       // where the block starts if the size is left out
	zstdLarge      = 256
	zstdLast       = 1
	zstdRunOfBytes = 1 // a type of block
)

func (z *zstandard) compress(dst, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return dst, nil
	}
	z.room = z.enc.EncodeAll(src, z.room[:0])
	at := zstdBlock
	if len(src) >= zstdLarge {
		at += 2
	}
	header := uint32(z.room[at]) | uint32(z.room[at+1])<<8 | uint32(z.room[at+2])<<16
	content := z.room[at+3:]
	kind, size := header>>1&3, header>>3
	dst = append(dst, byte(kind))
	if kind == zstdRunOfBytes {
		dst = binary.AppendUvarint(dst, uint64(size))
	} else if header&zstdLast == 0 || int(size) != len(content) {
		return dst, malformed("zstd: more than one block")
	}
	return append(dst, content...), nil
}

func (z *zstandard) expand(dst, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return dst, nil
	}
	kind, content := uint32(src[0]), src[1:]
	size := uint64(len(content))
	if kind == zstdRunOfBytes {
		n := 0
		if size, n = binary.Uvarint(content); n <= 0 || size > uint64(cap(dst)) {
			return dst, malformed("zstd")
		}
		content = content[n:]
	}
	header := zstdLast | kind<<1 | uint32(size)<<3
	z.room = binary.LittleEndian.AppendUint32(z.room[:0], zstdMagic)
	z.room = append(z.room, zstdWithDict, zstdWindow, zstdID, byte(header), byte(header>>8), byte(header>>16))
	z.room = append(z.room, content...)
	return z.dec.DecodeAll(z.room, dst)
}
