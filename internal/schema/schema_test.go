package schema

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestFingerprint verifies that every change that affects the wire format changes the fingerprint,
// and no other change does.
func TestFingerprint(t *testing.T) {
	base := func() []Field {
		return []Field{
			{Name: "P", Kind: KindVec3, Resolution: 0.1, Velocity: "V"},
			{Name: "V", Kind: KindVec3, Resolution: 0.1},
			{Name: "A", Kind: KindAngle, Count: 2},
			{Name: "U", Kind: KindUint, Width: 8},
			{Name: "B", Kind: KindBytes, Max: new(9.0)},
			{Name: "F", Kind: KindFixed, Size: 3},
		}
	}
	want := mustSchema(t, base()...).Fingerprint()
	for _, c := range []struct {
		name   string
		change func(f []Field)
		same   bool
	}{
		{"nothing", func([]Field) {}, true},
		{"columns", func(f []Field) { f[0].Columns = []string{"x", "y", "z"} }, true},
		{"default bits spelled out", func(f []Field) { f[2].Bits = 16 }, true},
		{"default scale spelled out", func(f []Field) { f[0].VelocityScale = 1 }, true},
		{"name", func(f []Field) { f[3].Name = "X" }, false},
		{"kind", func(f []Field) { f[3].Kind = KindInt }, false},
		{"count", func(f []Field) { f[2].Count = 3 }, false},
		{"resolution", func(f []Field) { f[0].Resolution = 0.2 }, false},
		{"bits", func(f []Field) { f[2].Bits = 15 }, false},
		{"width", func(f []Field) { f[3].Width = 7 }, false},
		{"size", func(f []Field) { f[5].Size = 4 }, false},
		{"min", func(f []Field) { f[0].Min = new(0.0) }, false},
		{"max", func(f []Field) { f[4].Max = new(10.0) }, false},
		{"velocity", func(f []Field) { f[0].Velocity = "" }, false},
		{"velocity_scale", func(f []Field) { f[0].VelocityScale = 2 }, false},
		{"order", func(f []Field) { f[3], f[4] = f[4], f[3] }, false},
	} {
		fields := base()
		c.change(fields)
		if got := mustSchema(t, fields...).Fingerprint(); (got == want) != c.same {
			t.Errorf("%s: same %v, want %v", c.name, got == want, c.same)
		}
	}
}

