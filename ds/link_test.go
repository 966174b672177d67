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

// play sends frames first to first+n-1, none of which may be refused.
func play(t *testing.T, s *client.Stream[uplinktest.Move], salt, first uint64, n int, hz time.Duration) {
	t.Helper()
	for i := range uint64(n) {
		m := uplinktest.MoveAt(salt, first+i)
		uplinktest.Must(t, s.Send(&m))
		time.Sleep(time.Second / hz)
	}
}

// settle waits in virtual time. Afterwards the test can read what other goroutines wrote.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// symmetric returns the two directions of a link, with half the round-trip time each.
func symmetric(rtt time.Duration, c simnet.Config) (up, down simnet.Config) {
	c.Delay = rtt / 2
	down = c
	down.Seed++
	return c, down
}

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// linkedBy returns a network whose links have a round-trip time and are otherwise as c.
func linkedBy(t testing.TB, rtt time.Duration, c simnet.Config) *uplinktest.Network {
	t.Helper()
	up, down := symmetric(rtt, c)
	return uplinktest.NewNetwork(t, up, down)
}

// perfect returns a network without delay and loss.
func perfect(t testing.TB) *uplinktest.Network {
	t.Helper()
	return uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
}

// handles returns a setup for uplinktest.Serve that registers one RPC.
func handles[T any](rpc string, f func(*ds.Player, ds.Frame[T])) func(*ds.Server) error {
	return func(s *ds.Server) error { return ds.Handle(s, rpc, f) }
}

const ms = time.Millisecond

// thin returns the step by which a test goes through its cases: with -short it leaves out most of
// them. A step that is coprime to the numbers of combined parameters covers all values.
func thin(step int) int {
	if testing.Short() {
		return step
	}
	return 1
}

// TestLinks plays virtual minutes over links with loss, delay, jitter and duplicates in both
// directions, with rings of all sizes at both ends.
func TestLinks(t *testing.T) {
	n := 0
	for _, c := range []struct {
		rtt            time.Duration
		link           simnet.Config
		client, server int // rings
		ackHz          float64
		late           bool
		delivered      float64 // least share of frames, each sent once
		least          float64 // least share of deltas
		intra          bool    // no deltas
	}{
		{rtt: 20 * ms, client: 64, server: 64, delivered: 1, least: 0.99},
		// At this age a delta is not always the shorter one.
		{rtt: 300 * ms, client: 64, server: 64, delivered: 1, least: 0.85},
		{rtt: 300 * ms, client: 256, server: 256, ackHz: 10, delivered: 1, least: 0.85},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.05}, client: 64, server: 64, delivered: 0.93, least: 0.98},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, client: 64, server: 64, delivered: 0.8, least: 0.98},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, client: 64, server: 64, late: true, delivered: 0.93, least: 0.98},
		{rtt: 50 * ms, link: simnet.Config{Loss: 0.2, Burst: 5, Duplicate: 0.2}, client: 64, server: 32, delivered: 0.75, least: 0.8},
		{rtt: 150 * ms, link: simnet.Config{Loss: 0.5}, client: 64, server: 256, delivered: 0.45, least: 0.8},
		{rtt: 150 * ms, link: simnet.Config{Loss: 0.5, Burst: 10, Jitter: 30 * ms, Duplicate: 0.5}, client: 256, server: 64, late: true, delivered: 0.42, least: 0.35},
		{rtt: 300 * ms, link: simnet.Config{Loss: 0.3, Jitter: 40 * ms}, client: 64, server: 64, ackHz: 60, delivered: 0.4, least: 0.7},
		// Jitter of many frames: some datagrams arrive after 64 newer ones.
		{rtt: 20 * ms, link: simnet.Config{Jitter: 400 * ms}, client: 256, server: 256, late: true, delivered: 0.9, least: 0.7},
		// Rings below the round trip: no delta, but never silence.
		{rtt: 20 * ms, client: 2, server: 64, delivered: 1, intra: true},
		{rtt: 20 * ms, client: 64, server: 2, delivered: 1, intra: true},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.1}, client: 2, server: 2, late: true, delivered: 0.85, intra: true},
		{rtt: 200 * ms, link: simnet.Config{Loss: 0.1}, client: 12, server: 256, delivered: 0.85, intra: true},
		{rtt: 200 * ms, link: simnet.Config{Jitter: 20 * ms}, client: 256, server: 12, delivered: 0.7, intra: true},
		// Rings on the edge, where lost acks make the difference.
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.2}, client: 12, server: 12, delivered: 0.75, least: 0.5},
	} {
		name := fmt.Sprintf("rtt=%v/loss=%v/burst=%v/jitter=%v/duplicate=%v/rings=%d,%d/late=%v",
			c.rtt, c.link.Loss, c.link.Burst, c.link.Jitter, c.link.Duplicate, c.client, c.server, c.late)
		for _, redundancy := range []int{rpcdelta.RedundancyOff, rpcdelta.RedundancyAuto} {
			if n++; n%thin(5) != 0 {
				continue
			}
			bubble(t, fmt.Sprintf("%s/redundancy=%d", name, redundancy), func(t *testing.T) {
				frames := 2 * 60 * 60
				if testing.Short() {
					frames /= 4
				}
				network := linkedBy(t, c.rtt, c.link)
				journal := uplinktest.NewJournal(t, 1)
				srv := uplinktest.Serve(t, network, ds.Config{Ring: c.server, AckHz: c.ackHz, DeliverLate: c.late}, handles("Move", journal.Handle))
				conn := uplinktest.Dial(t, network, client.Config{Ring: c.client, Redundancy: redundancy})
				move := uplinktest.Bind(t, conn, "Move")
				play(t, move, 1, 0, frames, 60)
				time.Sleep(3 * time.Second)

				log, sent := journal.Only(), move.Stats()
				got := checkStats(t, srv, &log, &sent, c.late)
				if off := redundancy == rpcdelta.RedundancyOff; off && (got.Messages != got.Frames() || got.Delta > sent.Delta || got.Keyframe+got.Reset > sent.Keyframe+sent.Reset) {
					t.Errorf("server counts %+v, the client %+v", got, sent)
				}
				if sent.Frames() != uint64(frames) {
					t.Errorf("%d frames counted as sent, want %d", sent.Frames(), frames)
				}
				delivered, deltas := float64(log.Frames())/float64(frames), float64(sent.Delta)/float64(frames)
				t.Logf("delivered %.3f, deltas %.3f, late %d, missed %d, drops %v", delivered, deltas, log.Late, log.Missed, got.Drops)
				if delivered < c.delivered {
					t.Errorf("%.3f of the frames were delivered, want at least %v", delivered, c.delivered)
				}
				if deltas < c.least || c.intra && deltas > 0.01 {
					t.Errorf("%.3f of the frames are deltas", deltas)
				}
			})
		}
	}
}

