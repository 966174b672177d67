package bots

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// table is a server's side of a run: when the calls of each player came.
type table struct {
	mu    sync.Mutex
	calls map[uint64][]time.Time
	heard func(*ds.Player) // called at each
}

func (b *table) frame(p *ds.Player, f ds.Frame[*schema.Frame]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[p.ID()] = append(b.calls[p.ID()], f.Received)
	if b.heard != nil {
		b.heard(p)
	}
}

func traces() []*trace.Trace { return []*trace.Trace{sample.Portal2()} }

// inBubble runs a test in virtual time, with a network that has a delay.
func inBubble(t *testing.T, delay time.Duration, test func(t *testing.T, network *uplinktest.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, uplinktest.NewNetwork(t, simnet.Config{Delay: delay}, simnet.Config{Delay: delay}))
	})
}

func serve(t *testing.T, n transport.Network, cfg ds.Config) (*table, *uplinktest.Server) {
	t.Helper()
	b := &table{calls: map[uint64][]time.Time{}}
	srv := uplinktest.Serve(t, n, cfg, func(s *ds.Server) error { return ds.HandleSchema(s, sample.Portal2().Schema, b.frame) })
	return b, srv
}

func options(n transport.Network, players int) Options {
	return Options{
		To: uplinktest.Addr, Players: players, Rate: 60, Ramp: time.Second, For: 5 * time.Second, Wait: 3 * time.Second,
		Codec: rpcdelta.Adaptive, Link: simlink.Config{Burst: 1, Seed: 1}, Network: n,
	}
}

func ignore(Progress) {}

// TestRun checks over a perfect link that calls are on time and spread over the period.
func TestRun(t *testing.T) {
	inBubble(t, 10*ms, func(t *testing.T, network *uplinktest.Network) {
		const players = 9
		server, _ := serve(t, network, ds.Config{})
		seconds := 0
		report, err := Run(t.Context(), traces(), options(network, players), func(p Progress) {
			if seconds++; seconds >= 3 && (p.Connected != players || math.Abs(p.PerSecond-60*players) > players) {
				t.Errorf("%+v", p)
			}
		})
		uplinktest.Must(t, err)
		f := report.Frames
		if want := 5. * 60 * players; report.Players.Connected != players || math.Abs(float64(f.Sent)-want) > players || seconds < 5 {
			t.Errorf("%+v, %+v, want %v frames", report.Players, f, want)
		}
		if f.Missed != 0 || f.Skipped != 0 || f.Delivered < f.Sent || report.Lateness.Max > 0.001 || report.Lateness.Count != f.Sent {
			t.Errorf("%+v, lateness %+v", f, report.Lateness)
		}
		if rtt := report.RTT; rtt.Count < 4*players || rtt.P50 < 19 || rtt.Max > 23 {
			t.Errorf("round trips %+v, want 20 ms", rtt)
		}
		if b := report.Bits; b.Full < 150 || b.Payload > 80 || b.Up < b.Payload+31*8 || b.Down < 8 {
			t.Errorf("%+v", b)
		}
		checkPace(t, server)
	})
}

// checkPace checks that nothing drifts, and that the players are spread over the period.
func checkPace(t *testing.T, server *table) {
	t.Helper()
	period := float64(time.Second) / 60
	var phases []float64
	for id, at := range server.calls {
		for k := range at {
			if off := float64(at[k].Sub(at[0])) - float64(k)*period; math.Abs(off) > 10 {
				t.Fatalf("player %d: call %d is %v ns off", id, k, off)
			}
		}
		phases = append(phases, math.Mod(float64(at[0].UnixNano()), period))
	}
	for i, a := range phases {
		for _, b := range phases[:i] {
			if d := math.Abs(a - b); min(d, period-d) < period/float64(3*len(phases)) {
				t.Errorf("two players call %.2f ms apart", min(d, period-d)/1e6)
			}
		}
	}
}

