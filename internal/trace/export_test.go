package trace

import "io"

// Truncater is the part of os.File that wholeFile needs.
type Truncater interface {
	io.Writer
	Truncate(size int64) error
}

// WholeFile returns a writer that either writes all of f or truncates it.
func WholeFile(f Truncater) io.Writer { return &wholeFile{file: f} }
