package transport

import "github.com/uplink-rpc/uplink/transport/internal/udp"

// Datagram is one of a batch:
//
//	Buf  []byte         // the caller's memory for what is read, or that holds what is written
//	N    int            // size in bytes; more than len(Buf) if what was read did not fit: the rest is lost
//	Addr netip.AddrPort // where it came from, or goes to
//
// Its method Bytes returns the first N bytes of Buf, or all if there are fewer.
type Datagram = udp.Datagram

// BatchConn is a PacketConn that reads and writes several datagrams at a time, which on some operating systems
// costs much less than one by one. [UDP]'s are of this kind; a PacketConn that is not is read one by one.
type BatchConn interface {
	PacketConn
	// ReadBatch waits for at least one datagram, and reads those that wait already into the buffers of
	// into. It returns how many; otherwise it is as ReadFrom, and called by the same goroutine.
	ReadBatch(into []Datagram) (n int, err error)
	// WriteBatch sends the datagrams in order and returns how many it has sent. If these are not all, the
	// error is about the next one, which was not sent; the caller may go on behind it. It does not
	// keep the buffers. It is safe for concurrent use.
	WriteBatch(out []Datagram) (sent int, err error)
}

// batched returns pc itself, or something that calls it once for each datagram.
func batched(pc PacketConn) BatchConn {
	if b, ok := pc.(BatchConn); ok {
		return b
	}
	return single{pc}
}

// single is a PacketConn whose batches are of one datagram.
type single struct{ PacketConn }

func (s single) ReadBatch(into []Datagram) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	n, from, err := s.ReadFrom(into[0].Buf)
	if err != nil {
		return 0, err
	}
	into[0].N, into[0].Addr = n, from
	return 1, nil
}

func (s single) WriteBatch(out []Datagram) (int, error) {
	for i := range out {
		if _, err := s.WriteTo(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}

// arena returns n datagrams with buffers of size bytes, in one piece of memory.
func arena(n, size int) []Datagram {
	memory := make([]byte, n*size)
	batch := make([]Datagram, n)
	for i := range batch {
		batch[i].Buf = memory[i*size : (i+1)*size : (i+1)*size]
	}
	return batch
}
