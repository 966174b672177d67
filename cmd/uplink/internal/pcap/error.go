package pcap

import "fmt"

// Error says where a capture file cannot be read.
type Error struct {
	// Packet is the number of the packet at fault, or if it is none the one after it; the first is 1.
	Packet int
	// Offset is where in the file that packet or block begins, in bytes.
	Offset int64
	// Text says what is wrong.
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("capture: packet %d, at byte %d: %s", e.Packet, e.Offset, e.Text)
}
