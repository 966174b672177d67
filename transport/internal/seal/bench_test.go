package seal

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func BenchmarkSeal(b *testing.B) {
	eachSize(b, func(b *testing.B, suite Suite, size int) {
		s := NewSealer(suite, [32]byte{1})
		buf := make([]byte, 3+size, 3+size+suite.Overhead())
		number := uint64(0)
		for b.Loop() {
			s.Seal(buf[:3], buf[:3], buf[3:], number&(1<<EpochBits-1))
			s.next = 0 // stay in the epoch
			number++
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	eachSize(b, func(b *testing.B, suite Suite, size int) {
		o := NewOpener(suite, [32]byte{1})
		sealed := NewSealer(suite, [32]byte{1}).Seal(nil, []byte("hdr"), make([]byte, size), 7)
		header, plain := []byte("hdr"), make([]byte, 0, size)
		for b.Loop() {
			if _, ok := o.Open(plain, header, sealed, 7); !ok {
				b.Fatal("does not open")
			}
		}
	})
}

func eachSize(b *testing.B, f func(b *testing.B, suite Suite, size int)) {
	for _, suite := range []Suite{None, AES128GCM, AES128CTRHMAC8} {
		for _, size := range []int{20, 1000} {
			b.Run(fmt.Sprintf("%v/%d", suite, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				f(b, suite, size)
			})
		}
	}
}

func BenchmarkWindow(b *testing.B) {
	b.ReportAllocs()
	var w Window
	for n := uint32(0); b.Loop(); n++ {
		number, verdict := w.Check(n&(1<<19-1), 19)
		if verdict != New {
			b.Fatal(n, verdict)
		}
		w.Mark(number)
	}
}

// BenchmarkSession is what a session costs beside its handshake: the keys of both directions.
func BenchmarkSession(b *testing.B) {
	for _, suite := range []Suite{AES128GCM, AES128CTRHMAC8} {
		b.Run(suite.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewSealer(suite, [32]byte{1})
				NewOpener(suite, [32]byte{2})
			}
		})
	}
}

// BenchmarkHandshakeResponder is the server's part of a handshake.
func BenchmarkHandshakeResponder(b *testing.B) {
	key := NewStaticKey([32]byte{1})
	hello, _ := NewInitiator(nil, key.Public(), testPrologue).Hello(nil, make([]byte, 300))
	for b.Loop() {
		r := NewResponder(nil, key, testPrologue)
		if _, err := r.Hello(hello); err != nil {
			b.Fatal(err)
		}
		_, _, _ = r.Welcome(nil, make([]byte, 10))
	}
}

func BenchmarkCookies(b *testing.B) {
	now := time.Unix(1e9, 0)
	addr := netip.MustParseAddrPort("203.0.113.7:7777")
	c := NewCookies(nil, now)
	cookie := c.Make(addr, 7, now)
	b.Run("make", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Make(addr, 7, now)
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !c.Check(cookie, addr, 7, now) {
				b.Fatal("refused")
			}
		}
	})
}
