//go:build !(linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x))

package udp

import "net"

// batcher reads and writes batches of one datagram.
type batcher struct {
	socket *net.UDPConn
}

func (b *batcher) init(socket *net.UDPConn) error {
	b.socket = socket
	return nil
}

func (b *batcher) readBatch(into []Datagram) (int, error) {
	d := &into[0]
	n, _, flags, from, err := b.socket.ReadMsgUDPAddrPort(d.Buf, nil)
	if err != nil {
		return 0, err
	}
	d.N, d.Addr = n, unmap(from)
	if flags&truncated != 0 {
		d.N = len(d.Buf) + 1
	}
	return 1, nil
}

func (b *batcher) writeBatch(out []Datagram) (int, error) {
	for i := range out {
		if _, err := b.socket.WriteToUDPAddrPort(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}
