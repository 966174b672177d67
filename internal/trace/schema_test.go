package trace_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/uplink-rpc/uplink/internal/trace"
)

func TestSchemaPath(t *testing.T) {
	for path, want := range map[string]string{
		"a/b.csv":    "a/b.schema.json",
		"b.csv.gz":   "b.schema.json",
		"b.x.csv.gz": "b.x.schema.json",
		"b":          "b.schema.json",
	} {
		if got := trace.SchemaPath(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestSchemaErrors(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"{\n  \"rpc\": \"Move\",\n  oops\n}", "trace: a.schema.json: line 3, column 3: schema: not a schema in JSON: invalid character 'o' looking for beginning of object key string"},
		{"{\"rpc\": 7}", "trace: a.schema.json: line 1, column 9: schema: not a schema in JSON: rpc has the type number, want string"},
		{`{"rpc": "Move", "fields": [{"name": "A", "kind": "vec4"}]}`, `trace: a.schema.json: schema: Move: field "A": unknown kind "vec4"`},
	} {
		_, err := trace.LoadSchemaFS(fstest.MapFS{"a.schema.json": {Data: []byte(c.file)}}, "a.schema.json")
		wantError(t, err, c.want)
	}
	_, err := trace.LoadSchema(filepath.Join(t.TempDir(), "a.schema.json"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestWriteSchema writes a schema without columns, and checks the generated columns and the
// fingerprint.
func TestWriteSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.schema.json")
	s := everyKind(t)
	must(t, trace.WriteSchema(path, s))
	got, err := trace.LoadSchema(path)
	must(t, err)
	if got.Fingerprint() != s.Fingerprint() || got.RateHz() != s.RateHz() {
		t.Error("another schema came back")
	}
	for i, want := range map[int][]string{
		0:  {"Location_x", "Location_y", "Location_z"},
		2:  {"Wide"},
		3:  {"View_0", "View_1", "View_2"},
		4:  {"Rotation_x", "Rotation_y", "Rotation_z", "Rotation_w"},
		12: {"Blob_hex"},
	} {
		if c := got.Fields()[i].Columns; !slices.Equal(c, want) {
			t.Errorf("field %d: columns %v, want %v", i, c, want)
		}
	}
	if err := trace.WriteSchema(filepath.Join(t.TempDir(), "none", "a"), s); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
