package session

import (
	"crypto/rand"
	"io"
)

// fill fills b with random bytes from a source, nil meaning crypto/rand.
func fill(random io.Reader, b []byte) {
	if random == nil {
		random = rand.Reader
	}
	if _, err := io.ReadFull(random, b); err != nil {
		panic("session: the random source failed: " + err.Error())
	}
}
