//go:build native

package session

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestUpload sends calls and an endless byte stream over a narrow link, in virtual time: the stream
// uses what the calls leave of it, and does not delay them by a full queue, which is 250 ms.
func TestUpload(t *testing.T) {
	for _, rate := range []int{256_000 / 8, 1_000_000 / 8} { // bytes/s
		synctest.Test(t, func(t *testing.T) { upload(t, rate) })
	}
}

// uploaded counts the bytes of a stream.
type uploaded struct{ atomic.Int64 }

func (u *uploaded) Write(b []byte) (int, error) {
	u.Add(int64(len(b)))
	return len(b), nil
}

func upload(t *testing.T, rate int) {
	const delay, warm, span = 40 * time.Millisecond, 5 * time.Second, 20 * time.Second
	up, down := simnet.Config{Delay: delay, Rate: rate}, simnet.Config{Delay: delay}
	f := &fleet{t: t, network: uplinktest.NewNetwork(t, up, down)}
	f.servers = []*fleetServer{{}}
	var got uploaded
	var mu sync.Mutex
	sent := map[int32]time.Time{}
	var delays []time.Duration
	s, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: f.network, Hooks: ds.Hooks{
		OnStream: func(_ *ds.Player, r transport.StreamReader) { _, _ = io.Copy(&got, r) },
	}})
	uplinktest.Must(t, err)
	f.servers[0].addr = s.Addr()
	uplinktest.Must(t, ds.Handle(s, "Step", func(_ *ds.Player, fr ds.Frame[number]) {
		mu.Lock()
		defer mu.Unlock()
		if at, ok := sent[int32(fr.Value.N)]; ok {
			delays = append(delays, time.Since(at))
		}
	}))
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(ctx) })
	defer func() { cancel(); _ = s.Close(); work.Wait() }()

	c, err := newNative(f.network, s.Addr())
	uplinktest.Must(t, err)
	defer c.close()
	uplinktest.Must(t, errors.Join(c.bind("Step", false), c.connect(f.token(0))))
	data, bound, n, before := make([]byte, 16<<10), false, int32(0), int64(0)
	var stream uint32
	for begun := time.Now(); time.Since(begun) < warm+span; time.Sleep(time.Second / 60) {
		if stream == 0 && bound {
			stream, err = c.openStream("up")
			uplinktest.Must(t, err)
		}
		measured := time.Since(begun) >= warm
		if bound && c.call(0, n) == nil {
			mu.Lock()
			if measured {
				sent[n] = time.Now()
			}
			mu.Unlock()
			n++
			uplinktest.Must(t, c.writeStream(stream, data))
		}
		if measured && before == 0 {
			before = got.Load()
		}
		c.run(func(e *event) { bound = bound || e.kind == eventBound })
	}
	pathRate, queue := c.path()
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(delays)
	slow := delays[len(delays)*95/100]
	used := float64(got.Load()-before) / span.Seconds() / float64(rate)
	t.Logf("%d bytes/s: the stream had %.2f of it, 95 %% of %d calls took %v, rate %d, queue %v", rate, used, len(delays), slow, pathRate, queue)
	if used < 0.5 || slow > delay+80*time.Millisecond || pathRate > 3*uint64(rate) || pathRate < uint64(rate)/2 {
		t.Errorf("%d bytes/s: the stream had %.2f of it, 95 %% of %d calls took %v, rate %d, queue %v", rate, used, len(delays), slow, pathRate, queue)
	}
}
