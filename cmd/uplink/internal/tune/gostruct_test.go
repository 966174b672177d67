package tune

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
)

// Everything is the struct that TestGoStruct expects to be printed.
type Everything struct {
	P2      schema.Vec2    `uplink:"resolution=0.5"`
	P3      schema.Vec3    `uplink:"resolution=0.001,min=-1000,max=1.5e+06,velocity=V3,velocity_scale=0.01"`
	V3      schema.Vec3    `uplink:"resolution=1e-05"`
	Q       schema.Quat    `uplink:"bits=14,velocity=V3"`
	U       schema.UnitVec `uplink:"bits=12"`
	S       float64        `uplink:"resolution=0.1"`
	S2      [2]float64     `uplink:"resolution=0.1,velocity=P2"`
	A       schema.Angle   `uplink:"bits=16"`
	A2      [2]float64     `uplink:"kind=angle,bits=10"`
	A3      schema.Rotator `uplink:"bits=16"`
	B       bool
	B4      [4]bool
	Un      uint8
	Un9     uint16    `uplink:"width=9"`
	Un2     [2]uint16 `uplink:"width=8"`
	In      int64     `uplink:"width=40"`
	In3     [3]int8   `uplink:"width=5"`
	Set     uint32    `uplink:"kind=bits"`
	Set5    [5]bool   `uplink:"kind=bits,width=1"`
	Set33   [2]uint64 `uplink:"kind=bits,width=33"`
	Fixed   [7]byte
	Payload []byte `uplink:"max=64"`
}

func fields(t *testing.T) []schema.Field {
	t.Helper()
	c, err := schema.Compile[Everything]("Everything", 20)
	uplinktest.Must(t, err)
	return c.Schema().Fields()
}

// structOf parses a declaration and gives its fields, in order: names, types and tags.
func structOf(t *testing.T, text string) (name string, out [][3]string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", "package p\n"+text, parser.ParseComments)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	spec := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
	source := "package p\n" + text
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		x := [3]string{f.Names[0].Name, source[f.Type.Pos()-1 : f.Type.End()-1], ""}
		if f.Tag != nil {
			x[2] = f.Tag.Value
		}
		if !token.IsExported(x[0]) {
			t.Errorf("field %s is not exported", x[0])
		}
		out = append(out, x)
	}
	return spec.Name.Name, out
}

// TestGoStruct: the printed struct is the one that has the schema, field by field; the compiler
// sees the latter.
func TestGoStruct(t *testing.T) {
	s, err := schema.New("Everything", 20, fields(t))
	uplinktest.Must(t, err)
	text, err := GoStruct(s)
	uplinktest.Must(t, err)
	name, got := structOf(t, text)
	want := declared(t)
	if name != "Everything" || len(got) != len(want) || !strings.HasPrefix(text, "// Everything is called 20 times a second.\n") {
		t.Fatalf("%s", text)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

// TestGoStructNames: for all field names, the struct can be parsed, and its names differ.
func TestGoStructNames(t *testing.T) {
	hostile := []string{"location", "Location", "a b", "a-b", "`\"\n}", "9", "_", "*/", "", "ß", "日本", "type", "Ünder"}
	var all []schema.Field
	for _, n := range hostile {
		if n != "" {
			all = append(all, schema.Field{Name: n, Kind: schema.KindScalar, Resolution: 1, Velocity: "location"})
		}
	}
	all[0].Velocity = ""
	s, err := schema.New("server move!", 60, all)
	uplinktest.Must(t, err)
	text, err := GoStruct(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	name, got := structOf(t, text)
	seen := map[string]bool{}
	for i, f := range got {
		if seen[f[0]] {
			t.Errorf("%s is there twice", f[0])
		}
		seen[f[0]] = true
		if i > 0 && !strings.Contains(f[2], "velocity="+got[0][0]+`"`) {
			t.Errorf("%q", f)
		}
	}
	if name != "Servermove" || len(got) != len(all) || !strings.Contains(text, `the schema has it as "a b"`) {
		t.Errorf("%s", text)
	}
}

// declared returns the fields of Everything in the form that structOf uses.
func declared(t *testing.T) (out [][3]string) {
	t.Helper()
	typ := reflect.TypeFor[Everything]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := ""
		if f.Tag != "" {
			tag = "`" + string(f.Tag) + "`"
		}
		out = append(out, [3]string{f.Name, strings.ReplaceAll(f.Type.String(), "]uint8", "]byte"), tag})
	}
	return out
}
