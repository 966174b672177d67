package ds_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestRandomLinks plays over links, rings and rates drawn from a seed.
func TestRandomLinks(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playRandomLink(t, seed) })
		})
	}
}

func playRandomLink(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	network := uplinktest.NewNetwork(t, simnet.Config{Seed: rng.Uint64()}, simnet.Config{Seed: rng.Uint64()})
	server := ds.Config{Timeout: time.Minute, Ring: 2 + rng.IntN(255), AckHz: 1 + 99*rng.Float64(), DeliverLate: rng.IntN(2) == 0}
	ring, hz := 2+rng.IntN(255), time.Duration(10+rng.IntN(120))
	t.Logf("rings %d and %d, %.1f acks and %d frames a second, late %v", ring, server.Ring, server.AckHz, hz, server.DeliverLate)
	journal := uplinktest.NewJournal(t, seed)
	srv := uplinktest.Serve(t, network, server, func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
	every, tick, limit := 1+rng.IntN(client.MaxSendEvery), time.Duration(rng.IntN(3)*20)*ms, rng.IntN(2)*rng.IntN(50_000)
	t.Logf("%d frames a payload, tick %v, %d bits a second", every, tick, limit)
	conn := uplinktest.Dial(t, network, client.Config{Timeout: time.Minute, Ring: ring, Codec: rpcdelta.Adaptive, Tick: tick, Bandwidth: limit})
	move := uplinktest.Bind(t, conn, "Move", client.BindConfig{SendEvery: every})
	const stretch = 1000
	for first := uint64(0); first < 3*stretch; first += stretch {
		up, down := randomLink(rng), randomLink(rng)
		t.Logf("links up %+v, down %+v", up, down)
		uplinktest.Must(t, network.Set(up, down))
		play(t, move, seed, first, stretch, hz)
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
	}
	time.Sleep(3 * time.Second)
	log, sent := journal.Only(), move.Stats()
	checkStats(t, srv, &log, &sent, server.DeliverLate)
	if log.Frames() < 300 {
		t.Errorf("%d frames were delivered of %d", log.Frames(), sent.Frames())
	}
	if st := conn.Stats(); st.Malformed != 0 || sent.Reconnecting != 0 {
		t.Errorf("%d malformed messages, %d reconnections", st.Malformed, sent.Reconnecting)
	}
}

func randomLink(rng *rand.Rand) simnet.Config {
	c := simnet.Config{Delay: time.Duration(rng.IntN(150)) * time.Millisecond}
	if rng.IntN(4) != 0 {
		c.Loss = rng.Float64() / 2
		c.Burst = float64(rng.IntN(10))
	}
	if rng.IntN(2) == 0 {
		c.Jitter = time.Duration(rng.IntN(60)) * time.Millisecond
	}
	if rng.IntN(2) == 0 {
		c.Duplicate = rng.Float64()
	}
	return c
}
