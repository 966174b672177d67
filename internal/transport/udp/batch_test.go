package udp

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
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
	check.Value(a.WriteBatch([]Datagram{parcel("12345", to), parcel("1234", to)}))(t)
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

// TestAnswersFromDialedAddress: a socket on a wildcard address reports to which address of the
// machine a datagram was sent, and answers from there.
func TestAnswersFromDialedAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is not everywhere an address of the loopback interface")
	}
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		for _, count := range []int{1, 2} {
			all := shards(t, addr, count)
			for _, dialed := range []string{"127.0.0.1", "127.0.0.2", "127.1.2.3", "::1"} {
				to := netip.AddrPortFrom(netip.MustParseAddr(dialed), all[0].LocalAddr().Port())
				from := open(t, "127.0.0.1:0")
				if to.Addr().Is6() {
					if from = open(t, "[::1]:0"); all[0].LocalAddr().Addr().Is4() {
						continue
					}
				}
				check.Value(from.WriteTo([]byte("?"), to))(t)
				for _, c := range all {
					check.Must(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
					batch := room(2, 16)
					n, _ := c.ReadBatch(batch)
					for _, d := range batch[:n] {
						if d.Local != to.Addr() {
							t.Errorf("%s, %d sockets: a datagram to %v, want %v", addr, count, d.Local, to.Addr())
						}
					}
					check.Value(c.WriteBatch(batch[:n]))(t)
				}
				if d := collect(t, from, 1, 1)[0]; d.Addr != to {
					t.Errorf("%s, %d sockets: an answer from %v, want %v", addr, count, d.Addr, to)
				}
			}
		}
	}
	one := open(t, "127.0.0.2:0")
	check.Value(one.WriteTo([]byte("!"), one.LocalAddr()))(t)
	if d := collect(t, one, 1, 1)[0]; d.Local.IsValid() {
		t.Errorf("a socket on one address reports %v", d.Local)
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
		check.Must(t, <-failed)
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

// TestBatchExchange sends more datagrams than a system call takes; the first one is empty.
func TestBatchExchange(t *testing.T) {
	const count = 3*maxBatch + 7
	a, b := openPair(t)
	out := []Datagram{parcel("", b.LocalAddr())}
	for i := range count - 1 {
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
	for _, transfer := range []func([]Datagram) (int, error){a.ReadBatch, a.WriteBatch} {
		if n, err := transfer(nil); n != 0 || err != nil {
			t.Errorf("%d datagrams of none, %v", n, err)
		}
	}
}