func TestSchemaErrors(t *testing.T) {
	fields := func(list string) string { return `{"rpc": "Test", "fields": [` + list + `]}` }
	field := func(rest string) string { return fields(`{"name": "Odd", ` + rest + `}`) }
	for _, c := range []struct {
		file string
		want []string
	}{
		{``, []string{"schema: the file is empty"}},
		{`{"rpc": "Test"`, []string{"schema: the file ends before"}},
		{`[]`, []string{"schema: not a schema in JSON:"}},
		{`{"rpc": "Test"}`, []string{"Test", "0 fields"}},
		{`{"fields": [{"name": "A", "kind": "bool"}]}`, []string{"RPC's name"}},
		{`{"rpc": "Test", "rate_hz": -1, "fields": [{"name": "A", "kind": "bool"}]}`, []string{"rate -1"}},
		{`{"rpc": "Test", "rate_hz": 1001, "fields": [{"name": "A", "kind": "bool"}]}`, []string{"rate 1001"}},
		{`{"rpc": "Test", "speed": 1}`, []string{`"speed"`}},
		{field(`"kind": "bool", "color": "red"`), []string{`"color"`}},
		{field(`"kind": "bool"`) + `x`, []string{"closing brace"}},
		{field(`"kind": "bool"`) + `}`, []string{"closing brace"}},
		{field(`"kind": "bool"`) + `{}`, []string{"closing brace"}},
		{`{"rpc": "Test", "fields": [{"kind": "bool"}]}`, []string{"needs a name"}},
		{field(`"kind": "vec4"`), []string{`"Odd"`, `unknown kind "vec4"`}},
		{field(`"resolution": 1`), []string{`"Odd"`, `unknown kind ""`}},
		{field(`"kind": "vec3"`), []string{`"Odd"`, "resolution 0"}},
		{field(`"kind": "vec3", "resolution": "1"`), []string{"resolution"}},
		{field(`"kind": "vec3", "resolution": 1, "columns": ["x", "y"]`), []string{`"Odd"`, "2 columns, want 3"}},
		{field(`"kind": "vec3", "resolution": 1, "count": 2`), []string{`"Odd"`, "count 2"}},
		{field(`"kind": "vec3", "resolution": 1, "width": 2`), []string{`"Odd"`, "width means nothing for kind vec3"}},
		{field(`"kind": "scalar", "resolution": 1, "count": 2, "columns": ["x"]`), []string{`"Odd"`, "1 columns, but count is 2"}},
		{field(`"kind": "scalar", "resolution": 1, "count": -1`), []string{`"Odd"`, "count -1"}},
		{field(`"kind": "scalar", "resolution": 1, "count": 100000`), []string{`"Odd"`, "count 100000"}},
		{field(`"kind": "scalar", "resolution": 1, "size": 1`), []string{`"Odd"`, "size means nothing"}},
		{field(`"kind": "uint"`), []string{`"Odd"`, "width 0"}},
		{field(`"kind": "uint", "width": 8, "min": 1`), []string{`"Odd"`, "min means nothing"}},
		{field(`"kind": "bool", "width": 2`), []string{`"Odd"`, "width 2"}},
		{field(`"kind": "fixed"`), []string{`"Odd"`, "size 0"}},
		{field(`"kind": "fixed", "size": 20000`), []string{`"Odd"`, "size 20000"}},
		{field(`"kind": "bytes"`), []string{`"Odd"`, "needs max"}},
		{field(`"kind": "bytes", "max": 64, "columns": ["a", "b"]`), []string{`"Odd"`, "2 columns, want 1"}},
		{field(`"kind": "quat", "velocity": "Odd"`), []string{`"Odd"`, "leads back"}},
		{field(`"kind": "angle", "velocity": "Odd"`), []string{`"Odd"`, "velocity means nothing"}},
		{fields(`{"name": "A", "kind": "bool"}, {"name": "A", "kind": "bool"}`), []string{`"A"`, "used twice"}},
		{fields(`{"name": "A", "kind": "vec2", "resolution": 1, "velocity": "B"},
			{"name": "B", "kind": "vec2", "resolution": 1, "velocity": "C"},
			{"name": "C", "kind": "vec2", "resolution": 1, "velocity": "B"}`), []string{`"A"`, `leads back to "B"`}},
		{
			fields(`{"name": "Q", "kind": "quat", "velocity": "V"}, {"name": "V", "kind": "vec2", "resolution": 1}`),
			[]string{`"Q"`, "vec2 of 2, want a vec or scalar of 3"},
		},
		{fields(`{"name": "P", "kind": "vec3", "resolution": 1, "velocity": "N"}, {"name": "N", "kind": "unitvec"}`), []string{`"P"`, "unitvec"}},
		{
			fields(`{"name": "A", "kind": "scalar", "count": 1000, "resolution": 1},
			{"name": "B", "kind": "angle", "count": 1000}`),
			[]string{"2000 components"},
		},
		{fields(`{"name": "A", "kind": "bytes", "max": 16000}, {"name": "B", "kind": "bytes", "max": 16000}`), []string{"32004 bytes"}},
	} {
		_, err := Parse([]byte(c.file))
		if err == nil {
			t.Errorf("%s: no error", c.file)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %s", c.file, err, part)
			}
		}
	}
	many := make([]Field, MaxFields+1)
	for i := range many {
		many[i] = Field{Name: fmt.Sprint(i), Kind: KindBool}
	}
	if _, err := New("Test", 0, many); err == nil || !strings.Contains(err.Error(), "257 fields") {
		t.Errorf("too many fields: %v", err)
	}
}

