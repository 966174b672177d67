// Package capture is a file of what a dedicated server got and sent, and made of it: a bug report in one file.
//
// A [Writer] is given what happens, by several goroutines, and writes it to a file, or to a row of files of limited
// size, without ever having the caller wait for the disk. A [Reader] reads a file record by record. What is in a file
// and how is written in docs/capture.md.
//
// The package opens no socket and decodes no payload. Package capture/tap makes a ds.Server feed a Writer.
package capture
