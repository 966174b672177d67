package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/ds"
)

// byteSize is a flag value: a number of bytes with a unit.
type byteSize int64

var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}, {"", 1}}

func (s *byteSize) String() string {
	for _, u := range byteUnits {
		if int64(*s)%u.bytes == 0 && int64(*s) >= u.bytes {
			return fmt.Sprintf("%d%s", int64(*s)/u.bytes, u.suffix)
		}
	}
	return "0"
}

func (s *byteSize) Type() string { return "size" }

// Set implements pflag.Value.
func (s *byteSize) Set(text string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(strings.ToUpper(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = byteSize(n * u.bytes)
		return nil
	}
	return errors.New("want a number of bytes such as 256MB, 2GB or 100000")
}

// capturing holds the flags for captures of a command that runs a server.
type capturing struct {
	path      string
	max       byteSize
	keep      int
	overwrite bool
}

// addFlags adds the flags. outputs names the flags whose files --overwrite replaces.
func (c *capturing) addFlags(f *pflag.FlagSet, outputs string) {
	c.max = 256 << 20
	f.StringVar(&c.path, "capture", "", "write what the server receives, sends and decodes to this file, for uplink inspect; it contains players' input, not encrypted")
	f.Var(&c.max, "capture-max", "maximum size of a capture file; then the next one starts: out.uplink, out.1.uplink ...")
	f.IntVar(&c.keep, "capture-keep", 4, "number of capture files kept; the oldest is removed")
	f.BoolVar(&c.overwrite, overwriteFlag, false, "replace existing files of "+outputs+", with all files of an earlier capture")
}

func (c *capturing) check() error {
	const least = 64 << 10
	switch {
	case c.max < least:
		return fmt.Errorf("--capture-max %v: want at least 64KB", &c.max)
	case c.keep < 1:
		return fmt.Errorf("--capture-keep %d: want 1 or more", c.keep)
	}
	return nil
}

// start starts the capture. w is nil if --capture is not set.
func (c *capturing) start(log *slog.Logger) (w *capture.Writer, t ds.Tap, err error) {
	if c.path == "" {
		return nil, nil, nil
	}
	w, err = capture.Create(c.path, capture.Config{MaxBytes: int64(c.max), Keep: c.keep, Overwrite: c.overwrite, Logger: log})
	if err != nil {
		return nil, nil, existing(fmt.Errorf("--capture: %w", err))
	}
	return w, w.Tap(), nil
}

// lateTap is a tap whose file is created once the server listens. If listening fails, an existing
// file of another server is kept.
type lateTap struct {
	ds.Tap
	writer atomic.Pointer[capture.Writer] // nil until start
}

// of returns the tap for a server's config, or nil if --capture is not set.
func (t *lateTap) of(c *capturing) ds.Tap {
	if c.path == "" {
		return nil
	}
	return t
}

// start starts the capture. It must be called before the server serves.
func (t *lateTap) start(c *capturing, log *slog.Logger) (w *capture.Writer, err error) {
	w, t.Tap, err = c.start(log)
	t.writer.Store(w)
	return w, err
}

func (t *lateTap) lost() uint64 {
	if w := t.writer.Load(); w != nil {
		return w.Stats().Lost
	}
	return 0
}

// endCapture closes a capture. w may be nil.
func endCapture(w *capture.Writer, log *slog.Logger) error {
	if w == nil {
		return nil
	}
	err := w.Close()
	st := w.Stats()
	log.Info("capture written", "records", st.Records, "bytes", st.Bytes, "files", st.Files, "lost", st.Lost)
	return err
}
