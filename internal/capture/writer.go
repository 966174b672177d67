package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/privatefile"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Writer writes a capture. Its methods copy records to a queue, which a goroutine writes to files.
// Only Close waits for the disk. The methods are safe for concurrent use.
type Writer struct {
	queue  queue
	done   chan struct{}
	resets atomic.Uint64

	// Used only by the writing goroutine.
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
	return newWriter(path, cfg, func(name string) (io.WriteCloser, error) { return privatefile.Create(name, false) })
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

// AppendRecord appends a record. elapsed is the time since the previous record.
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

// series writes the files of a writer, one after the other. Each file starts with the records that
// are needed to read it without the others.
type series struct {
	path  string
	open  func(name string) (io.WriteCloser, error) // creates a file that must not exist
	cfg   Config
	stats *writerStats
	start record.Start
	begun time.Duration // start of the file since the start of the series

	file         io.WriteCloser
	out          *bufio.Writer
	pending      uint64 // entries that are not flushed
	size         int64
	preambleSize int64
	last         time.Duration // time of the last record
	buf          []byte
	preamble     record.Preamble
}

func (s *series) name() string { return FileName(s.path, s.start.Index) }

// create creates the current file of the series and writes its header and start record.
func (s *series) create() (err error) {
	if s.file, err = s.open(s.name()); err != nil {
		return err
	}
	s.out = bufio.NewWriterSize(s.file, 256<<10)
	s.size, s.last = 0, 0
	s.stats.files.Add(1)
	_ = s.write(AppendHeader(nil)) // Flush returns the error
	_ = s.append(0, s.start.Append(nil))
	if err := s.out.Flush(); err != nil {
		return errors.Join(err, s.file.Close())
	}
	s.cfg.Logger.Info("capture file created", "file", s.name())
	return nil
}

// add writes an entry, into the next file if this one is full. It reports whether it created one.
func (s *series) add(e entry) (created bool, err error) {
	s.pending++
	const endSize = 16
	if s.size > s.preambleSize && s.size+int64(len(e.content))+recordOverhead+endSize > s.cfg.MaxBytes {
		if err := s.rotate(e.at); err != nil {
			return false, err
		}
		created = true
	}
	s.preamble.Add(e.content)
	return created, s.append(e.at-s.begun, e.content)
}

// rotate ends the current file, removes the oldest one and starts the next one.
func (s *series) rotate(at time.Duration) error {
	if err := s.finish(true); err != nil {
		return err
	}
	s.pending = 1 // the entry that add writes next
	if old := s.start.Index + 1 - s.cfg.Keep; old >= 0 {
		if err := os.Remove(FileName(s.path, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.start.Index++
	s.start.Wall = s.start.Wall.Add(at - s.begun)
	s.begun = at
	if err := s.create(); err != nil {
		return err
	}
	for _, content := range s.preamble.All() {
		if err := s.append(0, content); err != nil {
			return err
		}
	}
	s.preambleSize = s.size
	return nil
}

// append writes a record with the given tag and body.
func (s *series) append(at time.Duration, content []byte) error {
	s.buf = appendFramed(s.buf[:0], at-s.last, content)
	s.last = at
	s.stats.records.Add(1)
	return s.write(s.buf)
}

func (s *series) write(b []byte) error {
	n, err := s.out.Write(b)
	s.size += int64(n)
	s.stats.bytes.Add(uint64(n))
	return err
}

func (s *series) flush() error {
	err := s.out.Flush()
	if err == nil {
		s.pending = 0
	}
	return err
}

// finish ends the current file. more reports whether another file follows.
func (s *series) finish(more bool) error {
	end := record.End{More: more}
	err := s.append(s.last, end.Append(nil))
	return errors.Join(err, s.flush(), s.file.Close())
}
