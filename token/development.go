package token

import (
	"crypto/sha256"
	"sync"
)

// Development gives a key that everybody has, since it is published here. Both
// ends use it on loopback addresses if nothing is configured; a listener takes it
// there alone. A key that is Equal to it protects nothing.
func Development() Key { return development() }

var development = sync.OnceValue(func() Key {
	return newKey(sha256.Sum256([]byte("uplink development: private key")),
		sha256.Sum256([]byte("uplink development: token key")))
})
