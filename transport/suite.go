package transport

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/transport/internal/seal"
)

// Suite is how datagrams are encrypted and authenticated.
type Suite = seal.Suite

// The suites.
const (
	// None does neither, for measurements alone: it needs [Config.Insecure] at both ends.
	None = seal.None
	// AES128GCM is AES-128 in Galois/counter mode: 16 bytes a datagram. It is the default.
	AES128GCM = seal.AES128GCM
	// AES128CTRHMAC8 is AES-128 in counter mode with HMAC-SHA-256 cut to 8 bytes: smaller, and more work.
	AES128CTRHMAC8 = seal.AES128CTRHMAC8
)

// checkSuites returns an error that says what is wrong with [Config.Suites].
func (c Config) checkSuites() error {
	for _, s := range c.Suites {
		switch {
		case !s.Valid():
			return fmt.Errorf("transport: Config.Suites has %v, which is not known", s)
		case s == None && !c.Insecure:
			return errors.New("transport: Config.Suites has None, which protects nothing: it is for measurements, with Config.Insecure")
		}
	}
	return nil
}

// offer returns the suites as a hello offers them.
func (c Config) offer() (set uint8) {
	for _, s := range c.Suites {
		set |= 1 << s
	}
	return set
}
