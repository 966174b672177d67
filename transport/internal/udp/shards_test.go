package udp

import (
	"net/netip"
	"runtime"
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

// A single shard does not share its address: a second server on the port must be an error.
func TestOneShardIsAlone(t *testing.T) {
	one := shards(t, "127.0.0.1:0", 1)[0]
	if _, err := ListenShards(one.LocalAddr().String(), 2); err == nil {
		t.Error("another server shares the address")
	}
}
