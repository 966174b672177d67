package ds_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// linked is a client of some RPCs, and its link.
type linked struct {
	server ds.Config
	client client.Config
	bind   client.BindConfig
	rpcs   int
	rtt    time.Duration
	link   simnet.Config
	before func(network *uplinktest.Network, n uint64) // is called before call n, unless it is nil
	world  bool                                        // with every second call, the server sends a snapshot
}

// played is the outcome of a session, by RPC.
type played struct {
	conn *client.Conn
	sent []client.RPCStats
	got  []ds.RPCStats
	logs []uplinktest.Log
}

// play calls each RPC at its rate, one after the other. It verifies that both ends count what
// arrives, and that nothing is dropped except late and duplicate payloads: no rate limit affects an
// honest client.
func (c linked) play(t *testing.T, frames uint64) (p played) {
	t.Helper()
	network := linkedBy(t, c.rtt, c.link)
	redundant := make([]uint64, c.rpcs)
	var journals []*uplinktest.Journal
	var setups []setup
	for i := range c.rpcs {
		journals = append(journals, uplinktest.NewJournal(t, uint64(i)))
		setups = append(setups, handles(fmt.Sprintf("Move%02d", i), func(p *ds.Player, f frame) {
			journals[i].Handle(p, f)
			if f.Redundant {
				redundant[i]++
			}
		}))
	}
	var w *ds.World[mover]
	joined := make(chan *ds.Player, 1)
	if c.world {
		c.server.Joined = func(p *ds.Player) { joined <- p }
		setups = append(setups, func(s *ds.Server) (err error) {
			w, err = ds.NewWorld(s, "movers", ds.WorldConfig[mover]{})
			return err
		})
	}
	srv := serve(t, network, c.server, setups...)
	c.client.Transport.BindTimeout, c.client.Transport.Timeout = time.Minute, time.Minute
	p.conn = uplinktest.Dial(t, network, c.client)
	var moves []stream
	for i := range c.rpcs {
		moves = append(moves, uplinktest.Bind(t, p.conn, fmt.Sprintf("Move%02d", i), c.bind))
	}
	if c.world {
		srv.Poll()
		_, err := w.Offer(<-joined)
		uplinktest.Must(t, err)
		_, err = client.SubscribeSnapshots(t.Context(), p.conn, "movers", client.SnapshotConfig[mover]{Handle: func(*client.Snapshot[mover]) {}})
		uplinktest.Must(t, err)
	}
	hz := cmp.Or(c.bind.RateHz, 60)
	for n := range frames {
		if c.world && n%2 == 0 {
			uplinktest.Must(t, w.Begin(n))
			w.Commit()
			_, err := w.Send()
			uplinktest.Must(t, err)
		}
		if c.before != nil {
			c.before(network, n)
		}
		for i, move := range moves {
			send(t, move, uint64(i), n)
		}
		if c.client.Tuning.FlushOnly {
			uplinktest.Must(t, p.conn.Flush())
		}
		settle(time.Duration(float64(time.Second) / hz))
		srv.Poll()
	}
	settle(3 * time.Second)
	uplinktest.Must(t, p.conn.Flush()) // held frames
	settle(time.Second)
	srv.Poll()
	st, clean := srv.Stats(), c.link == simnet.Config{} && c.before == nil
	p.got = st.RPCs
	for i, move := range moves {
		p.sent, p.logs = append(p.sent, move.Stats()), append(p.logs, journals[i].Only())
		c.check(t, clean, &p.got[i], &p.sent[i], &p.logs[i], redundant[i], frames)
	}
	ends := p.conn.Stats()
	if st.Drops != ([len(st.Drops)]uint64{}) || ends.Malformed != 0 || clean && ends.Acks.Bytes != st.Acks.Bytes {
		t.Errorf("drops %v, at the client %d malformed, %d bytes of %+v", st.Drops, ends.Malformed, ends.Acks.Bytes, st.Acks)
	}
	return p
}

