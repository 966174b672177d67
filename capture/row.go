package capture

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// row is the files that a writer makes one after the other. Each begins with all that is needed to read it alone.
type row struct {
	path  string
	open  func(name string) (io.WriteCloser, error) // creates a file that must not exist
	cfg   Config
	stats *writerStats
	start Start
	begun time.Duration // since the row's beginning, when the file began

	file     io.WriteCloser
	out      *bufio.Writer
	pending  uint64 // entries that are not flushed
	size     int64
	preamble int64         // of size, what the file began with
	last     time.Duration // of the last record
	buf      []byte

	needed   [][]byte            // schemas and priors, tag and body
	sessions map[uint64]*opening // by player
}

// opening is what a file begins with for a session that is open.
type opening struct {
	opened []byte
	bound  [][]byte
}

func (r *row) name() string { return FileName(r.path, r.start.Index) }

// create begins the file whose turn it is.
func (r *row) create() (err error) {
	if r.file, err = r.open(r.name()); err != nil {
		return err
	}
	if r.sessions == nil {
		r.sessions = map[uint64]*opening{}
	}
	r.out = bufio.NewWriterSize(r.file, 256<<10)
	r.size, r.last = 0, 0
	r.stats.files.Add(1)
	if err := r.begin(); err != nil {
		return errors.Join(err, r.file.Close())
	}
	r.cfg.Logger.Info("captures", "file", r.name())
	return nil
}

// begin writes what a file begins with.
func (r *row) begin() error {
	if err := r.raw(AppendHeader(nil)); err != nil {
		return err
	}
	if err := r.record(0, r.start.append([]byte{byte(tagStart)})); err != nil {
		return err
	}
	return r.out.Flush()
}

// write writes an entry, and says whether another file begins with it.
func (r *row) write(e entry) (begun bool, err error) {
	r.pending++
	at := e.at - r.begun
	if e.at == 0 { // what is missing at the end
		at = r.last
	}
	const endSize = 16
	if r.size > r.preamble && r.size+int64(len(e.body))+recordHead+endSize > r.cfg.MaxBytes {
		if err := r.rotate(e.at); err != nil {
			return false, err
		}
		begun = true
		at = e.at - r.begun
	}
	r.note(e.body)
	return begun, r.record(at, e.body)
}

// rotate ends the file and begins the next one.
func (r *row) rotate(at time.Duration) error {
	if err := r.finish(true); err != nil {
		return err
	}
	r.pending = 1 // the entry that the next file begins with
	if old := r.start.Index + 1 - r.cfg.Keep; old >= 0 {
		if err := os.Remove(FileName(r.path, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	r.start.Index++
	r.start.Wall = r.start.Wall.Add(at - r.begun)
	r.begun = at
	if err := r.create(); err != nil {
		return err
	}
	for _, b := range r.needed {
		if err := r.record(0, b); err != nil {
			return err
		}
	}
	for _, player := range slices.SortedFunc(maps.Keys(r.sessions), cmp.Compare[uint64]) {
		s := r.sessions[player]
		for _, b := range append([][]byte{s.opened}, s.bound...) {
			if err := r.record(0, b); err != nil {
				return err
			}
		}
	}
	r.preamble = r.size
	return nil
}

// note keeps what the next file begins with.
func (r *row) note(b []byte) {
	switch tag(b[0]) {
	case tagSchema, tagPrior:
		r.needed = append(r.needed, slices.Clone(b))
	case tagOpened:
		c := again(b)
		r.sessions[playerOf(c)] = &opening{opened: c}
	case tagBound:
		c := again(b)
		if s := r.sessions[playerOf(c)]; s != nil {
			s.bound = append(s.bound, c)
		}
	case tagClosed:
		c := cursor{b: b[1:]}
		delete(r.sessions, c.uint())
	default:
	}
}

// again copies an Opened or Bound, marked as such of an earlier file.
func again(b []byte) []byte {
	c := slices.Clone(b)
	c[1] |= flagAgain
	return c
}

// playerOf reads the player of an Opened or Bound.
func playerOf(b []byte) uint64 {
	c := cursor{b: b[2:]}
	return c.uint()
}

// record writes a record.
func (r *row) record(at time.Duration, b []byte) error {
	r.buf = frame(r.buf[:0], at-r.last, b)
	r.last = at
	r.stats.records.Add(1)
	return r.raw(r.buf)
}

func (r *row) raw(b []byte) error {
	n, err := r.out.Write(b)
	r.size += int64(n)
	r.stats.bytes.Add(uint64(n))
	return err
}

func (r *row) flush() error {
	err := r.out.Flush()
	if err == nil {
		r.pending = 0
	}
	return err
}

// end ends the row.
func (r *row) end() error { return r.finish(false) }

func (r *row) finish(more bool) error {
	end := End{More: more}
	err := r.record(r.last, end.append([]byte{byte(tagEnd)}))
	return errors.Join(err, r.flush(), r.file.Close())
}

// abandon closes a file that cannot be written.
func (r *row) abandon() error { return r.file.Close() }
