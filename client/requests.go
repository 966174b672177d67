package client

import "fmt"

// RequestError means that the server's game refused a request.
type RequestError struct {
	Reason string // the first 256 bytes of it, as received: arbitrary bytes
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("the server refused the request: %q", e.Reason)
}

// requests holds the requests that wait for an answer of a link's server, by id. Conn.mu guards
// them.
type requests map[uint32]chan<- answer

type answer struct {
	message []byte
	err     error
}

// fail fails all requests, because the session has ended.
func (r requests) fail(err error) {
	for id, got := range r {
		got <- answer{err: err}
		delete(r, id)
	}
}
