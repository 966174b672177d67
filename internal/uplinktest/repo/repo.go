// Package repo finds the files of the repository that tests of several packages read.
package repo

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the root directory of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "CONTRIBUTING.md")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the root of the repository is not above the test")
		}
		dir = filepath.Dir(dir)
	}
}
