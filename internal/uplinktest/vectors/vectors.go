// Package vectors writes and compares the files of test vectors and tables that the specification
// refers to.
package vectors

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/repo"
)

var update = flag.Bool("update", false, "write recorded files, such as sessions, vectors and tables")

// Update reports whether the flag -update is set.
func Update() bool { return *update }

// Section is a member of a file of vectors: a JSON value. Each element of a slice has a line of its
// own.
type Section struct {
	Name  string
	Value any
}

// Check compares the file at path, relative to the root of the repository, with the sections. With
// -update it writes the file.
func Check(t *testing.T, path string, sections ...Section) {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("{\n")
	for i, s := range sections {
		if i > 0 {
			out.WriteString(",\n")
		}
		out.Write(marshal(t, s.Name))
		out.WriteString(": ")
		v := reflect.ValueOf(s.Value)
		if _, raw := s.Value.(json.RawMessage); raw || v.Kind() != reflect.Slice {
			out.Write(marshal(t, s.Value))
			continue
		}
		for k := range v.Len() {
			separator := ",\n"
			if k == 0 {
				separator = "[\n"
			}
			out.WriteString(separator)
			out.Write(marshal(t, v.Index(k).Interface()))
		}
		out.WriteString("\n]")
	}
	out.WriteString("\n}\n")
	Compare(t, path, out.Bytes())
}

// Compare compares the file at path, relative to the root of the repository, with data. With
// -update it writes the file.
func Compare(t *testing.T, path string, data []byte) {
	t.Helper()
	file := filepath.Join(repo.Root(t), path)
	if Update() {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("%s differs from the code: if the wire format was to change, run this test with -update", path)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
