package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// recorder records how a test ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// find runs Find in its own test.
func find(names ...string) (path string, r recorder) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		path = Find(&r, names[0], names[1:]...)
	}()
	<-done
	return path, r
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "chromium-browser")
	if err := os.WriteFile(there, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(Required, "")
	if path, r := find("chromium", "chromium-browser"); path != there || r.skipped+r.failed != "" {
		t.Errorf("%q, skipped %q, failed %q", path, r.skipped, r.failed)
	}
	const missing = "promtool is not in PATH; on Debian: apt-get install --no-install-recommends prometheus, or .ci/tools"
	if _, r := find("promtool"); r.skipped != missing || r.failed != "" {
		t.Errorf("skipped %q, failed %q", r.skipped, r.failed)
	}
	t.Setenv(Required, "1")
	if _, r := find("promtool"); r.failed != missing || r.skipped != "" {
		t.Errorf("skipped %q, failed %q", r.skipped, r.failed)
	}
}
