package peer

import (
	"bytes"
	"compress/flate"
	"io"
)

// flateDict is the preset dictionary's size: deflate looks no further back.
const flateDict = 32 << 10

// deflated is DEFLATE at its best level with a preset dictionary: the newest records of the training. As WebSocket's
// permessage-deflate does, it ends with an empty block whose last four bytes, always the same, are left out.
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
		err = nil // the last block is not marked as the last one
	}
	return dst[:len(dst)+n], err
}