// TestLoss plays over links that lose datagrams, in both ways that there are.
func TestLoss(t *testing.T) {
	for _, rtt := range []time.Duration{0, 40 * ms} {
		inBubble(t, 0, func(t *testing.T, network *uplinktest.Network) {
			serve(t, network, ds.Config{})
			o := options(network, 8)
			o.Link = simlink.Config{RTT: rtt, Loss: 0.1, Burst: 1, Seed: 3}
			o.Redundancy = rpcdelta.RedundancyOff
			report, err := Run(t.Context(), traces(), o, ignore)
			uplinktest.Must(t, err)
			f, d := report.Frames, report.Datagrams
			lost := float64(f.Missed) / float64(f.Delivered+f.Missed)
			if lost < 0.07 || lost > 0.13 || d.LostUp < f.Missed-8 || d.LostDown == 0 {
				t.Errorf("round trip %v: %+v, %+v, want a tenth lost", rtt, f, d)
			}
			if want := float64(rtt.Milliseconds()); report.RTT.P50 < want-1 || report.RTT.P50 > want+3 {
				t.Errorf("round trips %+v, want %v", report.RTT, rtt)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	inBubble(t, 5*ms, func(t *testing.T, network *uplinktest.Network) {
		_, srv := serve(t, network, ds.Config{})
		o := options(network, 5)
		o.For = 20 * time.Second
		var again *table
		seconds := 0
		report, err := Run(t.Context(), traces(), o, func(Progress) {
			switch seconds++; seconds {
			case 5:
				network.Crash(t, uplinktest.Addr)
				<-srv.Served
			case 6:
				again, _ = serve(t, network, ds.Config{})
			}
		})
		uplinktest.Must(t, err)
		p, f := report.Players, report.Frames
		if p.Connected != 5 || p.Reconnections != 5 || f.Reconnecting == 0 || f.Sent+f.Reconnecting < 20*60*5-5 || len(again.calls) != 5 {
			t.Errorf("%+v, %+v, %d players after the restart", p, f, len(again.calls))
		}
	})
}

func TestThrownOut(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, network *uplinktest.Network) {
		server, _ := serve(t, network, ds.Config{})
		var once sync.Once
		server.heard = func(p *ds.Player) {
			if len(server.calls[p.ID()]) == 100 {
				once.Do(func() { p.Kick("cheated") })
			}
		}
		report, err := Run(t.Context(), traces(), options(network, 2), ignore)
		if err == nil || !errors.Is(err, client.ErrKicked) || !strings.Contains(err.Error(), "threw 1 of 2 players out") {
			t.Errorf("%v", err)
		}
		if p := report.Players; p.Ended != 1 || p.Connected != 1 || p.Reconnecting != 0 {
			t.Errorf("%+v", p)
		}
	})
}

func TestFull(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, network *uplinktest.Network) {
		serve(t, network, ds.Config{MaxPlayers: 3})
		report, err := Run(t.Context(), traces(), options(network, 5), ignore)
		if !errors.Is(err, transport.ErrServerFull) || !strings.HasPrefix(err.Error(), "2 of 5 players could not connect: ") {
			t.Errorf("%v", err)
		}
		if p := report.Players; p.Connected != 3 || p.Failed != 2 {
			t.Errorf("%+v", p)
		}
	})
}

// TestInterrupted ends a run while bots join, and while they play: there is a report of both.
func TestInterrupted(t *testing.T) {
	for _, after := range []time.Duration{2500 * ms, 12500 * ms} {
		inBubble(t, 0, func(t *testing.T, network *uplinktest.Network) {
			serve(t, network, ds.Config{})
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			o := options(network, 10)
			o.Ramp, o.For = 10*time.Second, 0
			report, err := Run(ctx, traces(), o, ignore)
			uplinktest.Must(t, err)
			if joined := min(int(after/time.Second)+1, 10); report.Players.Connected != joined || report.Players.Failed != 0 || report.Frames.Sent == 0 || report.Seconds > 3.6 {
				t.Errorf("after %v: %+v", after, report)
			}
		})
	}
}

func TestIdle(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, network *uplinktest.Network) {
		calls, _ := serve(t, network, ds.Config{})
		o := options(network, 5)
		o.Rate = 0
		report, err := Run(t.Context(), traces(), o, ignore)
		if err != nil || report.Players.Connected != 5 || len(calls.calls) != 0 {
			t.Errorf("%v, %+v, calls of %d", err, report.Players, len(calls.calls))
		}
		if report.Bits != (FrameBits{}) || report.CPU.Micros != 0 || report.Datagrams.Sent < 5*5 {
			t.Errorf("%+v", report)
		}
	})
}

// TestMoving moves bots with tokens of their own to other sockets, across a restart of the server.
func TestMoving(t *testing.T) {
	inBubble(t, 10*ms, func(t *testing.T, network *uplinktest.Network) {
		key, err := token.NewKey()
		uplinktest.Must(t, err)
		clients := map[uint64]int{}
		var moves uint64
		cfg := ds.Config{
			Key:    key,
			Joined: func(p *ds.Player) { clients[p.ClientID()]++ },
			Left:   func(p *ds.Player, _ error) { moves += p.Stats().Transport.PathMigrations },
		}
		_, srv := serve(t, network, cfg)
		o := options(network, 4)
		o.Issuer, o.RebindEvery, o.For = key.Issuer(), 2*time.Second, 20*time.Second
		seconds := 0
		report, err := Run(t.Context(), traces(), o, func(Progress) {
			if seconds++; seconds == 10 {
				uplinktest.Must(t, srv.Close())
				<-srv.Served
				_, srv = serve(t, network, cfg)
			}
		})
		uplinktest.Must(t, err)
		uplinktest.Must(t, srv.Close())
		p := report.Players
		if p.Rebinds < 36 || p.Rebinds > 44 || p.Reconnections != 4 || p.Connected != 4 || moves < p.Rebinds*8/10 {
			t.Errorf("%+v, and %d moves", p, moves)
		}
		if len(clients) != 4 {
			t.Errorf("client ids and their connections: %v", clients)
		}
	})
}