// TestSchemaBombs parses the schema files that take the most memory for their size.
func TestSchemaBombs(t *testing.T) {
	for name, c := range map[string]struct{ head, part string }{
		"fields":    {`{"fields": [{}`, ",{}"},
		"columns":   {`{"fields": [{"columns": [""`, `,""`},
		"bounds":    {`{"fields": [{}`, `,{"min":0,"max":0}`},
		"arrays":    {`{"fields": `, "["},
		"a name":    {`{"rpc": "`, "a"},
		"a number":  {`{"rate_hz": 1`, "0"},
		"no member": {`{"`, "a"},
	} {
		file := []byte(c.head)
		for len(file)+len(c.part) <= MaxFile-3 {
			file = append(file, c.part...)
		}
		for _, end := range []string{"", "]}", "]}]}"} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(append(slices.Clone(file), end...))
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 64<<20 {
				t.Errorf("%s: %d bytes are allocated, %v", name, n, err)
			}
		}
	}
	if _, err := Parse(make([]byte, MaxFile+1)); err == nil || !strings.Contains(err.Error(), "want at most 196608") {
		t.Errorf("too long: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"rpc": "A", "fields": [{"name": "V", "kind": "vec3", "columns": ["x","y","z"], "resolution": 0.1},
		{"name": "B", "kind": "bytes", "max": 64}, {"name": "A", "kind": "angle", "count": 3}]}`))
	f.Add([]byte(`{"rpc": "A", "fields": [{"name": "S", "kind": "scalar", "resolution": 1, "min": 9e6}]}`))
	f.Add([]byte(`{"rpc": "A", "fields": [{"name": "S", "kind": "scalar", "resolution": 1, "min": -2147483648, "max": 1e9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		file, err := s.AppendJSON(nil)
		must(t, err)
		if len(file) > MaxFile {
			return // the file was written closer
		}
		again, err := Parse(file)
		if err != nil || again.Fingerprint() != s.Fingerprint() {
			t.Fatalf("%s, read again: %v", file, err)
		}
	})
}

// TestAtRate verifies that the rate changes and the wire format does not.
func TestAtRate(t *testing.T) {
	s := mustSchema(t, Field{Name: "A", Kind: KindBool})
	if same, err := s.AtRate(60); err != nil || same != s {
		t.Errorf("at the same rate: %v, %v", same, err)
	}
	if slow, err := s.AtRate(20); err != nil || slow.RateHz() != 20 || slow.Fingerprint() != s.Fingerprint() {
		t.Errorf("at 20 Hz: %v, %v", slow, err)
	}
}

func TestBinaryBytes(t *testing.T) {
	s := mustSchema(t,
		Field{Name: "P", Kind: KindVec3, Resolution: 1}, // not binary
		Field{Name: "U", Kind: KindUint, Width: 9, Count: 2},
		Field{Name: "W", Kind: KindInt, Width: 64},
		Field{Name: "F", Kind: KindFixed, Size: 3},
		Field{Name: "Short", Kind: KindBytes, Max: new(127.0)},
		Field{Name: "Long", Kind: KindBytes, Max: new(128.0)},
	)
	if got, want := s.BinaryBytes(), 2*2+8+3+1+127+2+128; got != want || s.Strings() != 3 {
		t.Errorf("%d bytes, %d byte strings, want %d and 3", got, s.Strings(), want)
	}
}

// TestDerived verifies that a value is built once for each schema and key.
func TestDerived(t *testing.T) {
	a, b := mustSchema(t, Field{Name: "A", Kind: KindBool}), mustSchema(t, Field{Name: "B", Kind: KindBool})
	calls := 0
	build := func(s *Schema) any { calls++; return s }
	for range 2 {
		if a.Derived("key", build) != a || b.Derived("key", build) != b {
			t.Error("got the value of another schema")
		}
	}
	if calls != 2 {
		t.Errorf("built %d times, want 2", calls)
	}
	if v := a.Derived("other", func(*Schema) any { return 1 }); v != 1 {
		t.Errorf("got %v under another key", v)
	}
}

// TestWithPerTick verifies that factors of the other end replace those of the schema, and that
// factors out of range or in another number are errors.
func TestWithPerTick(t *testing.T) {
	s, err := New("Move", 50, []Field{
		{Name: "Speed", Kind: KindScalar, Resolution: .5},
		{Name: "Place", Kind: KindScalar, Resolution: .25, Velocity: "Speed", VelocityScale: 10},
	})
	if err != nil || !slices.Equal(s.PerTick(), []int64{StepsPerTick(.4)}) {
		t.Fatalf("factors %v, %v", s.PerTick(), err)
	}
	if got, err := s.WithPerTick(20, []int64{-7}); err != nil || got.RateHz() != 20 || !slices.Equal(got.PerTick(), []int64{-7}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, factors := range [][]int64{nil, {1, 2}, {MaxPerTick + 1}, {-MaxPerTick - 1}, {math.MinInt64}} {
		if _, err := s.WithPerTick(20, factors); err == nil {
			t.Errorf("%v was accepted", factors)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1 << 21, -1 << 21} {
		if f := StepsPerTick(v); f != 0 {
			t.Errorf("%v is %d", v, f)
		}
	}
}
