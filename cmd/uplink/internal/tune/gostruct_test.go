package tune

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
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

// TestGoStruct: the printed struct is the one whose schema it is, as this file has it.
func TestGoStruct(t *testing.T) {
	compiled, err := schema.Compile[Everything]("Everything", 20)
	uplinktest.Must(t, err)
	text, err := GoStruct(compiled.Schema())
	uplinktest.Must(t, err)
	source, err := os.ReadFile("gostruct_test.go")
	uplinktest.Must(t, err)
	declaration, ok := strings.CutPrefix(text, "// Everything is called 20 times a second. Take the tags into your own type, which may have float32 for\n// float64, and embedded structs: a schema does not contain that.\n")
	if !ok || !strings.Contains(string(source), "\n"+declaration) {
		t.Errorf("%s", text)
	}
}

// TestGoStructNames: for all field names, the struct can be parsed, and its names differ.
func TestGoStructNames(t *testing.T) {
	var all []schema.Field
	hostile := []string{"location", "Location", "a b", "a-b", "`\"\n}", "9", "_", "*/", "ß", "日本", "type", "Ünder"}
	for _, n := range hostile {
		all = append(all, schema.Field{Name: n, Kind: schema.KindScalar, Resolution: 1, Velocity: "location"})
	}
	all[0].Velocity = ""
	s, err := schema.New("server move!", 60, all)
	uplinktest.Must(t, err)
	text, err := GoStruct(s)
	uplinktest.Must(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.ParseComments)
	uplinktest.Must(t, err)
	spec := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
	fields := spec.Type.(*ast.StructType).Fields.List
	seen := map[string]bool{}
	for i, f := range fields {
		name := f.Names[0].Name
		velocity := "velocity=" + fields[0].Names[0].Name + `"`
		if seen[name] || !token.IsExported(name) || i > 0 && !strings.Contains(f.Tag.Value, velocity) {
			t.Errorf("%s %v", name, f.Tag)
		}
		seen[name] = true
	}
	if spec.Name.Name != "Servermove" || len(fields) != len(all) || !strings.Contains(text, `the schema has it as "a b"`) {
		t.Errorf("%s", text)
	}
}
