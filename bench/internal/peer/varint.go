package peer

// uncompressed is what compressors get, sent as it is.
type uncompressed struct{}

func newUncompressed([][]byte) (compressor, error) { return uncompressed{}, nil }

func (uncompressed) compress(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

func (uncompressed) expand(dst, src []byte) ([]byte, error) {
	if len(src) > cap(dst)-len(dst) {
		return dst, malformed("varint")
	}
	return append(dst, src...), nil
}
