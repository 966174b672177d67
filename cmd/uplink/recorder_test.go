package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// fullDisk has room for so many bytes.
type fullDisk struct {
	bytes.Buffer
	room int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) > d.room {
		return 0, syscall.ENOSPC
	}
	d.room -= len(b)
	return d.Buffer.Write(b)
}

// recording starts a recorder whose file is on a disk, and returns what it logs.
func recording(t *testing.T, name string, disk io.Writer, s *schema.Schema) (*recorder, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	r := &recorder{path: name, schema: s, log: slog.New(slog.NewTextHandler(&log, nil))}
	w, err := trace.NewWriter(disk, name, s, recordColumns...)
	must(t, err)
	r.start(w)
	return r, &log
}

// readable returns how many rows can be read so far, and why there are no more.
func readable(data []byte, name string, s *schema.Schema) (rows int, err error) {
	r, err := trace.NewReader(bytes.NewReader(data), name, s)
	if err != nil {
		return 0, err
	}
	f := s.NewFrame()
	for {
		if err := r.Read(f); err != nil {
			return rows, err
		}
		rows++
	}
}

// TestRecordFlushes: an open recorder's file is readable and has all rows older than a second.
func TestRecordFlushes(t *testing.T) {
	for _, name := range []string{"out.csv", "out.csv.gz"} {
		synctest.Test(t, func(t *testing.T) {
			full := sample.RocketLeague()
			disk := &fullDisk{room: 1 << 20}
			r, log := recording(t, name, disk, full.Schema)
			const rate = 60
			for n := range 4 * rate {
				synctest.Wait()
				r.mu.Lock()
				rows, err := readable(disk.Bytes(), name, full.Schema)
				r.mu.Unlock()
				if rows < n-rate {
					t.Fatalf("%s: %d rows of %d can be read", name, rows, n)
				}
				if want := map[string]error{"out.csv": io.EOF, "out.csv.gz": io.ErrUnexpectedEOF}[name]; !errors.Is(err, want) {
					t.Fatalf("%s: after %d rows: %v, want %v", name, rows, err, want)
				}
				r.row(full.At(n), "1", "2", "3", "4")
				time.Sleep(time.Second / rate)
			}
			must(t, r.close())
			must(t, r.close())
			if rows, err := readable(disk.Bytes(), name, full.Schema); rows != 4*rate || !errors.Is(err, io.EOF) || log.Len() != 0 {
				t.Errorf("%s: %d rows, %v, logged %s", name, rows, err, log)
			}
		})
	}
}

// TestRecordFullDisk: the error is logged once, and each row is in the file or counted as lost.
func TestRecordFullDisk(t *testing.T) {
	for _, name := range []string{"out.csv", "out.csv.gz"} {
		synctest.Test(t, func(t *testing.T) {
			full := sample.RocketLeague()
			disk := &fullDisk{room: 5000}
			r, log := recording(t, name, disk, full.Schema)
			const rate, rows = 60, 1200
			for n := range rows {
				r.row(full.At(n), "1", "2", "3", "4")
				time.Sleep(time.Second / rate)
				synctest.Wait()
				r.mu.Lock()
				lost, logged := r.lost.Load(), strings.Count(log.String(), "level=ERROR")
				r.mu.Unlock()
				if (lost != 0) != (logged == 1) || logged > 1 {
					t.Fatalf("%s: row %d: %d lost, %d errors are logged: %s", name, n, lost, logged, log)
				}
			}
			if !strings.Contains(log.String(), `msg="recording stopped" file=`+name+` error="trace: `+name+`: no space left on device"`) && runtime.GOOS != "windows" {
				t.Errorf("%s: %s", name, log)
			}
			err := r.close()
			read, _ := readable(disk.Bytes(), name, full.Schema)
			lost := float64(r.lost.Load())
			if strings.Count(log.String(), "level=ERROR") != 1 {
				t.Errorf("%s: the end is logged, too: %s", name, log)
			}
			if !errors.Is(err, syscall.ENOSPC) || read == 0 || float64(read)+lost < rows || lost > rows-float64(read)+rate/2 {
				t.Errorf("%s: %v; %d rows can be read and %v are lost, of %d", name, err, read, lost, rows)
			}
		})
	}
}

// refused starts a server that must not start, and returns what it writes to standard error.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	p := start(t, args...)
	for {
		text, changed := p.stderr.read()
		if strings.Contains(text, "msg=listening") {
			t.Fatalf("uplink %s: it runs: %s", strings.Join(args, " "), text)
		}
		select {
		case <-changed:
		case <-p.done:
			if p.code != 1 {
				t.Fatalf("uplink %s: code %d: %s", strings.Join(args, " "), p.code, p.stderr.String())
			}
			return p.stderr.String()
		}
	}
}

