package capture

import (
	"errors"
	"fmt"
)

// What is wrong with a file. A [Reader]'s errors wrap one of them, or are those of what it reads from.
var (
	// ErrForeign says that a file is not a capture, or one of another version.
	ErrForeign = errors.New("not a capture file that this version reads")
	// ErrCut says that a file has no end: whoever wrote it was killed, or it was copied in part.
	ErrCut = errors.New("the file is cut off")
	// ErrDamaged says that bytes of a file were changed.
	ErrDamaged = errors.New("the file is damaged")
)

// FileError is an error of a file's contents.
type FileError struct {
	// Offset is where the first record begins that cannot be read. What is before it is good.
	Offset int64
	Err    error
}

// Error gives the offset.
func (e *FileError) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset, e.Err) }

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }
