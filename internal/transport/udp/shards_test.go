package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// shards opens n, or as many as the operating system offers.
func shards(t *testing.T, addr string, n int) []*Conn {
	t.Helper()
	all := check.Value(ListenShards(addr, n))(t)
	for _, c := range all {
		t.Cleanup(func() { _ = c.Close() })
	}
	if runtime.GOOS != "linux" {
		n = 1
	}
	if len(all) != n {
		t.Fatalf("%d shards, want %d", len(all), n)
	}
	return all
}

// TestShardsShareSenders: that one of four shards gets none of 64 senders has a probability of
// 4e-8, if the kernel's hash is good.
func TestShardsShareSenders(t *testing.T) {
	const count, senders, each = 4, 64, 3
	all := shards(t, "127.0.0.1:0", count)
	for range senders {
		from := open(t, "127.0.0.1:0")
		for range each {
			check.Value(from.WriteTo([]byte("!"), all[0].LocalAddr()))(t)
		}
	}
	home, busy, arrived := map[netip.AddrPort]int{}, map[int]bool{}, 0
	for i, c := range all {
		if c.LocalAddr() != all[0].LocalAddr() {
			t.Fatalf("shard %d has %v, want %v", i, c.LocalAddr(), all[0].LocalAddr())
		}
		check.Must(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		batch := room(16, 16)
		for n, err := c.ReadBatch(batch); err == nil; n, err = c.ReadBatch(batch) {
			for _, d := range batch[:n] {
				if shard, ok := home[d.Addr]; ok && shard != i {
					t.Errorf("datagrams of %v arrive on shards %d and %d", d.Addr, shard, i)
				}
				home[d.Addr], busy[i] = i, true
			}
			arrived += n
		}
	}
	if arrived != senders*each || len(home) != senders || len(busy) != len(all) {
		t.Errorf("%d datagrams of %d senders on %d shards, want %d of %d on %d", arrived, len(home), len(busy), senders*each, senders, len(all))
	}
}

func TestShardsNeedTheirAddress(t *testing.T) {
	taken := open(t, "127.0.0.1:0")
	if _, err := ListenShards(taken.LocalAddr().String(), 2); err == nil {
		t.Error("shards share the address of a socket that does not")
	}
	for _, n := range []int{0, -1} {
		if _, err := ListenShards("127.0.0.1:0", n); err == nil {
			t.Errorf("%d shards are opened", n)
		}
	}
}

// TestPortBelongsToOneServer opens a second server on the port of one with 1 and 2 shards, on the
// same address and on those that include it.
func TestPortBelongsToOneServer(t *testing.T) {
	for _, first := range []int{1, 2} {
		for _, second := range []int{1, 2} {
			one := shards(t, "127.0.0.1:0", first)[0]
			port := strconv.Itoa(int(one.LocalAddr().Port()))
			for _, host := range []string{"127.0.0.1", "0.0.0.0", "::", ""} {
				if all, err := ListenShards(net.JoinHostPort(host, port), second); !addressInUse(err) {
					t.Errorf("a server with %d shards on %q, beside one with %d on 127.0.0.1: %d sockets, %v", second, host, first, len(all), err)
				}
			}
		}
	}
}

// TestPortBelongsToOneProcess runs a second server in another process.
func TestPortBelongsToOneProcess(t *testing.T) {
	const variable = "UPLINK_TEST_LISTEN"
	if addr := os.Getenv(variable); addr != "" {
		all, err := ListenShards(addr, 2)
		if !addressInUse(err) {
			t.Errorf("opened %d sockets, %v", len(all), err)
		}
		return
	}
	one := shards(t, "127.0.0.1:0", 2)[0]
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPortBelongsToOneProcess$")
	cmd.Env = append(os.Environ(), variable+"="+one.LocalAddr().String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// addressInUse reports whether err says so, on Unix or Windows.
func addressInUse(err error) bool {
	const wsaEAddrInUse syscall.Errno = 10048
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaEAddrInUse)
}
