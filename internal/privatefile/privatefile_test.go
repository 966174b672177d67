package privatefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/uplink-rpc/uplink/internal/privatefile"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// TestOpen opens each kind of existing path in each way. An error leaves the path and the target
// of a link as they were.
func TestOpen(t *testing.T) {
	ways := map[string]func(string) (*os.File, error){
		"create":    func(path string) (*os.File, error) { return privatefile.Create(path, false) },
		"overwrite": func(path string) (*os.File, error) { return privatefile.Create(path, true) },
		"append":    privatefile.Append,
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path, target string)
		want map[string]string // by way, the contents after "new" was written; "" means an error
	}{
		{"nothing", func(*testing.T, string, string) {}, map[string]string{"create": "new", "overwrite": "new", "append": "new"}},
		{"private file", func(t *testing.T, path, _ string) {
			check.Must(t, os.WriteFile(path, []byte("old "), 0o600))
		}, map[string]string{"overwrite": "new", "append": "old new"}},
		{"public file", func(t *testing.T, path, _ string) {
			check.Must(t, os.WriteFile(path, []byte("old "), 0o600))
			check.Must(t, os.Chmod(path, 0o666))
		}, map[string]string{"overwrite": "new"}},
		{"link", func(t *testing.T, path, target string) {
			check.Must(t, os.WriteFile(target, []byte("target"), 0o600))
			check.Must(t, os.Symlink(target, path))
		}, nil},
		{"dangling link", func(t *testing.T, path, target string) {
			check.Must(t, os.Symlink(target, path))
		}, nil},
		{"hard link", func(t *testing.T, path, target string) {
			check.Must(t, os.WriteFile(target, []byte("target"), 0o600))
			check.Must(t, os.Chmod(target, 0o644))
			check.Must(t, os.Link(target, path))
		}, map[string]string{"overwrite": "new"}},
		{"directory", func(t *testing.T, path, _ string) { check.Must(t, os.Mkdir(path, 0o700)) }, nil},
	} {
		for way, open := range ways {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				if runtime.GOOS == "windows" && c.name != "nothing" && c.name != "private file" && c.name != "directory" {
					t.Skip("links need privileges, and files have no such modes")
				}
				dir := t.TempDir()
				path, target := filepath.Join(dir, "path"), filepath.Join(dir, "target")
				c.make(t, path, target)
				info, _ := os.Lstat(path)
				linked, _ := os.ReadFile(target)
				f, err := open(path)
				if want := c.want[way]; want != "" {
					check.Must(t, err)
					_, err = f.WriteString("new")
					check.Must(t, errors.Join(err, f.Close()))
					if got, err := os.ReadFile(path); err != nil || string(got) != want {
						t.Errorf("%q (%v), want %q", got, err, want)
					}
					if after, err := os.Lstat(path); err != nil || runtime.GOOS != "windows" && after.Mode() != 0o600 {
						t.Errorf("mode %v (%v)", after.Mode(), err)
					}
				} else {
					if err == nil {
						_ = f.Close()
						t.Fatal("no error")
					}
					if after, err := os.Lstat(path); err != nil || !os.SameFile(info, after) || info.Mode() != after.Mode() {
						t.Errorf("the path was changed: %v, %v, %v", info, after, err)
					}
				}
				if now, _ := os.ReadFile(target); string(now) != string(linked) {
					t.Errorf("the target of the link is %q, was %q", now, linked)
				}
			})
		}
	}
}

// TestErrors checks the errors that callers look for.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "path")
	check.Must(t, os.WriteFile(path, nil, 0o600))
	check.Must(t, os.Chmod(path, 0o604))
	for _, c := range []struct {
		path      string
		overwrite bool
		create    error
		append    error
	}{
		{path, false, fs.ErrExist, privatefile.ErrPublic},
		{dir, true, privatefile.ErrNotRegular, privatefile.ErrNotRegular},
		{filepath.Join(dir, "no", "path"), true, fs.ErrNotExist, fs.ErrNotExist},
	} {
		if _, err := privatefile.Create(c.path, c.overwrite); !errors.Is(err, c.create) {
			t.Errorf("create %s: %v, want %v", c.path, err, c.create)
		}
		if _, err := privatefile.Append(c.path); runtime.GOOS != "windows" && !errors.Is(err, c.append) {
			t.Errorf("append to %s: %v, want %v", c.path, err, c.append)
		}
	}
}

// TestExposed checks files of each mode: a group may read a secret, everybody may not.
func TestExposed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its files have no such modes")
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := privatefile.Exposed(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, exposed := range map[fs.FileMode]bool{0o400: false, 0o600: false, 0o640: false, 0o601: false, 0o604: true, 0o602: true, 0o644: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := privatefile.Exposed(path); errors.Is(err, privatefile.ErrPublic) != exposed {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := privatefile.Exposed(os.DevNull); err != nil {
		t.Errorf("a device: %v", err)
	}
}
