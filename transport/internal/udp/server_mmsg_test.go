//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// openServer opens a server's socket.
func openServer(t testing.TB, addr string) *Server {
	t.Helper()
	all, err := ListenShards(addr, 1)
	if err != nil {
		t.Skipf("no socket on %s: %v", addr, err)
	}
	t.Cleanup(func() { _ = all[0].Close() })
	return all[0]
}

func TestServerExchange(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, s := open(t, addr), openServer(t, addr)
		var buf [4]byte
		for i := range 3 {
			if _, err := a.WriteTo(fmt.Appendf(nil, "%d over", i), s.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			n, from, err := s.ReadFrom(buf[:])
			if want := fmt.Sprintf("%d ov", i); err != nil || string(buf[:n]) != want || from != a.LocalAddr() {
				t.Fatalf("got %q from %v, %v, want %q from %v", buf[:n], from, err, want, a.LocalAddr())
			}
			if n, err := s.WriteTo(buf[:n], from); n != 4 || err != nil {
				t.Fatalf("sent %d bytes, %v", n, err)
			}
			if n, from, err := a.ReadFrom(buf[:]); err != nil || n != 4 || from != s.LocalAddr() {
				t.Fatalf("got %q from %v, %v, want it from %v", buf[:n], from, err, s.LocalAddr())
			}
		}
	}
}

// TestServerEnds: a read ends at its deadline and at Close, when it waits and when it does not, and after Close nothing
// works.
func TestServerEnds(t *testing.T) {
	s := openServer(t, "127.0.0.1:0")
	ended := make(chan error)
	read := func() {
		_, err := s.ReadBatch(room(2, 16))
		ended <- err
	}
	for range 2 {
		go read()
		runtime.Gosched()
		if err := s.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("at the deadline: %v", err)
		}
		if err := s.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	go read()
	runtime.Gosched()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("at Close: %v", err)
	}
	for name, f := range map[string]func() error{
		"ReadBatch":       func() error { _, err := s.ReadBatch(room(2, 16)); return err },
		"ReadFrom":        func() error { _, _, err := s.ReadFrom(make([]byte, 16)); return err },
		"WriteBatch":      func() error { _, err := s.WriteBatch([]Datagram{parcel("!", s.LocalAddr())}); return err },
		"WriteTo":         func() error { _, err := s.WriteTo([]byte("!"), s.LocalAddr()); return err },
		"SetReadDeadline": func() error { return s.SetReadDeadline(time.Time{}) },
		"Mute":            func() error { return s.Mute(true) },
		"Close":           s.Close,
	} {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// TestServerMuted: what comes to a muted socket makes nothing ready that Go's scheduler watches, and is read all the
// same; later it does again, also for what came before.
func TestServerMuted(t *testing.T) {
	a, s := open(t, "127.0.0.1:0"), openServer(t, "127.0.0.1:0")
	send := func() {
		t.Helper()
		if _, err := a.WriteTo([]byte("!"), s.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	ready := func() (n int) {
		t.Helper()
		var failed error
		if err := s.raw.Control(func(fd uintptr) {
			n, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		}); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return n
	}
	mute := func(quiet bool) {
		t.Helper()
		if err := s.Mute(quiet); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want int) {
		t.Helper()
		if n, err := s.ReadBatch(room(4, 16)); n != want || err != nil {
			t.Fatalf("read %d, %v, want %d", n, err, want)
		}
	}
	send() // over loopback it is there when that returns
	if ready() != 1 {
		t.Fatal("what came is not seen")
	}
	read(1)
	mute(true)
	send()
	send()
	if ready() != 0 {
		t.Error("what came wakes somebody")
	}
	read(2)
	send()
	mute(false)
	if ready() != 1 {
		t.Error("what came meanwhile wakes nobody")
	}
	read(1)
	if ready() != 0 {
		t.Error("what was read wakes somebody")
	}
	send()
	if ready() != 1 {
		t.Error("what came afterwards wakes nobody")
	}
}

// TestServerWokenAfterMute: a read that waits gets what comes.
func TestServerWokenAfterMute(t *testing.T) {
	a, s := open(t, "127.0.0.1:0"), openServer(t, "127.0.0.1:0")
	for _, quiet := range []bool{true, false} {
		if err := s.Mute(quiet); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan error)
	for range 3 {
		go func() {
			_, err := s.ReadBatch(room(2, 16))
			got <- err
		}()
		runtime.Gosched()
		if _, err := a.WriteTo([]byte("!"), s.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerClosesUnderWriters: no write goes to what may have the descriptor next.
func TestServerClosesUnderWriters(t *testing.T) {
	s, to := openServer(t, "127.0.0.1:0"), open(t, "127.0.0.1:0").LocalAddr()
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for {
				if _, err := s.WriteTo([]byte("!"), to); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("wrote: %v", err)
					}
					return
				}
			}
		})
	}
	runtime.Gosched()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	writing.Wait()
}

func TestServerAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := openServer(t, "127.0.0.1:0")
	in, out, to := room(8, 64), make([]byte, 16), s.LocalAddr()
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := s.WriteTo(out, to); err != nil {
			t.Fatal(err)
		}
		if n, err := s.ReadBatch(in); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a datagram, want 0", allocs)
	}
}
