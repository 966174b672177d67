package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/capture/record"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// decodedFrames returns how many frames were decoded by what can be read of a capture.
func decodedFrames(data []byte) (n int) {
	r, err := capture.NewReader(bytes.NewReader(data))
	for err == nil {
		var rec capture.Record
		if rec, err = r.Next(); err == nil {
			if d, ok := rec.Body.(*record.Decoded); ok {
				n += d.Frames
			}
		}
	}
	return n
}

// TestKill kills a server as kill -9 does: its files have all frames up to the last flush.
func TestKill(t *testing.T) {
	for _, record := range []string{"out.csv", "out.csv.gz"} {
		t.Run(record, func(t *testing.T) {
			t.Parallel()
			const frames = 150
			source := slice(t, sample.RocketLeague(), frames, nil)
			dir := t.TempDir()
			record, captured := filepath.Join(dir, record), filepath.Join(dir, "out.uplink")
			args := []string{"ds", "--listen", "127.0.0.1:0", "--schema", trace.SchemaPath(source.Name), "--record", record, "--capture", captured}
			cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			server := startProgram(t, cmd)
			addr := server.await(&server.stderr, `msg=listening addr=(\S+)`)[1]
			try(t, 0, "replay", "--to", addr, "--reliable", source.Name)

			// Both are flushed within a second: a busy machine has many tries.
			tries := 200
			for recorded, decoded := 0, 0; recorded < frames || decoded < frames; tries-- {
				if tries == 0 {
					t.Fatalf("of %d frames %d are in the record and %d in the capture", frames, recorded, decoded)
				}
				time.Sleep(100 * time.Millisecond)
				data, err := os.ReadFile(record)
				must(t, err)
				recorded, _ = readable(data, record, source.Schema)
				data, err = os.ReadFile(captured)
				must(t, err)
				decoded = decodedFrames(data)
			}
			must(t, cmd.Process.Kill())
			<-server.done

			for _, path := range []string{record, trace.SchemaPath(record), captured} {
				if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
					t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
				}
			}
			got, err := trace.Load(record, nil)
			if cut := strings.HasSuffix(record, ".gz"); got == nil || len(got.Frames) != frames || errors.Is(err, io.ErrUnexpectedEOF) != cut || (err != nil) != cut {
				t.Fatalf("%v", err)
			}
			for i := range got.Frames {
				if !got.Frames[i].Equal(&source.Frames[i]) {
					t.Errorf("frame %d: %v, want %v", i, got.Frames[i], source.Frames[i])
				}
			}
			out, text := try(t, 1, "inspect", captured)
			if !strings.Contains(out, "came to the same as at the server, 0 did not") || !strings.Contains(text, "the file is cut off") {
				t.Errorf("%s%s", out, text)
			}
			// The same command line does not overwrite them.
			if text := refused(t, args...); !strings.Contains(text, record) || !strings.Contains(text, "--overwrite") {
				t.Errorf("%s", text)
			}
		})
	}
}
