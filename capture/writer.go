package capture

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/schema"

	"github.com/uplink-rpc/uplink/internal/private"
)

// Writer writes captures. What it is given it copies to a queue, which a goroutine of its own writes out: no method
// but Close waits for the disk, and those for datagrams, messages and what came of them allocate nothing. Its methods
// are safe for concurrent use.
type Writer struct {
	queue  queue
	row    row // of the goroutine alone
	done   chan struct{}
	resets atomic.Uint64
	gap    bool      // of the goroutine alone, as the next: records were lost since asked
	asked  time.Time // for resets

	mu      sync.Mutex
	players uint64
	schemas map[*schema.Schema]uint64
	priors  map[uint64]bool

	stats writerStats
	err   error // of the goroutine; read when done is closed
}

type writerStats struct{ records, lost, bytes, files atomic.Uint64 }

// Stats is what a writer has counted.
type Stats struct {
	// Records were put into files, Lost may be in none: there was no room in the queue, or a file could not be written.
	Records, Lost uint64
	// Bytes were written to so many Files.
	Bytes, Files uint64
}

// Create begins a row of files at path, each with mode 0600. If a file of an earlier row exists, the error wraps
// [fs.ErrExist], unless cfg.Overwrite is set. Symbolic links are not followed. Close ends the row.
func Create(path string, cfg Config) (*Writer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := clearRow(path, cfg.Overwrite); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return newWriter(path, cfg, func(name string) (io.WriteCloser, error) { return private.Create(name, false) })
}

// newWriter begins a row of files that open creates.
func newWriter(path string, cfg Config, open func(name string) (io.WriteCloser, error)) (*Writer, error) {
	w := &Writer{done: make(chan struct{}), schemas: map[*schema.Schema]uint64{}, priors: map[uint64]bool{}}
	w.row = row{path: path, open: open, cfg: cfg, stats: &w.stats, start: Start{Wall: time.Now(), Run: rand.Uint64()}}
	if err := w.row.create(); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	w.queue.init(cfg.QueueBytes, w.row.start.Wall)
	go w.run()
	return w, nil
}

// Stats gives what was counted so far.
func (w *Writer) Stats() Stats {
	s := &w.stats
	return Stats{Records: s.records.Load(), Lost: s.lost.Load() + w.queue.lost.Load(), Bytes: s.bytes.Load(), Files: s.files.Load()}
}

// Resets goes up whenever payloads can be decoded from the file only once their streams have started anew: when a file
// begins, and when records were lost.
func (w *Writer) Resets() uint64 { return w.resets.Load() }

// Close writes what waits and ends the file. It may be called again; the error is the first of writing.
func (w *Writer) Close() error {
	w.queue.close()
	<-w.done
	return w.err
}

// run writes out what is queued until Close, or drops it after an error.
func (w *Writer) run() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.queue.wake:
		}
		entries, closed := w.queue.take()
		if w.err == nil {
			if w.err = w.write(&entries); w.err != nil {
				w.stats.lost.Add(entries.count() + w.row.pending)
				w.row.cfg.Logger.Error("capture ends", "file", w.row.name(), "error", w.err)
				_ = w.row.abandon() // it cannot be written
				w.err = fmt.Errorf("capture: %w", w.err)
			}
		} else {
			w.stats.lost.Add(entries.count())
		}
		if closed {
			if w.err == nil {
				if err := w.row.end(); err != nil {
					w.row.cfg.Logger.Error("capture ends", "file", w.row.name(), "error", err)
					w.err = fmt.Errorf("capture: %w", err)
				}
			}
			return
		}
	}
}

// write writes entries, and begins other files where one is full.
func (w *Writer) write(entries *entries) error {
	for e, ok := entries.next(); ok; e, ok = entries.next() {
		begun, err := w.row.write(e)
		if err != nil {
			return err
		}
		if begun {
			w.ask(time.Now())
		}
		w.gap = w.gap || tag(e.body[0]) == tagLost
	}
	if now := time.Now(); w.gap && now.Sub(w.asked) >= resetEvery {
		w.ask(now)
	}
	return w.row.flush()
}

// ask asks for resets.
func (w *Writer) ask(now time.Time) {
	w.gap, w.asked = false, now
	w.resets.Add(1)
}

// Counts notes what the server has counted of datagrams that were no session's, or of no use to it.
func (w *Writer) Counts(c Counts) { w.put(time.Now(), &c) }

// put queues what is rare, and needed to read the rest.
func (w *Writer) put(at time.Time, b Body) {
	q := &w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	entry := append(q.spare[:0], byte(b.tag()))
	q.spare = b.append(entry)
	if dst, ok := q.begin(at, len(q.spare), q.limit); ok {
		q.commit(append(dst, q.spare...))
	}
}