// check compares the counts of both ends of an RPC with the delivered frames.
func (c *linked) check(t *testing.T, clean bool, got *ds.RPCStats, sent *client.RPCStats, l *uplinktest.Log, redundant, frames uint64) {
	t.Helper()
	if l.Frames()+l.Missed != l.Next || sent.Frames() != frames || sent.Reconnecting != 0 {
		t.Errorf("%d frames sent, %d delivered, %d missed up to %d", sent.Frames(), l.Frames(), l.Missed, l.Next)
	}
	if got.Frames() != l.Frames() || got.Missed != l.Missed || !c.client.Preset.Repair && got.LateFrames != l.Late || !c.server.Tuning.DeliverLate && l.Late != 0 {
		t.Errorf("server counts %+v, but %d frames were delivered, %d missed, %d late", got, l.Frames(), l.Missed, l.Late)
	}
	if own := l.Frames() - redundant; redundant != got.Recovered || !c.server.Tuning.DeliverLate && !c.client.Preset.Repair && own < got.Messages {
		t.Errorf("%d of %d frames redundant, counted %d, of %d payloads", redundant, l.Frames(), got.Recovered, got.Messages)
	}
	for d, n := range got.Drops {
		if d := ds.Drop(d); n != 0 && d != ds.Late && d != ds.Duplicate {
			t.Errorf("%d payloads dropped as %v", n, d)
		}
	}
	tag := uint64(transport.AES128GCM.Overhead())
	if got.AEADBytes != tag*(got.Messages-got.Coalesced) || sent.AEADBytes != tag*(sent.Messages-sent.Coalesced) {
		t.Errorf("AEAD overhead of %d and %d bytes, counted %+v of %+v", got.AEADBytes, sent.AEADBytes, got, sent)
	}
	less, equal := true, true
	for _, n := range [][2]uint64{
		{got.Frames(), sent.Frames()},
		{got.Messages, sent.Messages},
		{got.Bytes, sent.Bytes},
		{got.Coalesced, sent.Coalesced},
		{got.CoalescedBytes, sent.CoalescedBytes},
		{got.FullBits, sent.FullBits},
		{got.PayloadBits, sent.PayloadBits},
		{got.HeaderBits, sent.HeaderBits},
	} {
		less, equal = less && n[0] <= n[1], equal && n[0] == n[1]
	}
	if !less || clean && !equal {
		t.Errorf("server counts %+v of %+v", got, sent)
	}
}

// TestLinks plays a virtual minute over links with loss, delay, jitter and duplicates in both
// directions, with rings of all sizes at both ends.
func TestLinks(t *testing.T) {
	n := 0
	for _, c := range []struct {
		rtt            time.Duration
		link           simnet.Config
		client, server int // rings
		ackHz          float64
		late           bool
		rpcs           int
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
		// More RPCs than short headers can number.
		{rtt: 60 * ms, link: simnet.Config{Loss: 0.1, Jitter: 3 * ms}, client: 64, server: 64, rpcs: 12, delivered: 0.75, least: 0.9},
		{rtt: 50 * ms, link: simnet.Config{Loss: 0.2, Burst: 5, Duplicate: 0.2}, client: 64, server: 32, delivered: 0.75, least: 0.8},
		{rtt: 150 * ms, link: simnet.Config{Loss: 0.5}, client: 64, server: 256, delivered: 0.45, least: 0.8},
		{rtt: 150 * ms, link: simnet.Config{Loss: 0.5, Burst: 10, Jitter: 30 * ms, Duplicate: 0.5}, client: 256, server: 64, late: true, delivered: 0.42, least: 0.35},
		{rtt: 300 * ms, link: simnet.Config{Loss: 0.3, Jitter: 40 * ms}, client: 64, server: 64, ackHz: 60, delivered: 0.4, least: 0.7},
		// Jitter of many frames: some datagrams arrive after 64 newer ones.
		{rtt: 20 * ms, link: simnet.Config{Jitter: 400 * ms}, client: 256, server: 256, late: true, delivered: 0.5, least: 0.7},
		// Rings below the round trip: no delta, but never silence.
		{rtt: 20 * ms, client: 2, server: 64, delivered: 1, intra: true},
		{rtt: 20 * ms, client: 64, server: 2, delivered: 1, intra: true},
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.1}, client: 2, server: 2, late: true, delivered: 0.85, intra: true},
		{rtt: 200 * ms, link: simnet.Config{Jitter: 20 * ms}, client: 256, server: 12, delivered: 0.7, intra: true},
		// Rings on the edge, where lost acks make the difference.
		{rtt: 100 * ms, link: simnet.Config{Loss: 0.2}, client: 12, server: 12, delivered: 0.75, least: 0.5},
	} {
		for _, redundancy := range []int{rpcdelta.RedundancyOff, rpcdelta.RedundancyAuto, 3} {
			if n++; n%thin(5) != 0 {
				continue
			}
			bubble(t, fmt.Sprintf("%+v/redundancy=%d", c, redundancy), func(t *testing.T) {
				rpcs := max(c.rpcs, 1)
				frames := uint64(3600 / thin(2) / rpcs)
				p := linked{
					server: ds.Config{Tuning: ds.Tuning{Ring: c.server, AckHz: c.ackHz, DeliverLate: c.late}, Poll: n%2 == 0},
					client: client.Config{Tuning: client.Tuning{Ring: c.client, Redundancy: redundancy}}, rpcs: rpcs, rtt: c.rtt, link: c.link,
				}.play(t, frames)
				for i := range rpcs {
					delivered, deltas := float64(p.logs[i].Frames())/float64(frames), float64(p.sent[i].Delta)/float64(frames)
					if delivered < c.delivered || deltas < c.least || c.intra && deltas > 0.01 {
						t.Errorf("%.3f of the frames were delivered, %.3f are deltas", delivered, deltas)
					}
				}
			})
		}
	}
}

