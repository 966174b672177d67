package cost

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// BenchmarkYardstick measures the cost of a datagram in the operating system alone, on the sockets
// of the transport: no server on these sockets can cost less. Over loopback, a send includes the
// work that an interrupt of a network card would do at the receiver.
//
// It measures the CPU time of the server's thread per datagram received from one of
// many addresses, and per answer. The clients run in the same process outside of the measured time.
// They do not use the network poller, for whose wake-ups the server would pay over loopback. A
// batch of 1 uses ReadFrom and WriteTo.
func BenchmarkYardstick(b *testing.B) {
	for _, size := range []int{40, 200} {
		for _, batch := range []int{1, 4, 16, 64, 256} {
			b.Run(fmt.Sprintf("bytes=%d/batch=%d", size, batch), func(b *testing.B) { measure(b, size, batch) })
		}
	}
}

const players = 512

// newBatch returns n datagrams with buffers of the size of an MTU.
func newBatch(n int) []transport.Datagram {
	batch := make([]transport.Datagram, n)
	for i := range batch {
		batch[i].Buf = make([]byte, 1500)
	}
	return batch
}

func measure(b *testing.B, size, batch int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	conn, err := transport.UDP().ListenPacket("127.0.0.1:0")
	uplinktest.Must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	pc := conn.(transport.BatchConn)
	clients := make([]int, players)
	for i := range clients {
		clients[i] = connected(b, pc.LocalAddr())
	}
	payload, all, answer := make([]byte, size), newBatch(players), make([]byte, size)
	var receiving, sending time.Duration
	for b.Loop() {
		for _, c := range clients {
			if _, err := unix.Write(c, payload); err != nil {
				b.Fatal(err)
			}
		}
		if err := pc.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // one may be lost, over loopback too
			b.Fatal(err)
		}
		begin := threadCPU(b)
		read(b, pc, all, batch)
		middle := threadCPU(b)
		write(b, pc, all, batch)
		receiving, sending = receiving+middle-begin, sending+threadCPU(b)-middle
		for _, c := range clients {
			if n, err := unix.Read(c, answer); n != size || err != nil {
				b.Fatal(n, err)
			}
		}
	}
	per := float64(b.N) * players
	b.ReportMetric(0, "ns/op") // also the clients'
	b.ReportMetric(float64(receiving.Nanoseconds())/per, "cpu-ns/received")
	b.ReportMetric(float64(sending.Nanoseconds())/per, "cpu-ns/sent")
}

// connected returns a socket that is connected to a server.
func connected(b *testing.B, to netip.AddrPort) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	uplinktest.Must(b, err)
	b.Cleanup(func() { _ = unix.Close(fd) })
	uplinktest.Must(b, unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}))
	return fd
}

// read fills all, in batches.
func read(b *testing.B, pc transport.BatchConn, all []transport.Datagram, batch int) {
	for len(all) > 0 {
		n := 1
		var err error
		if d := &all[0]; batch == 1 {
			d.N, d.Addr, err = pc.ReadFrom(d.Buf)
		} else {
			n, err = pc.ReadBatch(all[:min(batch, len(all))])
		}
		uplinktest.Must(b, err)
		all = all[n:]
	}
}

// write sends all, in batches.
func write(b *testing.B, pc transport.BatchConn, all []transport.Datagram, batch int) {
	for len(all) > 0 {
		n := min(batch, len(all))
		var err error
		if batch == 1 {
			_, err = pc.WriteTo(all[0].Bytes(), all[0].Addr)
		} else {
			_, err = pc.WriteBatch(all[:n])
		}
		uplinktest.Must(b, err)
		all = all[n:]
	}
}
