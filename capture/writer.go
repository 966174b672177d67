package capture

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/capture/record"
	"github.com/uplink-rpc/uplink/internal/private"
	"github.com/uplink-rpc/uplink/schema"
)

// Writer writes a capture. Its methods copy records to a queue, which a goroutine writes to files.
// Only Close waits for the disk. The methods are safe for concurrent use.
type Writer struct {
	queue  queue
	done   chan struct{}
	resets atomic.Uint64

	// Used by the writing goroutine alone.
	series series
	gap    bool      // records were lost since asked
	asked  time.Time // time of the last request for resets

	mu      sync.Mutex
	players uint64
	schemas map[*schema.Schema]uint64
	priors  map[uint64]bool

	stats writerStats
	err   error // may be read when done is closed
}

type writerStats struct{ records, lost, bytes, files atomic.Uint64 }

// Stats counts the output of a writer.
type Stats struct {
	// Records is the number of records written. Lost is the number that may be missing because the
	// queue was full or a file could not be written.
	Records, Lost uint64
	// Bytes and Files are the size and the number of the files written.
	Bytes, Files uint64
}

// Create starts a series of files at path, each with mode 0600. If a file of an earlier series
// exists, the error wraps [fs.ErrExist], unless cfg.Overwrite is set. Symbolic links are not
// followed. Close ends the series.
func Create(path string, cfg Config) (*Writer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := clearSeries(path, cfg.Overwrite); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return newWriter(path, cfg, func(name string) (io.WriteCloser, error) { return private.Create(name, false) })
}

// newWriter starts a series of files that open creates.
func newWriter(path string, cfg Config, open func(name string) (io.WriteCloser, error)) (*Writer, error) {
	w := &Writer{done: make(chan struct{}), schemas: map[*schema.Schema]uint64{}, priors: map[uint64]bool{}}
	w.series = series{path: path, open: open, cfg: cfg, stats: &w.stats, start: record.Start{Wall: time.Now(), Run: rand.Uint64()}}
	if err := w.series.create(); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	w.queue.init(cfg.QueueBytes, w.series.start.Wall)
	go w.run()
	return w, nil
}

// Stats returns the counts so far.
func (w *Writer) Stats() Stats {
	s := &w.stats
	return Stats{Records: s.records.Load(), Lost: s.lost.Load() + w.queue.lost.Load(), Bytes: s.bytes.Load(), Files: s.files.Load()}
}

// Resets counts the requests for resets. It increases when a file starts and after records were
// lost: from then on, payloads can only be decoded from the file after a reset of their streams.
func (w *Writer) Resets() uint64 { return w.resets.Load() }

// Close writes the queued records and ends the file. It returns the first error of writing. It may
// be called more than once.
func (w *Writer) Close() error {
	w.queue.close()
	<-w.done
	return w.err
}

// run writes queued records until Close. After an error it drops them.
func (w *Writer) run() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for closed := false; !closed; {
		select {
		case <-tick.C:
		case <-w.queue.wake:
		}
		var entries entries
		entries, closed = w.queue.swap()
		if w.err != nil {
			w.stats.lost.Add(entries.count())
			continue
		}
		if err := w.write(&entries); err != nil {
			w.stats.lost.Add(entries.count() + w.series.pending)
			w.fail(err)
			_ = w.series.file.Close()
		}
	}
	if w.err == nil {
		if err := w.series.finish(false); err != nil {
			w.fail(err)
		}
	}
}

// fail logs and stores the first error of writing.
func (w *Writer) fail(err error) {
	w.series.cfg.Logger.Error("capture stopped", "file", w.series.name(), "error", err)
	w.err = fmt.Errorf("capture: %w", err)
}

// write writes entries, and requests resets where the file needs them.
func (w *Writer) write(entries *entries) error {
	for e, ok := entries.next(); ok; e, ok = entries.next() {
		created, err := w.series.add(e)
		if err != nil {
			return err
		}
		if created {
			w.requestResets(time.Now())
		}
	}
	w.gap = w.gap || entries.gap
	if now := time.Now(); w.gap && now.Sub(w.asked) >= resetInterval {
		w.requestResets(now)
	}
	return w.series.flush()
}

func (w *Writer) requestResets(now time.Time) {
	w.gap, w.asked = false, now
	w.resets.Add(1)
}

// Counts records the datagrams that the server has dropped so far.
func (w *Writer) Counts(c record.Counts) { w.put(time.Now(), &c) }

// put queues a record that is rare and that others depend on.
func (w *Writer) put(at time.Time, body record.Body) {
	q := &w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.scratch = body.Append(q.scratch[:0])
	if dst, ok := q.begin(at, len(q.scratch), q.limit); ok {
		q.commit(append(dst, q.scratch...))
	}
}

// A file starts with magic and version. Each record has the length of its content (varint), the
// content, and the CRC-32C of both (4 bytes). The content is the time since the previous record in
// nanoseconds (signed varint), the tag and the body.
const (
	magic        = "\x89uplink"
	version      = 1
	headerSize   = len(magic) + 1
	checksumSize = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendHeader appends the header of a file, for programs that write captures without a [Writer].
// The first record must be a [record.Start], the last a [record.End].
func AppendHeader(b []byte) []byte { return append(append(b, magic...), version) }

// AppendRecord appends a record, at the given time since the previous one.
func AppendRecord(b []byte, elapsed time.Duration, body record.Body) []byte {
	return appendFramed(b, elapsed, body.Append(nil))
}

// appendFramed appends a record with the given tag and body.
func appendFramed(b []byte, elapsed time.Duration, content []byte) []byte {
	var varint [binary.MaxVarintLen64]byte
	n := binary.PutVarint(varint[:], int64(elapsed))
	start := len(b)
	b = binary.AppendUvarint(b, uint64(n+len(content)))
	b = append(append(b, varint[:n]...), content...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}
