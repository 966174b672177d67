package capture

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/uplink-rpc/uplink/capture/record"
)

// series writes the files of a writer, one after the other. Each file starts with the records that
// are needed to read it alone.
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
	err = s.write(AppendHeader(nil))
	if err == nil {
		err = s.append(0, s.start.Append(nil))
	}
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		return errors.Join(err, s.file.Close())
	}
	s.cfg.Logger.Info("capture file created", "file", s.name())
	return nil
}

// add writes an entry, into the next file if this one is full. It reports whether it created one.
func (s *series) add(e entry) (created bool, err error) {
	s.pending++
	at := e.at - s.begun
	if e.at == 0 { // the records lost at the end
		at = s.last
	}
	const endSize = 16
	if s.size > s.preambleSize && s.size+int64(len(e.content))+recordOverhead+endSize > s.cfg.MaxBytes {
		if err := s.rotate(e.at); err != nil {
			return false, err
		}
		created = true
		at = e.at - s.begun
	}
	s.preamble.Add(e.content)
	return created, s.append(at, e.content)
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
