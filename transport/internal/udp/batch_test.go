package udp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// room makes a batch of n buffers of size bytes.
func room(n, size int) []Datagram {
	batch := make([]Datagram, n)
	for i := range batch {
		batch[i].Buf = make([]byte, size)
	}
	return batch
}

// parcel is a datagram for WriteBatch.
func parcel(s string, to netip.AddrPort) Datagram {
	return Datagram{Buf: []byte(s), N: len(s), Addr: to}
}

// collect reads n datagrams, in batches of at most size.
func collect(t testing.TB, c *Conn, n, size int) []Datagram {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // one may be lost, over loopback too
		t.Fatal(err)
	}
	var all []Datagram
	for len(all) < n {
		batch := room(size, 64)
		got, err := c.ReadBatch(batch)
		if err != nil || got < 1 || got > size {
			t.Fatalf("after %d datagrams: a batch of %d, %v", len(all), got, err)
		}
		all = append(all, batch[:got]...)
	}
	return all
}

func TestBatchExchange(t *testing.T) {
	const count = 3*maxBatch + 7
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			a, b := open(t, addr), open(t, addr)
			var out []Datagram
			for i := range count {
				out = append(out, parcel(fmt.Sprint("no. ", i), b.LocalAddr()))
			}
			if sent, err := a.WriteBatch(out); sent != count || err != nil {
				t.Fatalf("sent %d of %d, %v", sent, count, err)
			}
			for i, d := range collect(t, b, count, 100) {
				if !bytes.Equal(d.Bytes(), out[i].Buf) || d.Addr != a.LocalAddr() {
					t.Fatalf("datagram %d is %q from %v, want %q from %v", i, d.Bytes(), d.Addr, out[i].Buf, a.LocalAddr())
				}
			}
		})
	}
}

func TestEmptyBatch(t *testing.T) {
	c := open(t, "127.0.0.1:0")
	if n, err := c.ReadBatch(nil); n != 0 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := c.WriteBatch(nil); n != 0 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
}

func TestEmptyDatagram(t *testing.T) {
	a, b := open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
	if _, err := a.WriteBatch([]Datagram{parcel("", b.LocalAddr()), parcel("!", b.LocalAddr())}); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, b, 2, 2); got[0].N != 0 || got[1].N != 1 {
		t.Errorf("got %d and %d bytes, want 0 and 1", got[0].N, got[1].N)
	}
}

// One socket for both families, and one for each, write to one another.
func TestBatchOfBothFamilies(t *testing.T) {
	both, four, six := open(t, ":0"), open(t, "127.0.0.1:0"), open(t, "[::1]:0")
	port := both.LocalAddr().Port()
	if _, err := four.WriteBatch([]Datagram{parcel("4", netip.AddrPortFrom(four.LocalAddr().Addr(), port))}); err != nil {
		t.Fatal(err)
	}
	if _, err := six.WriteBatch([]Datagram{parcel("6", netip.AddrPortFrom(six.LocalAddr().Addr(), port))}); err != nil {
		t.Fatal(err)
	}
	got := collect(t, both, 2, 2)
	for i, want := range []*Conn{four, six} {
		if got[i].Addr != want.LocalAddr() {
			t.Errorf("a datagram from %v, want %v", got[i].Addr, want.LocalAddr())
		}
	}
	if sent, err := both.WriteBatch(got); sent != 2 || err != nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	for i, c := range []*Conn{four, six} {
		back := collect(t, c, 1, 2)[0]
		if !bytes.Equal(back.Bytes(), got[i].Bytes()) || back.Addr.Port() != port {
			t.Errorf("%q came back from %v, want %q", back.Bytes(), back.Addr, got[i].Bytes())
		}
	}
}

// A socket of IPv4 alone takes the IPv4-mapped form of an address too.
func TestMappedAddress(t *testing.T) {
	a, b := open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
	mapped := netip.AddrPortFrom(netip.AddrFrom16(b.LocalAddr().Addr().As16()), b.LocalAddr().Port())
	if sent, err := a.WriteBatch([]Datagram{parcel("!", mapped)}); sent != 1 || err != nil {
		t.Fatalf("sent %d, %v", sent, err)
	}
	collect(t, b, 1, 1)
}

