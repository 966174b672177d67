package peer

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/uplink-rpc/uplink/internal/schema"
)

type compressor interface {
	compress(dst, src []byte) ([]byte, error)
	// expand appends the uncompressed bytes to dst, which has the capacity for them.
	expand(dst, src []byte) ([]byte, error)
}

// compressed applies a compressor to differences of frames.
type compressed struct {
	record
	compressor
	room []byte
	most int // maximum size of a record, in bytes
}

// onDifferences returns a Kind.New for a compressor. Training records are passed to create.
func onDifferences(create func(records [][]byte) (compressor, error)) func(*schema.Schema, Form, []Sample) (Peer, error) {
	return func(s *schema.Schema, form Form, samples []Sample) (Peer, error) {
		c := &compressed{record: newRecord(s, form)}
		c.most = 5 * len(c.components)
		for i := range c.fields {
			c.most += 3 + c.fields[i].most
		}
		records := make([][]byte, len(samples))
		for i, s := range samples {
			records[i] = c.appendRows(nil, s.Base, s.Rows)
		}
		var err error
		c.compressor, err = create(records)
		return c, err
	}
}

func (c *compressed) Append(dst []byte, base *schema.Frame, rows []schema.Frame) ([]byte, error) {
	c.room = c.appendRows(c.room[:0], base, rows)
	return c.compress(dst, c.room)
}

func (c *compressed) Decode(rows []schema.Frame, base *schema.Frame, payload []byte) (err error) {
	if most := c.most * len(rows); cap(c.room) < most {
		c.room = make([]byte, 0, most)
	}
	if c.room, err = c.expand(c.room[:0], payload); err != nil {
		return fmt.Errorf("compressed: %w", err)
	}
	if !c.parseRows(rows, base, c.room) {
		return malformed(string(c.form))
	}
	return nil
}

// newest returns the last bytes of the concatenated records.
func newest(records [][]byte, most int) []byte {
	all := slices.Concat(records...)
	return all[max(0, len(all)-most):]
}

// flateDict is the size of the preset dictionary: the window of DEFLATE.
const flateDict = 32 << 10

// deflated is DEFLATE at its best level with the newest training records as a preset dictionary.
// Like permessage-deflate of WebSocket, it omits the constant last four bytes, which are an empty
// block.
type deflated struct {
	dict []byte
	out  bytes.Buffer
	w    *flate.Writer
	in   bytes.Reader
	r    io.ReadCloser
	room []byte
}

const flateTail = "\x00\x00\xff\xff"

func newFlate(records [][]byte) (compressor, error) {
	d := &deflated{dict: newest(records, flateDict)}
	var err error
	if d.w, err = flate.NewWriterDict(&d.out, flate.BestCompression, d.dict); err != nil {
		return nil, err
	}
	d.r = flate.NewReaderDict(&d.in, d.dict)
	return d, nil
}

func (d *deflated) compress(dst, src []byte) ([]byte, error) {
	d.out.Reset()
	d.w.Reset(&d.out)
	if _, err := d.w.Write(src); err != nil {
		return dst, err
	}
	if err := d.w.Flush(); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(d.out.Bytes(), []byte(flateTail))...), nil
}

func (d *deflated) expand(dst, src []byte) ([]byte, error) {
	d.room = append(append(d.room[:0], src...), flateTail...)
	d.in.Reset(d.room)
	if err := d.r.(flate.Resetter).Reset(&d.in, d.dict); err != nil {
		return dst, err
	}
	n, err := io.ReadFull(d.r, dst[len(dst):cap(dst)])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // the last block is not marked as such
	}
	return dst[:len(dst)+n], err
}

// lz4Block is the LZ4 block format at its highest level.
type lz4Block struct{ lz4.CompressorHC }

func newLZ4([][]byte) (compressor, error) {
	return &lz4Block{lz4.CompressorHC{Level: lz4.Level9}}, nil
}

func (b *lz4Block) compress(dst, src []byte) ([]byte, error) {
	dst = slices.Grow(dst, lz4.CompressBlockBound(len(src)))
	n, err := b.CompressBlock(src, dst[len(dst):cap(dst)])
	return dst[:len(dst)+n], err
}

func (b *lz4Block) expand(dst, src []byte) ([]byte, error) {
	n, err := lz4.UncompressBlock(src, dst[len(dst):cap(dst)])
	return dst[:len(dst)+max(n, 0)], err
}

// s2Block is S2's block format at its best level, without a dictionary.
type s2Block struct{}

func newS2([][]byte) (compressor, error) { return s2Block{}, nil }

func (s2Block) compress(dst, src []byte) ([]byte, error) {
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
	return dst[:len(dst)+len(s2.EncodeBest(dst[len(dst):cap(dst)], src))], nil
}

func (s2Block) expand(dst, src []byte) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil || n > cap(dst)-len(dst) {
		return dst, malformed("s2")
	}
	return s2.Decode(dst[len(dst):len(dst)+n], src)
}

// zstdDict is the maximum size of the dictionary's content in bytes, zstdID its id. The content is
// the newest half of the training records. The entropy tables are trained on the other half,
// because records in the content would compress to references. (dict.BuildZstdDict, which chooses
// the content, needs more bits and is not reproducible.)
const (
	zstdDict = 32 << 10
	zstdID   = 1
)

// zstandard is Zstandard of klauspost/compress with a trained dictionary. Its matcher ignores the
// last 8 bytes of an input, and inputs of less than 10 bytes. The fastest level needs the fewest
// bits; the best level needs a millisecond per frame. The payload is the type of the only block,
// the
// length if the block is a run, and its content. The rest of the frame format is constant or
// determined by the length.
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
	if err != nil { // no data for tables: uses the content alone
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

// Layout of a frame, according to RFC 8878: a magic number, a descriptor, the window size, the
// dictionary id in one byte, the content size in two bytes if it is at least 256, and blocks with
// headers of three bytes.
const (
	zstdMagic      = 0xfd2fb528
	zstdWithDict   = 1       // descriptor of a frame without content size
	zstdWindow     = 10 << 3 // 2^20 bytes
	zstdBlock      = 7       // offset of the block if the size is omitted
	zstdLarge      = 256
	zstdLast       = 1
	zstdRunOfBytes = 1 // type of a run block
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
