package game

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// TestPlay lets bots play over a bad link. Each shot must hit on the server whom it hit in the
// shooter's own view, except within 5 cm of an edge of the target, and predictions must be right.
func TestPlay(t *testing.T) {
	seeds, lasts := uint64(4), 30*time.Second
	if testing.Short() {
		seeds, lasts = 1, 10*time.Second
	}
	var all totals
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { all.play(t, seed, 8, lasts) })
		})
	}
	t.Logf("%d shots, %d hits; %d decided otherwise within 5 cm of an edge", all.Shots, all.Hits, all.Close)
	t.Logf("each second and player: %.3f corrections above 5 cm, %.1f kbit up, %.1f kbit down",
		float64(all.corrections)/all.seconds, float64(all.up)*8/1000/all.seconds, float64(all.down)*8/1000/all.seconds)
	switch {
	case all.Hits == 0:
		t.Errorf("%+v: want hits", all)
	case testing.Short(): // too few shots for shares
	case all.Hits < all.Shots/5 || all.Hits > all.Shots*4/5 || all.Close > all.Shots/20:
		t.Errorf("%+v: want hits and misses", all)
	}
}

// totals are those of all players.
type totals struct {
	Counts
	corrections, up, down uint64 // bytes up and down with all headers
	seconds               float64
}

// link returns a bad network.
func link(t *testing.T, seed uint64) (n *uplinktest.Network, up, down simnet.Config) {
	up = simnet.Config{Delay: 50 * ms, Jitter: 20 * ms, Loss: 0.05, Seed: 2 * seed}
	down = up
	down.Seed++
	return uplinktest.NewNetwork(t, up, down), up, down
}

// match lets bots play, and calls each after each tick of the server.
func match(t *testing.T, network *uplinktest.Network, seed uint64, bots int, lasts time.Duration, each func(*Server)) (*Server, []*Client) {
	s, err := NewServer(uplinktest.Addr, network)
	uplinktest.Must(t, err)
	defer s.Close()
	go s.Serve(t.Context())
	clients := make([]*Client, bots)
	var playing sync.WaitGroup
	for i := range clients {
		playing.Go(func() {
			c, err := Dial(t.Context(), s, uint64(i+1), network)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			clients[i] = c
			bot, end := NewBot(seed, uint64(i+1)), time.Now().Add(lasts)
			for time.Now().Before(end) {
				next, err := c.Advance(func(p *Picture) Input {
					in := bot.Play(p)
					in.Fire = in.Fire && time.Until(end) > 2*time.Second // all shots are decided at the end
					return in
				})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Until(next))
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		playing.Wait()
	}()
	start := time.Now()
	for n := uint64(1); ; n++ {
		uplinktest.Must(t, s.Advance())
		each(s)
		select {
		case <-over:
		case <-time.After(time.Until(start.Add(Time(n)))):
			continue
		}
		return s, clients
	}
}

func (all *totals) play(t *testing.T, seed uint64, bots int, lasts time.Duration) {
	network, _, _ := link(t, seed)
	s, clients := match(t, network, seed, bots, lasts, func(*Server) {})
	for i, c := range clients {
		if c == nil {
			continue
		}
		st, n, traffic := c.Prediction(), c.Counts(), c.Stats().Transport
		t.Logf("player %d: %+v, %+v", i+1, n, st)
		if wrong := n.Shots - n.Agreed - n.Close; wrong > 0 || n.Waiting > 0 {
			t.Errorf("player %d: of %d shots, %d were decided otherwise than shown, and %d not at all", i+1, n.Shots+n.Waiting, wrong, n.Waiting)
		}
		if perSecond := float64(st.Corrections) / lasts.Seconds(); perSecond >= 1 || st.States < 10*uint64(lasts.Seconds()) {
			t.Errorf("player %d: %.1f corrections above 5 cm a second of %d states", i+1, perSecond, st.States)
		}
		all.Shots, all.Hits, all.Close = all.Shots+n.Shots, all.Hits+n.Hits, all.Close+n.Close
		all.corrections, all.seconds = all.corrections+st.Corrections, all.seconds+lasts.Seconds()
		all.up += traffic.BytesSent + 28*traffic.DatagramsSent
		all.down += traffic.BytesReceived + 28*traffic.DatagramsReceived
	}
	t.Logf("rewind %+v", s.past.Stats())
}

// TestReconnect cuts all links until the sessions end. Afterwards everybody plays on in a new one.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cut, restored = 15 * TickHz, 32 * TickHz
		network, up, down := link(t, 1)
		shots := uint64(0)
		s, clients := match(t, network, 1, 3, 55*time.Second, func(s *Server) {
			switch s.tick {
			case cut:
				uplinktest.Must(t, network.Set(simnet.Config{Loss: 1}, simnet.Config{Loss: 1}))
			case restored:
				uplinktest.Must(t, network.Set(up, down))
				shots = s.past.Stats().Claims
			}
		})
		if n := s.past.Stats().Claims; shots == 0 || n == shots {
			t.Errorf("%d shots before and after the links were cut, %d before", n, shots)
		}
		for _, c := range clients {
			n, st := c.Counts(), c.Prediction()
			id, _ := client.SplitID(c.newest.IDs[0])
			t.Logf("player with object %d: %+v, %+v", id, n, st)
			if id <= 3 || n.Shots != n.Agreed+n.Close || n.Waiting != 0 || st.Inputs < 20*TickHz {
				t.Errorf("player with object %d, the first sessions had 1 to 3: %+v, %+v", id, n, st)
			}
		}
	})
}
