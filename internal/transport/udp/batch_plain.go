//go:build !(linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x))

package udp

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// batcher reads and writes batches of one datagram.
type batcher struct {
	refused atomic.Bool // see [Conn.ReportRefused]

	socket *net.UDPConn
	in     []byte // control message of a received datagram; nil if the socket has none
	mu     sync.Mutex
	out    []byte // control message of a sent datagram; nil if the socket has none
}

func (b *batcher) init(socket *net.UDPConn) error {
	b.socket = socket
	if ReportsLocal && socket.LocalAddr().(*net.UDPAddr).AddrPort().Addr().IsUnspecified() {
		b.in, b.out = make([]byte, 128), make([]byte, 0, 128)
	}
	return nil
}

func (b *batcher) readBatch(into []Datagram) (int, error) {
	d := &into[0]
	n, control, flags, from, err := b.socket.ReadMsgUDPAddrPort(d.Buf, b.in)
	if err != nil {
		return 0, err
	}
	d.N, d.Addr, d.Local = n, unmap(from), localOf(b.in[:control])
	if flags&truncated != 0 {
		d.N = len(d.Buf) + 1
	}
	return 1, nil
}

func (b *batcher) writeBatch(out []Datagram) (int, error) {
	for i := range out {
		if err := b.write(&out[i]); err != nil {
			return i, err
		}
	}
	return len(out), nil
}

func (b *batcher) write(d *Datagram) error {
	if b.in == nil || !d.Local.IsValid() {
		_, err := b.socket.WriteToUDPAddrPort(d.Bytes(), d.Addr)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out = appendLocal(b.out[:0], d.Local)
	_, _, err := b.socket.WriteMsgUDPAddrPort(d.Bytes(), b.out, d.Addr)
	return err
}

// usable returns a if datagrams can be sent from it, otherwise the zero value.
func usable(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.IsMulticast() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}
