package adaptive

import (
	"hash/fnv"
	"slices"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Kind is the kind of a field's components.
type Kind uint8

// The kinds of fields.
const (
	Number  Kind = iota // integers in Lo to Hi
	Angle               // unsigned integers modulo 2^Bits
	Quat                // index of the largest element, and three integers in -Hi to Hi
	Integer             // unsigned or signed integers of Bits bits, which may be counters
	Bits                // a bit set of Bits bits
	Bytes               // a byte string
)

// Field describes one field of a frame.
type Field struct {
	Kind  Kind
	At, N int // components: Ints[At : At+N]

	// Lo and Hi are the range of a Number's components; Hi is the bound of a Quat's components.
	Lo, Hi int32
	// Bits is the width of an Angle, of one value of an Integer or Bits field (1 to 64), or of one
	// component of a Quat. A value wider than 32 bits takes two components, the low half first.
	Bits uint
	// Signed marks an Integer as two's complement, sign-extended. Other Integers are stored as the
	// low 32 bits.
	Signed bool
	// Scalar marks a Number that may predict angles, such as mouse counts.
	Scalar bool

	// VelocityAt is the first component of the field that is this field's rate of change, or -1. It
	// is ignored unless that field is a Number with the same number of components, or three for a
	// Quat. PerTick is the change per frame caused by one step of the rate, see
	// [schema.Velocity]. If it is 0, the rate predicts nothing.
	VelocityAt int
	PerTick    int64

	// Blob is the index in Frame.Bytes of a Bytes field of MinBytes to MaxBytes bytes.
	Blob, MinBytes, MaxBytes int

	// Key identifies the field in a [Prior]; 0 if no prior knows it.
	Key uint64
}

// FieldsOf describes the fields of a schema.
func FieldsOf(s *schema.Schema) []Field {
	layouts := s.Layouts()
	fields := make([]Field, len(layouts))
	for i := range layouts {
		fields[i] = fieldOf(s, &layouts[i])
	}
	return fields
}

func fieldOf(s *schema.Schema, l *schema.Layout) Field {
	f := Field{At: l.At, N: l.N, Lo: l.Lo, Hi: l.Hi, Bits: l.Bits, VelocityAt: -1, Key: keyOf(s, l.Field)}
	switch l.Class {
	case schema.ClassNumber:
		f.Kind, f.Scalar = Number, l.Field.Kind == schema.KindScalar
	case schema.ClassAngle:
		f.Kind = Angle
	case schema.ClassQuat:
		f.Kind = Quat
	case schema.ClassInteger:
		f.Kind, f.Bits, f.Signed = Integer, l.Width, l.Signed
		if k := l.Field.Kind; k == schema.KindBits || k == schema.KindBool {
			f.Kind = Bits
		}
	case schema.ClassBytes:
		f.Kind, f.Blob, f.MinBytes, f.MaxBytes = Bytes, l.Blob, l.MinBytes, l.MaxBytes
	}
	for _, v := range s.Velocities() {
		if v.Field == l.Field.Name {
			of := slices.IndexFunc(s.Layouts(), func(l schema.Layout) bool { return l.Field.Name == v.Of })
			f.VelocityAt, f.PerTick = s.Layouts()[of].At, v.PerTick
		}
	}
	return f
}

// keyOf returns the key of a field in priors: a hash of the RPC and of all properties that
// determine the encoding of the field.
func keyOf(s *schema.Schema, f *schema.Field) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.RPC() + "\n" + f.String()))
	return max(1, h.Sum64())
}
