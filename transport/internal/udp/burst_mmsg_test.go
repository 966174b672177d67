//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkBurst measures what sending some datagrams of the same size to one peer takes, each: as a
// batch of messages, and as one message that the kernel cuts into segments (UDP_SEGMENT), which is
// of use for nothing else.
func BenchmarkBurst(b *testing.B) {
	for _, size := range []int{64, 1200} {
		for _, count := range []int{1, 2, 4, 16} {
			name := fmt.Sprintf("%d of %d bytes", count, size)
			b.Run(name+"/batch", func(b *testing.B) { newBurst(b, size, count).run(b, (*burst).batch) })
			b.Run(name+"/segments", func(b *testing.B) { newBurst(b, size, count).run(b, (*burst).segments) })
		}
	}
}

// burst is some datagrams to a socket that takes them.
type burst struct {
	from, to *Conn
	out, in  []Datagram
	all      []byte // what out has, in one piece
	control  []byte
}

func newBurst(b *testing.B, size, count int) *burst {
	b.Helper()
	u := &burst{from: open(b, "127.0.0.1:0"), to: open(b, "127.0.0.1:0"), all: make([]byte, size*count)}
	for i := range count {
		part := u.all[i*size : (i+1)*size]
		u.out = append(u.out, Datagram{Buf: part, N: size, Addr: u.to.LocalAddr()})
		u.in = append(u.in, Datagram{Buf: make([]byte, size+1)})
	}
	u.control = make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&u.control[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Pointer(&u.control[unix.CmsgLen(0)])) = uint16(size)
	return u
}

func (u *burst) batch() error {
	_, err := u.from.WriteBatch(u.out)
	return err
}

func (u *burst) segments() (err error) {
	to := u.out[0].Addr
	e := u.from.raw.Write(func(fd uintptr) bool {
		_, err = unix.SendmsgN(int(fd), u.all, u.control, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, 0)
		return true
	})
	if e != nil {
		return e
	}
	return err
}

// run times the sending alone, and checks that all of it comes.
func (u *burst) run(b *testing.B, send func(*burst) error) {
	var took time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := send(u); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begin)
		for n := 0; n < len(u.out); {
			k, err := u.to.ReadBatch(u.in)
			if err != nil {
				b.Fatal(err)
			}
			for _, d := range u.in[:k] {
				if d.N != u.out[0].N || d.Addr != u.from.LocalAddr() {
					b.Fatalf("%d bytes from %v", d.N, d.Addr)
				}
			}
			n += k
		}
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*len(u.out)), "ns/datagram")
	b.ReportMetric(0, "ns/op")
}
