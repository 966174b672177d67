package capture

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	// QueueBytes is how much may wait to be written, at least 64 KiB; default 16 MiB. What does not fit is lost, and the
	// file says so.
	QueueBytes int
	// Logger gets a record of each file, and of an error of writing, after which nothing more is written; nil means
	// silence.
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