// TestRepeatedPayloads verifies that frames of repeated payloads are delivered in sequence, that
// more frames arrive than without them, and that nothing waits for a payload that cannot arrive in
// time.
func TestRepeatedPayloads(t *testing.T) {
	measures(t)
	for _, poll := range []bool{false, true} {
		for _, rtt := range []time.Duration{40 * ms, 100 * ms, 400 * ms} {
			bubble(t, fmt.Sprintf("poll=%v/rtt=%v", poll, rtt), func(t *testing.T) {
				const frames = 7200
				preset := client.LowBandwidth
				preset.Suite = transport.AES128GCM
				p := linked{
					server: ds.Config{Poll: poll}, world: true,
					client: client.Config{Preset: preset}, rpcs: 1, rtt: rtt, link: simnet.Config{Loss: 0.1},
				}.play(t, frames)
				st := &p.sent[0]
				if delivered := float64(p.logs[0].Frames()) / frames; delivered < 0.994 {
					t.Errorf("%.4f of the frames were delivered; %+v, %+v", delivered, p.got[0].Drops, st)
				}
				if feasible := rtt < 200*ms; feasible != (st.Repeated > frames/200) || feasible != (p.got[0].LateFrames > frames/200) {
					t.Errorf("%d payloads were repeated, %d frames were late", st.Repeated, p.got[0].LateFrames)
				}
			})
		}
	}
}

// TestRepeatedWithoutWorld verifies that frames arrive at rates and round trips at which client and
// server may judge differently whether a payload can be repeated in time.
func TestRepeatedWithoutWorld(t *testing.T) {
	measures(t)
	for _, hz := range []float64{30, 60} {
		for rtt := 20 * ms; rtt <= 140*ms; rtt += 30 * ms {
			for _, ackHz := range []float64{10, 30} {
				bubble(t, fmt.Sprintf("%v Hz/rtt=%v/acks=%v", hz, rtt, ackHz), func(t *testing.T) {
					const frames = 3600
					p := linked{
						server: ds.Config{Tuning: ds.Tuning{AckHz: ackHz}}, client: client.Config{Preset: client.Balanced},
						bind: client.BindConfig{RateHz: hz}, rpcs: 1, rtt: rtt, link: simnet.Config{Loss: 0.05},
					}.play(t, frames)
					if delivered := float64(p.logs[0].Frames()) / frames; delivered < 0.994 {
						t.Errorf("%.4f of the frames were delivered; %d payloads repeated, drops %v", delivered, p.sent[0].Repeated, p.got[0].Drops)
					}
				})
			}
		}
	}
}

