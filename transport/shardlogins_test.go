package transport_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// logins is a handler of one of several shards that checks, over all of them, that a client is
// there once at a time.
type logins struct {
	texts
	t     *testing.T
	mu    *sync.Mutex
	there map[uint64]*transport.Conn
	total *int
	left  chan<- error
}

func (h *logins) Opened(c *transport.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there[c.ClientID()] != nil {
		h.t.Error("a client's connection is opened while its last one is")
	}
	h.there[c.ClientID()] = c
	*h.total++
}

func (h *logins) Closed(c *transport.Conn, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there[c.ClientID()] != c {
		h.t.Error("another connection of a client is closed than was opened last")
	}
	delete(h.there, c.ClientID())
	h.left <- err
}

// TestLoginsAtShards connects the same client id repeatedly, from changing addresses, while its
// earlier connections are open. On any shard, Closed of a connection precedes Opened of the next.
func TestLoginsAtShards(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			const shards, count = 4, 40
			n := newNetwork(t, simnet.Config{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1, Seed: seed})
			total, left := 0, make(chan error, count)
			mu, there := new(sync.Mutex), map[uint64]*transport.Conn{}
			handlers := make([]transport.Handler, shards)
			for i := range handlers {
				handlers[i] = &logins{t: t, mu: mu, there: there, total: &total, left: left}
			}
			l := listen(t, serverAddr, transport.Config{Network: n, Shards: shards}, handlers...)
			var conns sync.WaitGroup
			for i := range count {
				conns.Go(func() {
					cfg := transport.Config{Network: n, Token: issue(t, 1)}
					if c, err := transport.Dial(t.Context(), serverAddr, cfg, &recorder{t: t}); err == nil {
						if i%5 == 0 {
							_ = c.Close() // while others come
						} else {
							t.Cleanup(func() { _ = c.Close() })
						}
					}
				})
				time.Sleep(time.Duration(i%4) * 50 * time.Millisecond)
			}
			conns.Wait()
			time.Sleep(12 * time.Second) // closes that were lost are found out
			mu.Lock()
			defer mu.Unlock()
			if len(there) > 1 || total < count/4 || len(left) != total-len(there) {
				t.Errorf("%d connections, %d ended, %d are there", total, len(left), len(there))
			}
			if s := l.Stats(); s.Open != len(there) || s.Conns != len(there) {
				t.Errorf("%+v", s)
			}
			replaced := 0
			for range len(left) {
				if errors.Is(<-left, transport.ErrReplaced) {
					replaced++
				}
			}
			if replaced == 0 {
				t.Error("none was replaced")
			}
		})
	}
}