// TestRecordExisting starts servers whose record exists already, or its schema file, or is a link.
func TestRecordExisting(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 5, nil)
	dir := t.TempDir()
	record, schema, target := filepath.Join(dir, "out.csv"), filepath.Join(dir, "out.schema.json"), filepath.Join(dir, "target")
	args := []string{"ds", "--listen", "127.0.0.1:0", "--schema", trace.SchemaPath(source.Name), "--record", record}
	const hint = "\nhint: choose another name, or add --overwrite to replace it\n"
	for _, there := range []string{record, schema} {
		must(t, os.WriteFile(there, []byte("old"), 0o600))
		must(t, os.Chmod(there, 0o666))
		if text := refused(t, args...); !strings.Contains(text, "uplink: --record: trace: ") || !strings.Contains(text, there) || !strings.HasSuffix(text, hint) {
			t.Errorf("%s", text)
		}
		if got, err := os.ReadFile(there); err != nil || string(got) != "old" {
			t.Errorf("%s: %q, %v", there, got, err)
		}
		for _, other := range []string{record, schema} {
			if _, err := os.Stat(other); other != there && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s was left there: %v", other, err)
			}
		}
		p, _ := startDS(t, append(args[3:], "--overwrite")...)
		p.interrupt()
		if code := p.wait(); code != 0 {
			t.Fatalf("code %d: %s", code, p.stderr.String())
		}
		if rows, err := os.ReadFile(record); err != nil || !strings.HasPrefix(string(rows), "player,sequence,missed,received_s,") {
			t.Errorf("%q, %v", rows, err)
		}
		if info, err := os.Stat(record); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		must(t, os.Remove(record))
		must(t, os.Remove(schema))
	}
	if runtime.GOOS != "windows" { // where links need privileges
		must(t, os.WriteFile(target, []byte("target"), 0o600))
		for _, link := range []string{record, schema} {
			must(t, os.Symlink(target, link))
			for _, more := range [][]string{nil, {"--overwrite"}} {
				if text := refused(t, append(args, more...)...); !strings.Contains(text, link) {
					t.Errorf("%s", text)
				}
			}
			must(t, os.Remove(link))
		}
		if got, err := os.ReadFile(target); err != nil || string(got) != "target" {
			t.Errorf("%q, %v", got, err)
		}
	}
	// Where the capture is refused there is no record either, so that the same command can be run
	// again.
	captured := filepath.Join(dir, "out.3.uplink")
	must(t, os.WriteFile(captured, []byte("old"), 0o600))
	if text := refused(t, append(args, "--capture", filepath.Join(dir, "out.uplink"))...); !strings.Contains(text, "uplink: --capture: capture: "+captured) || !strings.HasSuffix(text, hint) {
		t.Errorf("%s", text)
	}
	left, err := filepath.Glob(filepath.Join(dir, "out.*"))
	if err != nil || len(left) != 1 || left[0] != captured {
		t.Errorf("%q is left, %v", left, err)
	}
}

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

// TestRecordRotates records more than fits into a file: the newest two files are left, and each can
// be read.
func TestRecordRotates(t *testing.T) {
	s := sample.Portal2().Schema
	path := filepath.Join(t.TempDir(), "moves.csv")
	var log bytes.Buffer
	r := &recorder{schema: s, log: slog.New(slog.NewTextHandler(&log, nil)), max: 20_000, keep: 2}
	must(t, r.create(path, false))
	for range 4 {
		for range 1000 {
			r.row(s.NewFrame(), "1", "2", "0", "0.5")
		}
		r.mu.Lock()
		r.flush()
		r.rotate()
		r.mu.Unlock()
	}
	must(t, r.close())
	for number, want := range map[int]int{0: -1, 1: -1, 2: -1, 3: 1000, 4: 0} {
		data, err := os.ReadFile(r.file(number))
		if want < 0 {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", r.file(number), err)
			}
			continue
		}
		must(t, err)
		if rows, err := readable(data, r.file(number), s); rows != want || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d rows, %v", r.file(number), rows, err)
		}
		_, err = os.Stat(trace.SchemaPath(r.file(number)))
		must(t, err)
	}
	if name := filepath.Base(r.file(4)); name != "moves.4.csv" {
		t.Errorf("the name is %s", name)
	}
}
