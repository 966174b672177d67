// Package private opens output files that only their owner may read and write: recordings, captures, key logs and other
// files that contain players' input or secrets. It never follows a symbolic link in the last element of a path.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// mode grants access to the owner alone.
const mode = 0o600

// ErrNotRegular is wrapped by errors about a path that names a symbolic link, a directory, a device or another file
// that is not regular.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrPublic is wrapped by errors about an existing file that others than its owner may read or write.
var ErrPublic = errors.New("others than its owner may read or write it")

// Create creates a file with mode 0600 and opens it for reading and writing. If the path exists, the error wraps
// [fs.ErrExist]; with overwrite, a regular file is removed first, so that neither its mode, nor its hard links, nor
// programs that have it open matter. With overwrite, a path that exists and is not a regular
// file is an error that wraps
// [ErrNotRegular].
func Create(path string, overwrite bool) (*os.File, error) {
	if overwrite {
		if err := Remove(path); err != nil {
			return nil, err
		}
	}
	// With O_EXCL the system creates a file or fails. It does not follow a symbolic link either.
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
}

// Remove removes a regular file. It does nothing if the path does not exist. A path that exists and is not a regular
// file is an error that wraps [ErrNotRegular].
func Remove(path string) error {
	if _, err := regular(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.Remove(path)
}

// Append opens a file for appending, and creates it with mode 0600 if the path does not exist. An existing file must be
// regular, and its mode must grant nothing to others than its owner, or the error wraps [ErrNotRegular] or [ErrPublic].
// Windows has no such modes.
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

// check checks the file that was opened: it is the one that was found at the path, and private.
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

// regular describes the regular file at a path.
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
