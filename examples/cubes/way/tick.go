package way

import (
	"encoding/binary"
	"errors"
)

// tickSize is what a message's tick takes.
const tickSize = 2

var errShort = errors.New("message is too short")

func appendTick(dst []byte, tick int) []byte {
	return binary.LittleEndian.AppendUint16(dst, uint16(tick))
}

// parseTick reads the tick at the start of a message: the one nearest to the newest that was seen.
func parseTick(b []byte, newest int) (tick int, rest []byte, err error) {
	if len(b) < tickSize {
		return 0, nil, errShort
	}
	d := int16(binary.LittleEndian.Uint16(b) - uint16(newest))
	return newest + int(d), b[tickSize:], nil
}