// The error is about the first datagram that was not sent, and what lies behind it can still be
// sent.
func TestWriteBatchStops(t *testing.T) {
	for name, bad := range map[string]Datagram{
		"family":  parcel("?", netip.MustParseAddrPort("[2001:db8::1]:9")),
		"address": parcel("?", netip.AddrPort{}),
		"size":    {Buf: make([]byte, 1<<16), N: 1 << 16, Addr: netip.MustParseAddrPort("127.0.0.1:9")},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
			to := b.LocalAddr()
			out := []Datagram{parcel("1", to), parcel("2", to), bad, parcel("3", to)}
			if sent, err := a.WriteBatch(out); sent != 2 || err == nil {
				t.Fatalf("sent %d, %v, want 2 and an error", sent, err)
			}
			if sent, err := a.WriteBatch(out[2:]); sent != 0 || err == nil {
				t.Errorf("sent %d, %v, want 0 and an error", sent, err)
			}
			if sent, err := a.WriteBatch(out[3:]); sent != 1 || err != nil {
				t.Errorf("sent %d, %v", sent, err)
			}
			for i, d := range collect(t, b, 3, 4) {
				if want := fmt.Sprint(i + 1); string(d.Bytes()) != want {
					t.Errorf("got %q, want %q", d.Bytes(), want)
				}
			}
		})
	}
}

func TestCutOff(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("such a datagram is an error there, and skipped")
	}
	a, b := open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
	to := b.LocalAddr()
	if _, err := a.WriteBatch([]Datagram{parcel("12345", to), parcel("1234", to)}); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []bool{true, false} {
		batch := room(1, 4)
		if n, err := b.ReadBatch(batch); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		d := batch[0]
		if (d.N > len(d.Buf)) != cut || string(d.Bytes()) != "1234" {
			t.Errorf("got %q, %d bytes, cut off is %v", d.Bytes(), d.N, cut)
		}
	}
}

func TestReadBatchEnds(t *testing.T) {
	c := open(t, "127.0.0.1:0")
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadBatch(room(2, 16)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadBatch(room(2, 16)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := c.WriteBatch([]Datagram{parcel("!", c.LocalAddr())}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after Close: %v", err)
	}
}

// A read that waits already is ended by a deadline, and the next one by Close. That it waits cannot
// be seen from outside; if it does not yet, the outcome is the same.
func TestWaitingReadEnds(t *testing.T) {
	c := open(t, "127.0.0.1:0")
	ended := make(chan error)
	go func() {
		for range 2 {
			_, err := c.ReadBatch(room(2, 16))
			ended <- err
		}
	}()
	runtime.Gosched()
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at the deadline: %v", err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	runtime.Gosched()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// The second read may have begun before the deadline was lifted.
	if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at Close: %v", err)
	}
}

func TestRefusedIsTransientInBatch(t *testing.T) {
	c, back := refused(t)
	if _, err := back.WriteTo([]byte("!"), c.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, c, 1, 2)[0]; string(got.Bytes()) != "!" {
		t.Errorf("got %q, want what came after the report", got.Bytes())
	}
}

func TestConcurrentWriteBatch(t *testing.T) {
	const writers, each = 4, 50
	a, b := open(t, "127.0.0.1:0"), open(t, "127.0.0.1:0")
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			var out []Datagram
			for i := range each {
				out = append(out, parcel(fmt.Sprintf("%d %d", w, i), b.LocalAddr()))
			}
			_, err := a.WriteBatch(out)
			failed <- err
		}()
	}
	for range writers {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	var next [writers]int
	for _, d := range collect(t, b, writers*each, 64) {
		var w, i int
		if _, err := fmt.Sscanf(string(d.Bytes()), "%d %d", &w, &i); err != nil || i != next[w] {
			t.Fatalf("got %q, want number %d of that writer", d.Bytes(), next[w])
		}
		next[w]++
	}
}

func TestBatchAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := open(t, addr), open(t, addr)
		in, out := room(8, 64), room(8, 16)
		for i := range out {
			out[i].N, out[i].Addr = 16, b.LocalAddr()
		}
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := a.WriteBatch(out); err != nil {
				t.Fatal(err)
			}
			for got := 0; got < len(out); {
				n, err := b.ReadBatch(in)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations a batch, want 0", addr, allocs)
		}
	}
}
