package uplinktest

// The kinds of datagram that tests look for; docs/SPEC.md has them all.
const (
	DataKind     = 0
	ReliableKind = 1
)

// Kind is that of a sealed datagram, and -1 for one of the handshake.
func Kind(b []byte) int {
	if len(b) == 0 || b[0]>>7 != 0 {
		return -1
	}
	return int(b[0] >> 3 & 7)
}
