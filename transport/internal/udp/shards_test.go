package udp

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"

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

// That one of four shards gets none of 64 senders has a probability of 4e-8, if the kernel's hash
// is good.
func TestShardsShareSenders(t *testing.T) {
	const count, senders, each = 4, 64, 3
	all := shards(t, "127.0.0.1:0", count)
	type arrival struct {
		shard int
		from  netip.AddrPort
	}
	arrivals := make(chan arrival, senders*each)
	var reading sync.WaitGroup
	for i, c := range all {
		if c.LocalAddr() != all[0].LocalAddr() {
			t.Fatalf("shard %d has %v, want %v", i, c.LocalAddr(), all[0].LocalAddr())
		}
		reading.Go(func() {
			batch := room(16, 16)
			for {
				n, err := c.ReadBatch(batch)
				if err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("shard %d: %v", i, err)
					}
					return
				}
				for _, d := range batch[:n] {
					arrivals <- arrival{i, d.Addr}
				}
			}
		})
	}
	for range senders {
		from := open(t, "127.0.0.1:0")
		for range each {
			check.Value(from.WriteTo([]byte("!"), all[0].LocalAddr()))(t)
		}
	}
	home := map[netip.AddrPort]int{}
	busy := map[int]bool{}
	for range senders * each {
		a := <-arrivals
		if shard, ok := home[a.from]; ok && shard != a.shard {
			t.Errorf("datagrams of %v arrive on shards %d and %d", a.from, shard, a.shard)
		}
		home[a.from] = a.shard
		busy[a.shard] = true
	}
	if len(home) != senders || len(busy) != len(all) {
		t.Errorf("datagrams of %d senders on %d shards, want %d on %d", len(home), len(busy), senders, len(all))
	}
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	reading.Wait()
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
