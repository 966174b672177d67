package tune

import (
	"fmt"
	"go/format"
	"strconv"
	"strings"
	"unicode"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// GoStruct returns the declaration of a Go type for which schema.Compile returns s. Its comment
// lists the properties of the game's type that a schema does not contain. A field whose name cannot
// be an exported Go name is renamed, with a comment: the schemas then differ.
func GoStruct(s *schema.Schema) (string, error) {
	names, taken := map[string]string{}, map[string]bool{}
	for _, f := range s.Fields() {
		name := goName(f.Name)
		for n := 2; taken[name]; n++ {
			name = goName(f.Name) + strconv.Itoa(n)
		}
		taken[name] = true
		names[f.Name] = name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// %s is called %g times a second. Take the tags into your own type, which may have float32 for\n"+
		"// float64, and embedded structs: a schema does not contain that.\ntype %s struct {\n", goName(s.RPC()), s.RateHz(), goName(s.RPC()))
	for i := range s.Fields() {
		f := s.Fields()[i]
		comment := ""
		if names[f.Name] != f.Name {
			comment = " // the schema has it as " + strconv.QuoteToASCII(f.Name)
		}
		f.Velocity = names[f.Velocity]
		t, tag := goType(&f)
		if tag != "" {
			tag = " " + quoteTag(tag)
		}
		fmt.Fprintf(&b, "\t%s %s%s%s\n", names[f.Name], t, tag, comment)
	}
	b.WriteString("}\n")
	out, err := format.Source([]byte(b.String()))
	return string(out), err
}

func quoteTag(options string) string { return "`uplink:\"" + options + "\"`" }

func goName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsLetter(r) || r == '_' || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	r := []rune(b.String())
	if len(r) == 0 || !unicode.IsUpper(unicode.ToUpper(r[0])) {
		return "F" + string(r)
	}
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

var typeNames = map[schema.Kind]string{
	schema.KindVec2: "schema.Vec2", schema.KindVec3: "schema.Vec3", schema.KindQuat: "schema.Quat",
	schema.KindUnitVec: "schema.UnitVec", schema.KindBytes: "[]byte",
}

// goType returns the Go type of a field, and the options of its tag.
func goType(f *schema.Field) (t, tag string) {
	var options []string
	option := func(name string, set bool, v any) {
		if set {
			options = append(options, fmt.Sprintf("%s=%v", name, v))
		}
	}
	array := func(elem string) string {
		if f.Count > 1 {
			return fmt.Sprintf("[%d]%s", f.Count, elem)
		}
		return elem
	}
	switch f.Kind {
	case schema.KindScalar:
		t = array("float64")
	case schema.KindAngle:
		if t = map[int]string{1: "schema.Angle", 3: "schema.Rotator"}[f.Count]; t == "" {
			t = array("float64")
			option("kind", true, f.Kind)
		}
	case schema.KindBool:
		t = array("bool")
	case schema.KindUint, schema.KindInt, schema.KindBits:
		size := integerSize(f)
		switch t = array(fmt.Sprintf("uint%d", size)); {
		case f.Kind == schema.KindInt:
			t = array(fmt.Sprintf("int%d", size))
		case f.Kind == schema.KindBits && f.Width == 1:
			t = array("bool")
		}
		option("kind", f.Kind == schema.KindBits, f.Kind)
		option("width", f.Width != size, f.Width)
	case schema.KindFixed:
		t = fmt.Sprintf("[%d]byte", f.Size)
	default:
		t = typeNames[f.Kind]
	}
	option("resolution", f.Resolution != 0, f.Resolution)
	option("bits", f.Bits != 0, f.Bits)
	if f.Min != nil {
		option("min", true, *f.Min)
	}
	if f.Max != nil {
		option("max", true, *f.Max)
	}
	option("velocity", f.Velocity != "", f.Velocity)
	option("velocity_scale", f.Velocity != "" && f.VelocityScale != 0 && f.VelocityScale != 1, f.VelocityScale)
	return t, strings.Join(options, ",")
}

// integerSize returns the smallest size of an integer that holds the field's values. The minimum is
// 16 bits for arrays, since an array of bytes would be a byte string.
func integerSize(f *schema.Field) int {
	size := 8
	if f.Count > 1 && f.Kind != schema.KindInt {
		size = 16
	}
	for size < f.Width {
		size *= 2
	}
	return size
}
