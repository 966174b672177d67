package trace_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	reader "github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/trace"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecord reads a recording as the tool does.
func TestRecord(t *testing.T) {
	s, err := schema.New("Move", 60, []schema.Field{{Name: "Throttle", Kind: schema.KindUint, Width: 10}})
	must(t, err)
	path := filepath.Join(t.TempDir(), "move.csv.gz")
	w, err := trace.Create(path, s, "player")
	must(t, err)
	f := s.NewFrame()
	for i := range int32(3) {
		f.Ints[0] = 100 * i
		must(t, w.Write(f, "7"))
	}
	must(t, w.Flush())
	must(t, w.Close())
	must(t, trace.WriteSchema(reader.SchemaPath(path), s))
	got, err := reader.Load(path, nil)
	must(t, err)
	if len(got.Frames) != 3 || got.Frames[2].Ints[0] != 200 || got.Schema.Fingerprint() != s.Fingerprint() {
		t.Errorf("read %+v of schema %v", got.Frames, got.Schema)
	}
	if _, err := trace.Create(path, s); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists returned %v", err)
	}
}
