package main

import (
	"strconv"
	"sync"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// recorder writes frames of one schema to a trace file, or nowhere until it is
// created.
type recorder struct {
	schema *schema.Schema

	mu  sync.Mutex
	w   *trace.Writer
	err error // the first of frame
}

// create begins a trace file and writes its schema file.
func (r *recorder) create(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.w, err = trace.Create(path, r.schema, "player", "sequence", "missed", "received_s"); err != nil {
		return err
	}
	return trace.WriteSchema(trace.SchemaPath(path), r.schema)
}

// frame is a handler of frames of the schema.
func (r *recorder) frame(p *ds.Player, f ds.Frame[*schema.Frame]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil || r.err != nil {
		return
	}
	seconds := float64(f.Received.UnixMicro()) / 1e6
	r.err = r.w.Write(f.Value,
		strconv.FormatUint(p.ID(), 10), strconv.FormatUint(f.Seq, 10), strconv.FormatUint(f.Missed, 10),
		strconv.FormatFloat(seconds, 'f', 6, 64))
}

// close ends the file. The error is the first there was.
func (r *recorder) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil {
		return nil
	}
	err := r.w.Close()
	r.w = nil
	if r.err != nil {
		return r.err
	}
	return err
}
