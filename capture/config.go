package capture

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/private"
)

// The defaults of a [Config].
const (
	DefaultMaxBytes   = 256 << 20
	DefaultKeep       = 4
	DefaultQueueBytes = 16 << 20
)

const (
	leastBytes = 64 << 10
	leastQueue = 64 << 10
	// flushEvery is how much time of the end is lost if the process is killed.
	flushEvery = 100 * time.Millisecond
	// resetEvery is how long a writer that cannot keep up waits before it asks for resets again: they make payloads
	// larger.
	resetEvery = 5 * time.Second
)

// Config sets up a [Writer]. The zero value of each field means its default.
type Config struct {
	// MaxBytes is how large a file gets, at least 64 KiB; default 256 MiB. Then the next one of the row begins, see
	// [FileName].
	MaxBytes int64
	// Keep is how many files of the row are kept, the newest; default 4.
	Keep int
	// Overwrite has Create remove all files of an earlier row at the same path. Otherwise Create fails if there is one.
	Overwrite bool
	// QueueBytes is how much may wait to be written, at least 64 KiB; default 16 MiB. What does not fit is lost, and the
	// file says so.
	QueueBytes int
	// Logger gets a record of each file, and one of the first error of writing, after which nothing more is written and
	// all records count as lost; nil means silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	c.QueueBytes = cmp.Or(c.QueueBytes, DefaultQueueBytes)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.MaxBytes < leastBytes:
		return c, fmt.Errorf("capture: Config.MaxBytes is %d, want at least %d", c.MaxBytes, leastBytes)
	case c.Keep < 1:
		return c, fmt.Errorf("capture: Config.Keep is %d, want 1 or more", c.Keep)
	case c.QueueBytes < leastQueue:
		return c, fmt.Errorf("capture: Config.QueueBytes is %d, want at least %d", c.QueueBytes, leastQueue)
	}
	return c, nil
}

// FileName is the name of a file of the row that begins with path: for "out.uplink" out.uplink, then out.1.uplink,
// out.2.uplink and so on.
func FileName(path string, index int) string {
	if index == 0 {
		return path
	}
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + strconv.Itoa(index) + ext
}

// rowFiles returns the paths that exist and are those of a row of files at path, the first of which is path itself.
func rowFiles(path string) (paths []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	ext := filepath.Ext(base)
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), strings.TrimSuffix(base, ext)+".")
		if ok {
			number, ok = strings.CutSuffix(number, ext)
		}
		index, err := strconv.Atoi(number)
		if e.Name() == base || ok && err == nil && index > 0 && e.Name() == FileName(base, index) {
			paths = append(paths, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return paths, nil
}

// clearRow makes sure that no file of an earlier row is in the way of one at path: it removes all of them with
// overwrite, and fails otherwise. A new row that grew into the numbers of an earlier one could not be told from it.
func clearRow(path string, overwrite bool) error {
	paths, err := rowFiles(path)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if !overwrite {
			return fmt.Errorf("%s: %w", p, fs.ErrExist)
		}
		if err := private.Remove(p); err != nil {
			return err
		}
	}
	return nil
}
