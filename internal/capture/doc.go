// Package capture writes and reads files of the data that a dedicated server received, sent and
// decoded: a bug report in one file.
//
// A [Writer] copies records to a queue in memory, from several goroutines, and writes them to a
// file or a series of files of limited size. Its callers never wait for the disk. A [Reader] reads
// a file record by record. Package record has the types of the records, and docs/capture.md the
// format.
//
// The package opens no socket and decodes no payload. The public package capture connects a Writer
// to a ds.Server.
package capture
