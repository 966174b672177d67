package endpoint

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

// TestQueue verifies that queued datagrams leave in one batch with the flush, or in order before
// a datagram of Send, and that this allocates nothing.
func TestQueue(t *testing.T) {
	d := newTestListener(t, Config{})
	for i := range 3 {
		d.visit(t, place(i), 0).open()
	}
	conns := d.all()
	pc := new(script)
	d.outbox.pc = pc
	state := []byte("state")
	queue := func(n int) {
		for i := range n {
			if err := conns[i%len(conns)].Queue(state); err != nil {
				t.Fatal(err)
			}
		}
	}
	queue(7)
	if len(pc.out) != 0 {
		t.Errorf("%d datagrams left before the flush", len(pc.out))
	}
	d.Flush()
	queue(2)
	if err := conns[0].Send([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	queue(listenerBatch.writes + 1)
	d.Flush()
	if want := []int{7, 3, listenerBatch.writes}; !slices.Equal(pc.batches, want) || pc.direct != 1 {
		t.Errorf("batches of %d, and %d datagrams alone; want %d and 1", pc.batches, pc.direct, want)
	}
	d.Flush()
	if n := 7 + 3 + listenerBatch.writes + 1; len(pc.out) != n {
		t.Errorf("%d datagrams have left, want %d", len(pc.out), n)
	}
	if race.Enabled {
		return
	}
	d.outbox.pc = discard{pc}
	if allocs := allocs.PerRun(100, func() { queue(50); d.Flush() }); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// TestFlushByAllShards verifies that the shards write at the same time: each write waits until all
// shards write.
func TestFlushByAllShards(t *testing.T) {
	const shards = 4
	synctest.Test(t, func(t *testing.T) {
		d := newTestListener(t, Config{Shards: shards})
		var all sync.WaitGroup
		all.Add(shards)
		for _, s := range d.shards {
			s.outbox.pc = barrierConn{new(script), &all}
			for range minFlush {
				s.outbox.add([]byte("state"), on(port(1)), nil)
			}
		}
		d.Flush()
		for i, s := range d.shards {
			if n := s.outbox.waiting(); n != 0 {
				t.Errorf("%d datagrams of shard %d wait", n, i)
			}
		}
	})
}

// barrierConn is a BatchConn whose writes wait for each other.
type barrierConn struct {
	*script
	all *sync.WaitGroup
}

func (m barrierConn) WriteBatch(out []transport.Datagram) (int, error) {
	m.all.Done()
	m.all.Wait()
	return m.script.WriteBatch(out)
}
