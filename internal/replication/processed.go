package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Processed contains the number of a client's calls of each RPC that the server had processed when
// it sent a message of a world. It differs between players, so the encodings that players share do
// not contain it. It is a byte with the number of RPCs, and then for each RPC, by ascending number,
// the RPC's number and the low 16 bits of the sequence number after the last processed call.
type Processed []byte

const processedSize = 3 // bytes per RPC

// maxCoded is the maximum size of a message without its type and Processed.
const maxCoded = MaxMessage - 1 - (1 + MaxProcessed*processedSize)

// AppendProcessed appends a Processed without RPCs. [AddProcessed] adds them.
func AppendProcessed(dst []byte) []byte { return append(dst, 0) }

// AddProcessed adds an RPC to the Processed that begins at b[at:] and ends with b, up to
// MaxProcessed. next is the sequence number after the last call that was processed.
func AddProcessed(b []byte, at int, rpc uint8, next uint64) []byte {
	if b[at] == MaxProcessed {
		return b
	}
	b[at]++
	return binary.LittleEndian.AppendUint16(append(b, rpc), uint16(next))
}

// parseProcessed splits a message into its Processed and the rest.
func parseProcessed(b []byte) (p Processed, rest []byte, err error) {
	if len(b) == 0 || b[0] > MaxProcessed || len(b) < 1+int(b[0])*processedSize {
		return nil, nil, fmt.Errorf("%w: the processed calls are incomplete", snapshot.ErrMalformed)
	}
	n := 1 + int(b[0])*processedSize
	for i := 1 + processedSize; i < n; i += processedSize {
		if b[i] <= b[i-processedSize] {
			return nil, nil, fmt.Errorf("%w: processed calls of RPC %d after %d", snapshot.ErrMalformed, b[i], b[i-processedSize])
		}
	}
	return b[:n], b[n:], nil
}

// Of returns the sequence number after the last processed call of an RPC. sent is the sequence
// number after the last call that the client made. Of returns false if the server does not report
// the RPC. A server that repeats a call in place of missing ones may be ahead of the client; Of
// then returns sent.
func (p Processed) Of(rpc uint8, sent uint64) (next uint64, ok bool) {
	for i := 1; i < len(p); i += processedSize {
		if p[i] == rpc {
			return min(seq.Nearest(uint64(binary.LittleEndian.Uint16(p[i+1:])), 16, sent), sent), true
		}
	}
	return 0, false
}
