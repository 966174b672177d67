package trace

import "io"

// Truncater is what a file that is written in full or not at all needs of the file below.
type Truncater interface {
	io.Writer
	Truncate(size int64) error
}

// WholeFile makes one of f.
func WholeFile(f Truncater) io.Writer { return &wholeFile{file: f} }