// checkStats compares the server's counts of its only RPC with what was delivered and sent.
func checkStats(t *testing.T, srv *uplinktest.Server, log *uplinktest.Log, sent *client.RPCStats, late bool) ds.RPCStats {
	t.Helper()
	if log.Frames()+log.Missed != log.Next {
		t.Errorf("%d frames delivered and %d missed of %d", log.Frames(), log.Missed, log.Next)
	}
	got := srv.Stats().RPCs[0]
	if got.Frames() != log.Frames() || got.Missed != log.Missed || got.LateFrames != log.Late || got.Messages > log.Frames() {
		t.Errorf("server counts %+v, but %d frames were delivered, %d missed, %d late", got, log.Frames(), log.Missed, log.Late)
	}
	if !late && got.LateFrames != 0 {
		t.Errorf("%d frames were delivered late", got.LateFrames)
	}
	for d, n := range got.Drops {
		if d := ds.Drop(d); n != 0 && d != ds.Late && d != ds.Duplicate {
			t.Errorf("%d payloads dropped as %v", n, d)
		}
	}
	if got.Frames() > sent.Frames() || got.Bytes > sent.Bytes || got.FullBits > sent.FullBits || got.PayloadBits > sent.PayloadBits || got.HeaderBits > sent.HeaderBits {
		t.Errorf("server counts %+v, more than the client's %+v", got.Stats, sent.Stats)
	}
	return got
}

