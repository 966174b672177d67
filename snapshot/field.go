package snapshot

import (
	"errors"
	"fmt"
)

// Limits of a schema.
const (
	// MaxFields is the most fields that an object may have.
	MaxFields = 32
	// MaxComponents is the most integers that an object may have.
	MaxComponents = 128
)

// Kind says how a field's components are predicted.
type Kind uint8

const (
	// Motion is one to three numbers that move together: a position, or any other vector or scalar.
	Motion Kind = iota
	// Quat is an orientation as its smallest three: the index of the largest, and the other three, of which Lo and Hi
	// stand for -1/sqrt 2 and 1/sqrt 2.
	Quat
	// Flags is one integer that is kept or replaced: a boolean, an enumeration, a set of bits.
	Flags
	// Angle is one to three numbers that wrap: Lo follows Hi.
	Angle
	// Bytes is a byte string of Lo to Hi bytes. Its first component is its length; each of the others holds four bytes,
	// the first one in the low bits, and what is beyond the length is zero.
	Bytes
)

// Field describes some of an object's components, in integers.
type Field struct {
	Name string
	Kind Kind
	// N is the number of components: 1 to 3 for Motion and Angle, 4 for Quat, 1 for Flags, [BytesComponents] for Bytes.
	N int
	// Lo and Hi bound each of them, but for a Quat's index, 0 to 3, and the bytes of Bytes.
	Lo, Hi int32
}

// BytesComponents is the number of components of a byte string of at most n bytes.
func BytesComponents(n int) int { return 1 + (n+3)/4 }

func (f *Field) check() error {
	span := int64(f.Hi) - int64(f.Lo)
	switch {
	case f.Name == "":
		return errors.New("a field needs a name")
	case span < 0:
		return fmt.Errorf("bounds %d to %d, want them in order", f.Lo, f.Hi)
	case (f.Kind == Motion || f.Kind == Angle) && (f.N < 1 || f.N > 3):
		return fmt.Errorf("%d components, want 1 to 3", f.N)
	case f.Kind == Angle && (span < 1 || span >= 1<<31):
		return fmt.Errorf("bounds %d to %d, want 2 to 2^31 steps a turn", f.Lo, f.Hi)
	case f.Kind == Quat && (f.N != 4 || span < 2 || span > 1<<20):
		return errors.New("an orientation has 4 components of at most 20 bits")
	case f.Kind == Flags && f.N != 1:
		return fmt.Errorf("%d components, want 1", f.N)
	case f.Kind == Bytes && (f.Lo < 0 || f.Hi < 1 || f.Hi > 4*MaxComponents):
		return fmt.Errorf("%d to %d bytes, want at most %d", f.Lo, f.Hi, 4*(MaxComponents-1))
	case f.Kind == Bytes && f.N != BytesComponents(int(f.Hi)):
		return fmt.Errorf("%d components, want %d", f.N, BytesComponents(int(f.Hi)))
	case f.Kind > Bytes:
		return fmt.Errorf("unknown kind %d", f.Kind)
	}
	return nil
}

// moves says whether the field is predicted, and not kept or replaced.
func (f *Field) moves() bool { return f.Kind != Flags && f.Kind != Bytes }

// bounds are those of component k.
func (f *Field) bounds(k int) (lo, hi int32) {
	switch {
	case f.Kind == Quat && k == 0:
		return 0, 3
	case f.Kind == Bytes && k > 0:
		return -1 << 31, 1<<31 - 1
	}
	return f.Lo, f.Hi
}

// holds says whether c may be the field's components.
func (f *Field) holds(c []int32) bool {
	for k, v := range c {
		if lo, hi := f.bounds(k); v < lo || v > hi {
			return false
		}
	}
	return f.Kind != Bytes || padded(c)
}
