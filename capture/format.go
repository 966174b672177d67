package capture

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// A file begins with magic and version, 8 bytes. Records follow: length of what is checked (varint), then what is
// checked: time since the record before (signed varint, nanoseconds), tag, body; then the check sum of length and
// what is checked (4 bytes).
const (
	magic   = "\x89uplink"
	version = 1

	checksumSize = 4
	// MaxRecord is the most bytes of a record without length and check sum: as large as a prior.
	MaxRecord = rpcdelta.MaxPrior + 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendHeader appends what a file begins with, ahead of its records, for programs that make one of others. The first
// record has to be a [Start], the last an [End].
func AppendHeader(b []byte) []byte { return append(append(b, magic...), version) }

// headerSize is its length.
const headerSize = len(magic) + 1

// AppendRecord appends a record, so much time after the one before.
func AppendRecord(b []byte, after time.Duration, body Body) []byte {
	return frame(b, after, body.append([]byte{byte(body.tag())}))
}

// frame appends a record to b, from the tag and body in r, so much time after the one before.
func frame(b []byte, after time.Duration, r []byte) []byte {
	var elapsed [binary.MaxVarintLen64]byte
	n := binary.PutVarint(elapsed[:], int64(after))
	start := len(b)
	b = binary.AppendUvarint(b, uint64(n+len(r)))
	b = append(append(b, elapsed[:n]...), r...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}
