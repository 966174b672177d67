package keylog

import (
	"encoding/binary"

	"github.com/uplink-rpc/uplink/transport/internal/seal"
)

// A record is a datagram that was opened. It begins with a byte of the form that no datagram has, so that neither
// end takes it for one:
//
//	byte  0xc0, and bit 0 set if it went to the client
//	3     "upl"
//	u8    suite that it was sealed with
//	u64   id of the session
//	u64   packet number, whole
//	...   the datagram: header as it was sent, body unsealed, no tag
//
// Integers are little-endian.
const (
	recordForm     = 0xc0
	recordToClient = 1 << 0
	recordMagic    = "upl"
	// RecordHeader is the size of what stands before the datagram in a record, in bytes.
	RecordHeader = 1 + len(recordMagic) + 1 + 8 + 8
)

func (d *direction) appendRecordHeader(dst []byte, number uint64) []byte {
	first := byte(recordForm)
	if !d.toServer {
		first |= recordToClient
	}
	dst = append(append(dst, first), recordMagic...)
	dst = append(dst, byte(d.archive.Suite()))
	dst = binary.LittleEndian.AppendUint64(dst, d.session.id)
	return binary.LittleEndian.AppendUint64(dst, number)
}

// isRecord says that a datagram was opened before.
func isRecord(b []byte) bool {
	return len(b) >= RecordHeader && b[0]&^recordToClient == recordForm && string(b[1:4]) == recordMagic && seal.Suite(b[4]).Valid()
}
