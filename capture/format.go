package capture

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/uplink-rpc/uplink/capture/record"
)

// A file starts with magic and version. Each record has the length of its content (varint), the
// content, and the CRC-32C of both (4 bytes). The content is the time since the previous record in
// nanoseconds (signed varint), the tag and the body.
const (
	magic        = "\x89uplink"
	version      = 1
	headerSize   = len(magic) + 1
	checksumSize = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendHeader appends the header of a file, for programs that write captures without a [Writer].
// The first record must be a [record.Start], the last a [record.End].
func AppendHeader(b []byte) []byte { return append(append(b, magic...), version) }

// AppendRecord appends a record, at the given time since the previous one.
func AppendRecord(b []byte, elapsed time.Duration, body record.Body) []byte {
	return appendFramed(b, elapsed, body.Append(nil))
}

// appendFramed appends a record with the given tag and body.
func appendFramed(b []byte, elapsed time.Duration, content []byte) []byte {
	var varint [binary.MaxVarintLen64]byte
	n := binary.PutVarint(varint[:], int64(elapsed))
	start := len(b)
	b = binary.AppendUvarint(b, uint64(n+len(content)))
	b = append(append(b, varint[:n]...), content...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}