// TestRedundant verifies Frame.Redundant. Without loss no frame is redundant, although each is sent
// four times. With loss, each payload has one frame that is not.
func TestRedundant(t *testing.T) {
	for _, poll := range []bool{false, true} {
		for _, loss := range []float64{0, 0.3} {
			bubble(t, fmt.Sprintf("poll=%v, loss %v", poll, loss), func(t *testing.T) {
				network := linkedBy(t, 40*ms, simnet.Config{Loss: loss, Seed: 7})
				var own, older, last uint64
				srv := uplinktest.Serve(t, network, ds.Config{Poll: poll}, handles("Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
					if own+older > 0 && f.Seq != last+1+f.Missed {
						t.Errorf("frame %d after %d", f.Seq, last)
					}
					last = f.Seq
					if f.Redundant {
						older++
					} else {
						own++
					}
				}))
				move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{Redundancy: 3}), "Move")
				for i := range uint64(1000) {
					m := uplinktest.MoveAt(1, i)
					uplinktest.Must(t, move.Send(&m))
					settle(time.Second / 60)
					srv.Poll()
				}
				settle(time.Second)
				srv.Poll()
				st := srv.Stats().RPCs[0]
				if own != st.Messages || own+older != st.Frames() || (older > 0) != (loss > 0) {
					t.Errorf("%d frames of their own payloads, %d with newer ones; %d payloads, %d frames", own, older, st.Messages, st.Frames())
				}
			})
		}
	}
}

// TestSequenceWraps sends more frames than there are sequence numbers on the wire.
func TestSequenceWraps(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(80*ms, simnet.Config{Loss: 0.1, Burst: 3, Jitter: 5 * ms, Duplicate: 0.05, Seed: 2})
		network := uplinktest.NewNetwork(t, up, down)
		journal := uplinktest.NewJournal(t, 2)
		srv := uplinktest.Serve(t, network, ds.Config{DeliverLate: true}, handles("Move", journal.Handle))
		conn := uplinktest.Dial(t, network, client.Config{})
		move := uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: 120})
		const frames = 67_000
		play(t, move, 2, 0, frames, 120)
		time.Sleep(time.Second)
		log, sent := journal.Only(), move.Stats()
		checkStats(t, srv, &log, &sent, true)
		if log.Next < frames-20 || log.Frames() < frames*85/100 || sent.Delta < frames*80/100 {
			t.Errorf("%d frames delivered up to %d, %d deltas sent", log.Frames(), log.Next, sent.Delta)
		}
	})
}

// TestLongOutage interrupts the link until the newest frame of the server is more than half the
// range of the short header old.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(80*ms, simnet.Config{Seed: 3})
		network := uplinktest.NewNetwork(t, up, down)
		journal := uplinktest.NewJournal(t, 3)
		srv := uplinktest.Serve(t, network, ds.Config{}, handles("Move", journal.Handle))
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		first := uint64(0)
		for range 5 {
			uplinktest.Must(t, network.Set(up, down))
			play(t, move, 3, first, 300, 60)
			dead := simnet.Config{Delay: up.Delay, Loss: 1}
			uplinktest.Must(t, network.Set(dead, dead))
			play(t, move, 3, first+300, 500, 60) // 8 s, less than the timeout
			first += 800
		}
		uplinktest.Must(t, network.Set(up, down))
		play(t, move, 3, first, 300, 60)
		time.Sleep(time.Second)
		log, sent := journal.Only(), move.Stats()
		checkStats(t, srv, &log, &sent, false)
		if log.Next != first+300 || log.Frames() < 6*290 || sent.Reconnecting != 0 {
			t.Errorf("%d frames delivered up to %d, want 1800 up to %d; %d times reconnecting", log.Frames(), log.Next, first+300, sent.Reconnecting)
		}
	})
}

// TestRandomLinks plays over random links, rings and rates.
func TestRandomLinks(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		bubble(t, fmt.Sprintf("seed=%d", seed), func(t *testing.T) { playRandomLink(t, seed) })
	}
}

func playRandomLink(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	network := uplinktest.NewNetwork(t, simnet.Config{Seed: rng.Uint64()}, simnet.Config{Seed: rng.Uint64()})
	server := ds.Config{Timeout: time.Minute, Ring: 2 + rng.IntN(255), AckHz: 1 + 99*rng.Float64(), DeliverLate: rng.IntN(2) == 0}
	ring, hz := 2+rng.IntN(255), time.Duration(10+rng.IntN(120))
	t.Logf("rings %d and %d, %.1f acks and %d frames a second, late %v", ring, server.Ring, server.AckHz, hz, server.DeliverLate)
	journal := uplinktest.NewJournal(t, seed)
	srv := uplinktest.Serve(t, network, server, handles("Move", journal.Handle))
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

func TestMain(m *testing.M) { uplinktest.Main(m) }
