package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/privatefile"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// SchemaPath returns the path of the schema file of a trace: NAME.schema.json for NAME.csv or
// NAME.csv.gz.
func SchemaPath(tracePath string) string {
	return strings.TrimSuffix(strings.TrimSuffix(tracePath, ".gz"), ".csv") + ".schema.json"
}

// LoadSchema reads a schema file of at most schema.MaxFile bytes. The error names the file and, for
// invalid JSON, the line and column.
func LoadSchema(path string) (*schema.Schema, error) { return LoadSchemaFS(osFS{}, path) }

// LoadSchemaFS is [LoadSchema] for a file of fsys.
func LoadSchemaFS(fsys fs.FS, path string) (*schema.Schema, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: schema file: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, schema.MaxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("trace: schema file: %w", err)
	}
	s, err := schema.Parse(data)
	if err == nil {
		return s, nil
	}
	offset := int64(-1)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = mistyped.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return nil, fmt.Errorf("trace: %s: %w", path, err)
	}
	before := data[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - (1 + bytes.LastIndexByte(before, '\n'))
	return nil, fmt.Errorf("trace: %s: line %d, column %d: %w", path, line, column, err)
}

// WriteSchema creates a schema file with the names of all columns that a [Writer] of the schema
// writes. As with [Create], the file must not exist, and gets the mode 0600.
func WriteSchema(path string, s *schema.Schema) error {
	fields := slices.Clone(s.Fields())
	for i := range fields {
		fields[i].Columns = Columns(&fields[i])
	}
	var data []byte
	named, err := schema.New(s.RPC(), s.RateHz(), fields)
	if err == nil {
		data, err = named.AppendJSON(nil)
	}
	if err != nil {
		return fmt.Errorf("trace: schema file %s: %w", path, err)
	}
	f, err := privatefile.Create(path, false)
	if err != nil {
		return fmt.Errorf("trace: schema file: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("trace: schema file: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// Columns returns the names of the columns of a field: its Columns or, if there are none, names
// generated from its name, such as Location_x, Axes_0 or Payload_hex.
func Columns(f *schema.Field) []string {
	if len(f.Columns) != 0 {
		return f.Columns
	}
	if f.IsBytes() {
		return []string{f.Name + "_hex"}
	}
	n := f.Values()
	if n == 1 {
		return []string{f.Name}
	}
	names := make([]string, n)
	vectors := []schema.Kind{schema.KindVec2, schema.KindVec3, schema.KindUnitVec, schema.KindQuat}
	for k := range names {
		suffix := strconv.Itoa(k)
		if slices.Contains(vectors, f.Kind) {
			suffix = "xyzw"[k : k+1]
		}
		names[k] = f.Name + "_" + suffix
	}
	return names
}
