package capture_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/capture/record"
)

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.uplink")
	before := time.Now()
	want := write(t, path)
	got := bodies(t, path)
	start, ok := got[0].(*record.Start)
	if !ok || start.Index != 0 || start.Wall.Before(before.Truncate(0)) || start.Wall.After(time.Now()) {
		t.Errorf("start %+v", got[0])
	}
	if got = got[1:]; !reflect.DeepEqual(got, want) {
		for i := range max(len(got), len(want)) {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestCut truncates a file at each byte, and changes each byte. All records before are readable,
// and the error has the position.
func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.uplink")
	write(t, path)
	data, err := os.ReadFile(path)
	must(t, err)
	whole, err := records(t, data)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	check := func(what string, n int, data []byte, want error) {
		t.Helper()
		got, err := records(t, data)
		good := 0
		for good < len(whole) && whole[good].Offset+int64(whole[good].Size) <= int64(n) {
			good++
		}
		var at *capture.FileError
		if !errors.Is(err, want) && want != nil || !errors.As(err, &at) {
			t.Fatalf("%s at %d: %v, want %v", what, n, err, want)
		}
		if at.Offset > int64(n) || good < len(whole) && good > 0 && at.Offset != whole[good].Offset || good > 0 && !reflect.DeepEqual(got, whole[:good]) {
			t.Fatalf("%s at %d: %d records and %v, want %d", what, n, len(got), err, good)
		}
	}
	for n := range len(data) {
		want := capture.ErrCut
		if n == 0 {
			want = capture.ErrForeign
		}
		check("cut", n, data[:n], want)
		changed := bytes.Clone(data)
		changed[n] ^= 0x41
		check("changed", n, changed, nil)
	}
	check("more", len(data), append(bytes.Clone(data), 0), capture.ErrDamaged)
}

func FuzzReader(f *testing.F) {
	path := filepath.Join(f.TempDir(), "out.uplink")
	write(f, path)
	data, err := os.ReadFile(path)
	must(f, err)
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := records(t, data)
		end := int64(0)
		for i, r := range all {
			if r.Body == nil || r.Number != i+1 || i > 0 && r.Offset != end {
				t.Fatalf("%d: %+v", i, r)
			}
			end = r.Offset + int64(r.Size)
		}
		var at *capture.FileError
		if !errors.Is(err, io.EOF) && !errors.As(err, &at) || end > int64(len(data)) {
			t.Fatalf("%v after %d of %d bytes", err, end, len(data))
		}
	})
}
