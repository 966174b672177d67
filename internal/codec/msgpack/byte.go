package msgpack

import (
	"fmt"
	"math"

	lib "github.com/vmihailenco/msgpack/v5"
)

// Byte is an integer from 0 to 255. Unmarshal returns an error for any other integer; for a uint8
// it would keep the low 8 bits.
type Byte uint8

// DecodeMsgpack reads the integer. It makes Byte a lib.CustomDecoder.
func (b *Byte) DecodeMsgpack(d *lib.Decoder) error {
	n, err := d.DecodeUint64() // a negative integer becomes a large one
	if err == nil && n > math.MaxUint8 {
		err = fmt.Errorf("%w: integer %d, want 0 to %d", ErrMalformed, n, math.MaxUint8)
	}
	*b = Byte(n)
	return err
}
