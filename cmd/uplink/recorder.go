package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/privatefile"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// flushEvery is the interval of flushes. A killed process loses the rows since the last one.
const flushEvery = 500 * time.Millisecond

// recorder writes frames of one schema to a trace file, after start. When the file has its maximum
// size, the next one begins, and the oldest of several is removed. After the first write error it
// only counts lost rows. Its methods are safe for concurrent use.
type recorder struct {
	schema *schema.Schema
	path   string
	log    *slog.Logger
	max    byteSize // maximum size of a file, as of the last flush; 0: none
	keep   int      // number of files kept

	lost atomic.Uint64 // number of rows that may not be in the file
	stop func()        // stops flushing; nil before start

	mu      sync.Mutex
	w       recordWriter
	pending uint64 // number of rows that are not flushed
	err     error  // first error
	number  int    // of the current file
}

// recordWriter is implemented by [trace.Writer].
type recordWriter interface {
	Write(f *schema.Frame, extra ...string) error
	Flush() error
	Close() error
}

// recordColumns are the columns before the schema's columns.
var recordColumns = []string{"player", "sequence", "missed", "received_s"}

// create creates a trace file and its schema file, and starts recording. If one fails, neither is
// created.
func (r *recorder) create(path string, overwrite bool) error {
	w, err := r.open(path, overwrite)
	if err != nil {
		return err
	}
	r.path = path
	r.start(w)
	return nil
}

// open creates a trace file and its schema file.
func (r *recorder) open(path string, overwrite bool) (*trace.Writer, error) {
	schemaPath := trace.SchemaPath(path)
	if overwrite {
		if err := errors.Join(privatefile.Remove(path), privatefile.Remove(schemaPath)); err != nil {
			return nil, err
		}
	}
	w, err := trace.Create(path, r.schema, recordColumns...)
	if err != nil {
		return nil, err
	}
	if err := trace.WriteSchema(schemaPath, r.schema); err != nil {
		return nil, errors.Join(err, w.Close(), os.Remove(path))
	}
	return w, nil
}

// file returns the name of a file of the recording: moves.csv.gz, moves.1.csv.gz and so on.
func (r *recorder) file(number int) string {
	if number == 0 {
		return r.path
	}
	dir, name := filepath.Split(r.path)
	stem, suffix, _ := strings.Cut(name, ".csv")
	return filepath.Join(dir, fmt.Sprintf("%s.%d.csv%s", stem, number, suffix))
}

// rotate begins the next file if the current one has the maximum size. The caller holds the lock.
func (r *recorder) rotate() {
	info, err := os.Stat(r.file(r.number))
	if r.max == 0 || r.err != nil || err != nil || info.Size() < int64(r.max) {
		return
	}
	err = r.w.Close()
	if err == nil {
		r.number++
		var w *trace.Writer
		if w, err = r.open(r.file(r.number), true); err == nil {
			r.w = w
			r.log.Info("recording frames", "file", r.file(r.number))
		}
	}
	r.fail(err)
	if old := r.number - r.keep; old >= 0 {
		err := errors.Join(privatefile.Remove(r.file(old)), privatefile.Remove(trace.SchemaPath(r.file(old))))
		if err != nil {
			r.log.Warn("old recording not removed", "error", err)
		}
	}
}

func (r *recorder) start(w recordWriter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for range sleep.Every(ctx, flushEvery) {
			r.mu.Lock()
			r.flush()
			r.rotate()
			r.mu.Unlock()
		}
	})
	r.w, r.stop = w, func() {
		cancel()
		running.Wait()
	}
	r.flush() // writes the header, so that the file can be read
}

func (r *recorder) discard() error {
	if r.path == "" {
		return nil
	}
	return errors.Join(r.close(), os.Remove(r.path), os.Remove(trace.SchemaPath(r.path)))
}

// flush flushes rows. The caller holds the lock.
func (r *recorder) flush() {
	if r.err == nil {
		r.fail(r.w.Flush())
		r.pending = 0
	}
}

// fail stores the first error, which stops recording, and counts the lost rows. The caller holds
// the lock.
func (r *recorder) fail(err error) {
	if err == nil || r.err != nil {
		return
	}
	r.err = err
	r.lost.Add(r.pending)
	r.log.Error("recording stopped", "file", r.file(r.number), "error", err)
}

// frame is a handler for frames of the schema.
func (r *recorder) frame(p *ds.Player, f ds.Frame[*schema.Frame]) {
	seconds := float64(f.Received.UnixMicro()) / 1e6
	r.row(f.Value,
		strconv.FormatUint(p.ID(), 10), strconv.FormatUint(f.Seq, 10), strconv.FormatUint(f.Missed, 10),
		strconv.FormatFloat(seconds, 'f', 6, 64))
}

func (r *recorder) row(f *schema.Frame, extra ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.w == nil:
	case r.err != nil:
		r.lost.Add(1)
	default:
		r.pending++
		r.fail(r.w.Write(f, extra...))
	}
}

func (r *recorder) close() error {
	if r.stop == nil {
		return nil
	}
	r.stop()
	r.stop = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(r.w.Close())
	r.w = nil
	if r.err != nil {
		return fmt.Errorf("--record: %w; %d rows are not in the file", r.err, r.lost.Load())
	}
	return nil
}
