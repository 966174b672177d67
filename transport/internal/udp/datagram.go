package udp

import "net/netip"

// Datagram is one of a batch.
type Datagram struct {
	// Buf is the caller's memory for what is read, or that holds what is written.
	Buf []byte
	// N is the size in bytes. It is more than len(Buf) if a datagram that was read did not fit: the rest
	// is lost.
	N int
	// Addr is where the datagram came from, or goes to.
	Addr netip.AddrPort
}

// Bytes returns the first N bytes of Buf, or all if there are fewer. Those of a datagram that was cut off
// fill Buf.
func (d *Datagram) Bytes() []byte { return d.Buf[:min(d.N, len(d.Buf))] }
