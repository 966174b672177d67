// Package privatefile opens output files that only their owner may read and write: recordings,
// captures, key logs and other files that contain players' input or secrets. It never follows a
// symbolic link in the last element of a path.
package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

const mode = 0o600

// ErrNotRegular means that a path names a symbolic link, a directory, a device or another file that
// is not regular.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrPublic means that others than the owner of an existing file may read or write it.
var ErrPublic = errors.New("others than its owner may read or write it")

// Create creates a file with mode 0600 and opens it for reading and writing. If the path exists, it
// returns an error that wraps [fs.ErrExist]. With overwrite, it removes a regular file first, so
// that its mode, its hard links and programs that have it open do not matter, and returns an error
// that wraps [ErrNotRegular] for any other file.
func Create(path string, overwrite bool) (*os.File, error) {
	if overwrite {
		if err := Remove(path); err != nil {
			return nil, err
		}
	}
	// With O_EXCL the system creates a file or fails. It does not follow a symbolic link either.
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
}

// Remove removes a regular file, if the path exists. For any other file it returns an error that
// wraps [ErrNotRegular].
func Remove(path string) error {
	if _, err := regular(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.Remove(path)
}

// Append opens a file for appending, and creates it with mode 0600 if the path does not exist. An
// existing file must be regular, and its mode must grant nothing to others than its owner;
// otherwise the error wraps [ErrNotRegular] or [ErrPublic]. Windows has no such modes.
func Append(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, mode)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	before, err := regular(path)
	if err != nil {
		return nil, err
	}
	if f, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if err := check(f, path, before); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// check returns an error unless f is the file that was found at the path, and private.
func check(f *os.File, path string, found fs.FileInfo) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(info, found):
		return fmt.Errorf("%s: another file took its place while it was opened", path)
	case info.Mode().Perm()&^mode != 0 && runtime.GOOS != "windows":
		return fmt.Errorf("%s: its mode is %v: %w", path, info.Mode().Perm(), ErrPublic)
	}
	return nil
}

func regular(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s: %w: it is a symbolic link, and links are not followed", path, ErrNotRegular)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	return info, nil
}

// Exposed returns an error that wraps [ErrPublic] if everybody on the machine may read or write an
// existing file. A group may: it has access to files that systemd and Kubernetes hand to a service.
// Windows has no such modes.
func Exposed(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular() && info.Mode().Perm()&0o006 != 0 && runtime.GOOS != "windows":
		return fmt.Errorf("%s: its mode is %v: %w", path, info.Mode().Perm(), ErrPublic)
	}
	return nil
}
