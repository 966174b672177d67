package seal

import (
	"fmt"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
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
	for _, suite := range allSuites {
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

// BenchmarkHandshakeResponder is the server's part of a handshake.
func BenchmarkHandshakeResponder(b *testing.B) {
	key := NewStaticKey([32]byte{1})
	hello, _ := NewInitiator(nil, key.Public(), testPrologue).Hello(nil, make([]byte, 300))
	for b.Loop() {
		r := NewResponder(nil, key, testPrologue)
		check.Value(r.Hello(hello))(b)
		_, _, _ = r.Welcome(nil, make([]byte, 10))
	}
}

// BenchmarkCookies makes and checks a cookie.
func BenchmarkCookies(b *testing.B) {
	now := time.Unix(1e9, 0)
	c := NewCookies(nil, now)
	b.ReportAllocs()
	for b.Loop() {
		if !c.Check(c.Make(cookieAddr, 7, now), cookieAddr, 7, now) {
			b.Fatal("refused")
		}
	}
}
