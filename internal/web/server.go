// Package web contains the common parts of the HTTP servers of this project: limits of time and
// size, and the checks that authorize requests.
package web

import (
	"io"
	"net/http"
	"time"
)

const (
	// readHeaderTimeout and readTimeout limit the time in which the header of a request arrives,
	// and the whole request.
	readHeaderTimeout, readTimeout = 5 * time.Second, 15 * time.Second
	// writeTimeout limits the time from the header of a request to the end of its answer, and the
	// time of each write of a [Stream].
	writeTimeout = 20 * time.Second
	// idleTimeout limits the time between two requests of a connection.
	idleTimeout = time.Minute
	// maxHeader and maxBody are the maximum sizes of a request in bytes.
	maxHeader, maxBody = 16 << 10, 64 << 10
)

// NewServer returns a server whose requests and connections have limits of time and size. An answer
// that may take longer than 20 s is written to a [Stream].
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, Handler: http.MaxBytesHandler(h, maxBody),
	}
}

// Body returns the body of a request for reading. An error of *[http.MaxBytesError] means that the
// body has more than size bytes. Reading fails if the body does not arrive within 15 s, whatever
// the limits of the server are.
func Body(w http.ResponseWriter, r *http.Request, size int64) io.Reader {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout)) // not all writers support deadlines
	return http.MaxBytesReader(w, r.Body, size)
}

// Stream writes an answer of any duration. Each Write is sent at once, and fails if the client does
// not receive it within 20 s.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// NewStream returns the stream of an answer.
func NewStream(w http.ResponseWriter) *Stream { return &Stream{w, http.NewResponseController(w)} }

// Write implements [io.Writer]. Writing nothing sends the header of the answer.
func (s *Stream) Write(b []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers support deadlines
	n, err := s.w.Write(b)
	if err == nil {
		err = s.control.Flush()
	}
	return n, err
}
