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

	"github.com/uplink-rpc/uplink/internal/privatefile"
)

// The defaults of a [Config].
const (
	defaultMaxBytes   = 256 << 20
	defaultKeep       = 4
	defaultQueueBytes = 16 << 20
)

const (
	minFileBytes  = 64 << 10
	minQueueBytes = 64 << 10
	// flushEvery is the interval of writes to the file: a killed process loses the records since
	// the last one.
	flushEvery = 100 * time.Millisecond
	// resetInterval is the minimum interval between requests for resets after lost records: resets
	// make payloads larger.
	resetInterval = 5 * time.Second
)

// Config configures a [Writer]. The zero value of each field means its default.
type Config struct {
	// MaxBytes is the maximum size of a file, at least 64 KiB; default 256 MiB. When a file is
	// full, the next file of the series starts, see [FileName].
	MaxBytes int64
	// Keep is the number of files that are kept, the newest ones; default 4.
	Keep int
	// Overwrite makes Create remove all files of an earlier series at the same path. Otherwise
	// Create fails if there is one.
	Overwrite bool
	// QueueBytes is the size of the queue in memory, at least 64 KiB; default 16 MiB. Records that
	// do not fit are lost, and the file states how many.
	QueueBytes int
	// Logger logs each file and the first error of writing. After that error all records are lost.
	// If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultMaxBytes)
	c.Keep = cmp.Or(c.Keep, defaultKeep)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.MaxBytes < minFileBytes:
		return c, fmt.Errorf("capture: Config.MaxBytes is %d, want at least %d", c.MaxBytes, minFileBytes)
	case c.Keep < 1:
		return c, fmt.Errorf("capture: Config.Keep is %d, want 1 or more", c.Keep)
	case c.QueueBytes < minQueueBytes:
		return c, fmt.Errorf("capture: Config.QueueBytes is %d, want at least %d", c.QueueBytes, minQueueBytes)
	}
	return c, nil
}

// FileName returns the path of a file of the series at path: for "out.uplink" out.uplink, then
// out.1.uplink, out.2.uplink and so on.
func FileName(path string, index int) string {
	if index == 0 {
		return path
	}
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + strconv.Itoa(index) + ext
}

// clearSeries removes the files of an earlier series at path if overwrite is set, and fails if
// there is one otherwise. Otherwise the files of two series would be indistinguishable.
func clearSeries(path string, overwrite bool) error {
	dir, base := filepath.Dir(path), filepath.Base(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	ext := filepath.Ext(base)
	for _, e := range entries {
		number := strings.TrimSuffix(strings.TrimPrefix(e.Name(), strings.TrimSuffix(base, ext)+"."), ext)
		index, _ := strconv.Atoi(number) // 0 for another name, which FileName does not return
		if index < 0 || e.Name() != FileName(base, index) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		if !overwrite {
			return fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
		if err := privatefile.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
