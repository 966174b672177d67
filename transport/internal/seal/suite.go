package seal

import "fmt"

// Suite is how datagrams are sealed once a session has its secrets. Both ends use the same one in both
// directions.
type Suite uint8

// The suites.
const (
	// None seals nothing: whatever comes is opened. It is for measurements alone.
	None Suite = iota
	// AES128GCM is AES-128 in Galois/counter mode with a tag of 16 bytes.
	AES128GCM
	// AES128CTRHMAC8 is AES-128 in counter mode, then HMAC-SHA-256 cut to 8 bytes: half the tag, at
	// more work for each datagram. Somebody who sends forged datagrams gets one of 2^64 through.
	AES128CTRHMAC8
)

var suites = [...]struct {
	name     string
	overhead int
	sframe   uint16 // its number in the registry of RFC 9605, which enters the key schedule
}{
	None:           {name: "none"},
	AES128GCM:      {name: "aes128gcm", overhead: 16, sframe: sframeGCM128},
	AES128CTRHMAC8: {name: "aes128ctr-hmac8", overhead: 8, sframe: sframeCTR64},
}

// Numbers of cipher suites in RFC 9605, section 4.5.
const (
	sframeCTR64  = 0x0002
	sframeGCM128 = 0x0004
)

// Valid reports whether s is one of the suites of this package.
func (s Suite) Valid() bool { return int(s) < len(suites) }

// Overhead returns by how many bytes a sealed text is longer than the plain one. It is 0 for a suite
// that is not [Suite.Valid].
func (s Suite) Overhead() int {
	if !s.Valid() {
		return 0
	}
	return suites[s].overhead
}

// String returns the suite's name, which [ParseSuite] takes.
func (s Suite) String() string {
	if !s.Valid() {
		return fmt.Sprintf("suite(%d)", uint8(s))
	}
	return suites[s].name
}

// ParseSuite returns the suite of that name: none, aes128gcm or aes128ctr-hmac8.
func ParseSuite(name string) (Suite, error) {
	for s, suite := range suites {
		if suite.name == name {
			return Suite(s), nil
		}
	}
	return None, fmt.Errorf("seal: no suite is named %q: want %s, %s or %s", name, AES128GCM, AES128CTRHMAC8, None)
}
