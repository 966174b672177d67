package client

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TestViewMemory bounds the heap of a client that receives 901 objects 60 times per second at an
// RTT of 200 ms, and checks that the newest snapshot is copied only after a call of Latest.
func TestViewMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, codec := range []string{replication.SnapshotCodec, areaCodec} {
		t.Run(codec, func(t *testing.T) { testViewMemory(t, codec) })
	}
}

func testViewMemory(t *testing.T, codec string) {
	r := newWorldFixture(t, codec)
	r.count, r.toClient.Keep, r.toClient.RoundTrip = 901, true, 200*time.Millisecond
	v := r.snapshots(SnapshotConfig[worldObject]{})
	var acks [12][]byte
	play := func() {
		for range 120 {
			r.toClient.Sent = nil
			r.send()
			for _, fragment := range r.toClient.Sent {
				r.deliver(fragment)
			}
			oldest := &acks[r.tick%uint64(len(acks))]
			newest := slices.Clone(r.toServer.Last)
			if r.toServer.Last = *oldest; *oldest != nil {
				r.ack()
			}
			*oldest = newest
		}
	}
	play()
	if v.objects.shown.newest.set != nil {
		t.Error("the newest snapshot is copied without a call of Latest")
	}
	var latest Snapshot[worldObject]
	v.Latest(&latest)
	play()
	if v.objects.shown.newest.set == nil || !v.Latest(&latest) || latest.Tick != r.tick || len(latest.Objects) != r.count {
		t.Errorf("the latest is tick %d with %d objects, want %d with %d", latest.Tick, len(latest.Objects), r.tick, r.count)
	}
	clear(acks[:])
	with := allocs.Heap()
	v, r.conn, r.worlds = nil, nil, nil
	bytes := with - allocs.Heap()
	if t.Logf("%d KiB", bytes>>10); bytes < 100<<10 || bytes > 1<<20 {
		t.Errorf("the client takes %d bytes, want at most 1 MiB", bytes)
	}
	runtime.KeepAlive(r)
}
