package ds_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// handlerCount counts who is in handlers at a time.
type handlerCount struct {
	mu   sync.Mutex
	in   map[*ds.Player]int
	most int // players at a time
	one  int // most of one player
}

// enter begins a handler of a player, and returns what ends it.
func (c *handlerCount) enter(p *ds.Player) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in[p]++
	c.most, c.one = max(c.most, len(c.in)), max(c.one, c.in[p])
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.in[p]--; c.in[p] == 0 {
			delete(c.in, p)
		}
	}
}

// TestShards plays with a server of several shards. The addresses of the clients change, and so the
// shards at which their datagrams arrive.
func TestShards(t *testing.T) {
	for _, poll := range []bool{false, true} {
		bubble(t, fmt.Sprintf("poll=%v", poll), func(t *testing.T) { checkShards(t, poll) })
	}
}

func checkShards(t *testing.T, poll bool) {
	const shards, seconds = 3, 20
	clients := 12 / thin(2)
	network := linkedBy(t, 40*ms, simnet.Config{Loss: 0.05, Jitter: 3 * ms, Seed: 11})
	moves, fires := uplinktest.NewJournal(t, 1), uplinktest.NewJournal(t, 2)
	inside := &handlerCount{in: map[*ds.Player]int{}}
	var joined, left, messages, echoes atomic.Int64
	srv := serve(t, network, ds.Config{
		Transport: ds.Transport{Shards: shards}, Poll: poll,
		Joined: func(p *ds.Player) {
			defer inside.enter(p)()
			joined.Add(1)
		},
		Left: func(p *ds.Player, _ error) {
			defer inside.enter(p)()
			left.Add(1)
		},
		OnMessage: func(p *ds.Player, b []byte) {
			defer inside.enter(p)()
			messages.Add(1)
			_ = p.SendReliable(b)
		},
	}, handles("Move", func(p *ds.Player, f frame) {
		defer inside.enter(p)()
		if !poll {
			time.Sleep(ms / 2) // other shards go on meanwhile
		}
		moves.Handle(p, f)
	}), handles("Fire", fires.Handle))
	if srv.Shards() != shards {
		t.Fatalf("%d shards", srv.Shards())
	}
	stop := polling(t, 10*ms, func() { srv.Poll() })
	var playing sync.WaitGroup
	for range clients {
		playing.Go(func() {
			conn := uplinktest.Dial(t, network, client.Config{OnMessage: func([]byte) { echoes.Add(1) }})
			move, fire := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", reliably)
			for n := range uint64(seconds * 60) {
				send(t, move, 1, n)
				if n%60 == 0 {
					send(t, fire, 2, n/60)
					uplinktest.Must(t, conn.SendReliable([]byte("message")))
				}
				if n == 300 || n == 700 {
					uplinktest.Must(t, conn.Rebind())
				}
				time.Sleep(time.Second / 60)
			}
			time.Sleep(2 * time.Second)
		})
	}
	playing.Wait()
	st, handled := srv.Stats(), uint64(0)
	for _, l := range moves.Logs() {
		handled += l.Frames()
		if l.Frames()+l.Missed != l.Next || l.Frames() < seconds*60*3/4 {
			t.Errorf("%d frames delivered and %d missed of %d", l.Frames(), l.Missed, l.Next)
		}
	}
	for _, l := range fires.Logs() {
		if l.Frames() != seconds {
			t.Errorf("%d of %d reliable frames", l.Frames(), seconds)
		}
	}
	if rpc := &st.RPCs[2]; rpc.RPC != "Move" || rpc.Frames() != handled || len(moves.Logs()) != clients || len(fires.Logs()) != clients || st.Acks.Messages < uint64(clients*seconds*4) {
		t.Errorf("%d frames handled of %d players: %+v", handled, len(moves.Logs()), st)
	}
	if st.Transport.Forwarded == 0 || st.Transport.PathMigrations != uint64(2*clients) || st.Transport.Open != clients || joined.Load() != int64(clients) {
		t.Errorf("%d joined, %+v", joined.Load(), st.Transport)
	}
	if n := messages.Load(); n != int64(clients*seconds) || echoes.Load() != n {
		t.Errorf("%d messages and %d echoes of %d", n, echoes.Load(), clients*seconds)
	}
	most := shards
	if poll {
		most = 1
	}
	if inside.one != 1 || inside.most != most {
		t.Errorf("handlers of %d players ran at a time, and %d of one; want %d and 1", inside.most, inside.one, most)
	}

	uplinktest.Must(t, errors.Join(srv.Shutdown(t.Context()), <-srv.Served)) // clients leave when told
	stop()
	if left.Load() != int64(clients) {
		t.Errorf("%d of %d left", left.Load(), clients)
	}
}
