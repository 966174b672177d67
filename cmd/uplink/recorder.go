package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
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

// recorder writes frames of one schema to a trace file, after start. After the first write error it
// only counts lost rows. Its methods are safe for concurrent use.
type recorder struct {
	schema *schema.Schema
	path   string
	log    *slog.Logger

	lost atomic.Uint64 // number of rows that may not be in the file
	stop func()        // stops flushing; nil before start

	mu      sync.Mutex
	w       recordWriter
	pending uint64 // number of rows that are not flushed
	err     error  // first error
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
	schemaPath := trace.SchemaPath(path)
	if overwrite {
		if err := errors.Join(privatefile.Remove(path), privatefile.Remove(schemaPath)); err != nil {
			return err
		}
	}
	w, err := trace.Create(path, r.schema, recordColumns...)
	if err != nil {
		return err
	}
	if err := trace.WriteSchema(schemaPath, r.schema); err != nil {
		return errors.Join(err, w.Close(), os.Remove(path))
	}
	r.path = path
	r.start(w)
	return nil
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
		r.keep(r.w.Flush())
		r.pending = 0
	}
}

// keep stores the first error, which stops recording, and counts the lost rows. The caller holds
// the lock.
func (r *recorder) keep(err error) {
	if err == nil || r.err != nil {
		return
	}
	r.err = err
	r.lost.Add(r.pending)
	r.log.Error("recording stopped", "file", r.path, "error", err)
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
		r.keep(r.w.Write(f, extra...))
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
	r.keep(r.w.Close())
	r.w = nil
	if r.err != nil {
		return fmt.Errorf("--record: %w; %d rows are not in the file", r.err, r.lost.Load())
	}
	return nil
}
