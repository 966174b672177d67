package snapshot

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/schema"
)

// Limits of a schema.
const (
	maxFields     = 32
	maxComponents = 128
)

// Field describes the components of one field of an object. Its class determines how they are
// coded:
//
//   - ClassNumber: one to three numbers that change together, such as a position.
//   - ClassAngle: one to three angles; Lo follows Hi.
//   - ClassQuat: an orientation as its smallest three: the index of the largest component, 0 to 3,
//     and the other three, from Lo for -1/sqrt 2 to Hi for 1/sqrt 2.
//   - ClassInteger: one integer that is kept or replaced: a boolean, an enumeration, a bit set.
//   - ClassBytes: a byte string of Lo to Hi bytes. The first component is its length; each of the
//     others holds four bytes, low byte first, padded with zeros.
type Field struct {
	Name  string
	Class schema.Class
	// N is the number of components.
	N int
	// Lo and Hi bound each component, except for the index of a quaternion and the bytes of a byte
	// string.
	Lo, Hi int32
}

// bytesComponents returns the number of components of a byte string of at most n bytes.
func bytesComponents(n int) int { return 1 + (n+3)/4 }

func (f *Field) check() error {
	span := int64(f.Hi) - int64(f.Lo)
	switch {
	case f.Name == "":
		return errors.New("a field needs a name")
	case span < 0:
		return fmt.Errorf("bounds %d to %d, want them in order", f.Lo, f.Hi)
	case (f.Class == schema.ClassNumber || f.Class == schema.ClassAngle) && (f.N < 1 || f.N > 3):
		return fmt.Errorf("%d components, want 1 to 3", f.N)
	case f.Class == schema.ClassAngle && (span < 1 || span >= 1<<31):
		return fmt.Errorf("bounds %d to %d, want 2 to 2^31 steps a turn", f.Lo, f.Hi)
	case f.Class == schema.ClassQuat && (f.N != 4 || span < 2 || span > 1<<20):
		return errors.New("an orientation has 4 components of at most 20 bits")
	case f.Class == schema.ClassInteger && f.N != 1:
		return fmt.Errorf("%d components, want 1", f.N)
	case f.Class == schema.ClassBytes && (f.Lo < 0 || f.Hi < 1 || f.Hi > 4*maxComponents):
		return fmt.Errorf("%d to %d bytes, want at most %d", f.Lo, f.Hi, 4*(maxComponents-1))
	case f.Class == schema.ClassBytes && f.N != bytesComponents(int(f.Hi)):
		return fmt.Errorf("%d components, want %d", f.N, bytesComponents(int(f.Hi)))
	case f.Class > schema.ClassBytes:
		return fmt.Errorf("unknown class %d", f.Class)
	}
	return nil
}

// moves says whether the field is predicted, and not kept or replaced.
func (f *Field) moves() bool { return f.Class != schema.ClassInteger && f.Class != schema.ClassBytes }

// bounds are those of component k.
func (f *Field) bounds(k int) (lo, hi int32) {
	switch {
	case f.Class == schema.ClassQuat && k == 0:
		return 0, 3
	case f.Class == schema.ClassBytes && k > 0:
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
	return f.Class != schema.ClassBytes || padded(c)
}