// TestRandomLinks plays over links that change, or are perfect, with random rings, rates and ways
// to send.
func TestRandomLinks(t *testing.T) {
	for seed := range uint64(100 / thin(25)) {
		bubble(t, fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			coin := func() bool { return rng.IntN(2) == 0 }
			link := func() simnet.Config {
				c := simnet.Config{Delay: time.Duration(rng.IntN(150)) * ms}
				if rng.IntN(4) != 0 {
					c.Loss, c.Burst = rng.Float64()/2, float64(rng.IntN(10))
				}
				if coin() {
					c.Jitter = time.Duration(rng.IntN(60)) * ms
				}
				if coin() {
					c.Duplicate = rng.Float64()
				}
				return c
			}
			c := linked{
				server: ds.Config{
					Transport: ds.Transport{Timeout: time.Minute}, Tuning: ds.Tuning{Ring: 2 + rng.IntN(255), AckHz: 1 + 99*rng.Float64(), DeliverLate: coin()}, Poll: coin(),
				},
				client: client.Config{
					Tuning: client.Tuning{Ring: 2 + rng.IntN(255), Codec: rpcdelta.Adaptive, FlushOnly: coin(), Redundancy: []int{rpcdelta.RedundancyOff, rpcdelta.RedundancyAuto, 3, rpcdelta.MaxRedundancy}[rng.IntN(4)]}, Bandwidth: rng.IntN(2) * rng.IntN(50_000),
				},
				bind: client.BindConfig{RateHz: float64(10 + rng.IntN(120))},
				rpcs: 1 + rng.IntN(3),
				before: func(network *uplinktest.Network, n uint64) {
					if n%700 == 0 {
						uplinktest.Must(t, network.Set(link(), link()))
						time.Sleep(time.Duration(rng.IntN(5000)) * ms)
					}
				},
			}
			c.bind.Delay = uplinktest.Wait(rng.IntN(4), c.bind.RateHz)
			if seed%4 == 0 {
				c.before = nil
			}
			if !c.client.Tuning.FlushOnly {
				c.client.Tick = time.Duration(rng.IntN(3)*20) * ms
			}
			t.Logf("%+v", c)
			const frames = 1400
			p := c.play(t, frames)
			for i, l := range p.logs {
				if l.Frames() < frames/10 || c.before == nil && l.Frames() != frames {
					t.Errorf("RPC %d: %d frames were delivered of %d", i, l.Frames(), frames)
				}
			}
		})
	}
}

// TestRecovered verifies that only frames whose first datagram is missing count as recovered, and
// only copies as redundant, however many frames wait for later ones.
func TestRecovered(t *testing.T) {
	lossy := simnet.Config{Loss: 0.1, Burst: 1, Seed: 17}
	for name, c := range map[string]struct {
		link       simnet.Config
		preset     client.Preset
		redundancy int
		recovers   bool
	}{
		"without batching":             {link: lossy, preset: client.LowLatency, redundancy: 2, recovers: true},
		"with batching":                {link: lossy, preset: client.Balanced, redundancy: 2, recovers: true},
		"with repair":                  {link: lossy, preset: client.LowBandwidth, redundancy: rpcdelta.RedundancyAuto, recovers: true},
		"batching, without redundancy": {link: lossy, preset: client.Balanced, redundancy: rpcdelta.RedundancyOff},
		"congestion":                   {link: simnet.Config{Loss: 0.5, Burst: 1, Seed: 18}, preset: client.LowLatency, redundancy: rpcdelta.RedundancyOff},
		"batching, without loss":       {preset: client.Balanced, redundancy: rpcdelta.RedundancyAuto},
		"redundancy without loss":      {preset: client.Balanced, redundancy: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := linked{rpcs: 1, rtt: 40 * time.Millisecond, link: c.link}
				x.client.Preset, x.client.Tuning.Redundancy = c.preset, c.redundancy
				p := x.play(t, 3000)
				got, sent := &p.got[0], &p.sent[0]
				later := got.Frames() - got.Messages // at most: each payload has a frame that none had before
				t.Logf("seed %d: %d frames, %d payloads of %d, %d recovered, %d of %d redundant", c.link.Seed, got.Frames(), got.Messages, sent.Messages, got.Recovered, got.Redundant, sent.Redundant)
				// A lost heartbeat seems to be repaired if frames wait because of congestion
				// only.
				switch lost := sent.Messages - got.Messages; {
				case !c.recovers && got.Recovered > lost/100, !c.preset.Repair && got.Recovered > later:
					t.Errorf("%d recovered, at most %d", got.Recovered, later)
				case c.recovers && got.Recovered < lost*8/10:
					t.Errorf("%d recovered, but %d payloads were lost", got.Recovered, lost)
				}
				if got.Redundant > sent.Redundant+got.Recovered || c.link.Loss == 0 && got.Redundant != sent.Redundant {
					t.Errorf("%d redundant frames received, %d sent", got.Redundant, sent.Redundant)
				}
			})
		})
	}
}
