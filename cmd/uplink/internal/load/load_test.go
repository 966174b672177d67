package load

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
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
			o.For = 15 * time.Second // the loss of a datagram shows after 64 others
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
		if err == nil || !errors.Is(err, transport.ErrKicked) || !strings.Contains(err.Error(), "threw 1 of 2 players out") {
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

// TestNobodyThere: one bot finds that out for all.
func TestNobodyThere(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, network *uplinktest.Network) {
		begin := time.Now()
		report, err := Run(t.Context(), traces(), options(network, 100), ignore)
		if report != nil || !errors.Is(err, ErrSilence) || !strings.Contains(err.Error(), "no answer from the server: waited 3s") ||
			time.Since(begin) > 4*time.Second {
			t.Errorf("%v, %v after %v", report, err, time.Since(begin))
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

// TestMoving moves bots with tokens of their own to other sockets, while the server crashes and is
// restarted three seconds later.
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
		var again *table
		o := options(network, 4)
		o.Issuer, o.RebindEvery, o.For = key.Issuer(), 2*time.Second, 20*time.Second
		seconds := 0
		report, err := Run(t.Context(), traces(), o, func(Progress) {
			switch seconds++; seconds {
			case 10:
				network.Crash(t, uplinktest.Addr)
				<-srv.Served
			case 13:
				again, srv = serve(t, network, cfg)
			}
		})
		uplinktest.Must(t, err)
		uplinktest.Must(t, srv.Close())
		p := report.Players
		if p.Rebinds < 36 || p.Rebinds > 44 || p.Reconnections != 4 || p.Connected != 4 || moves < p.Rebinds*8/10 {
			t.Errorf("%+v, and %d moves", p, moves)
		}
		if f := report.Frames; f.Reconnecting == 0 || f.Sent+f.Reconnecting < 20*60*4-5 || len(again.calls) != 4 {
			t.Errorf("%+v, %d players after the restart", f, len(again.calls))
		}
		if len(clients) != 4 {
			t.Errorf("client ids and their connections: %v", clients)
		}
	})
}

// TestSpread: whenever a bot has joined, the widest gap is not much more than if all were even.
func TestSpread(t *testing.T) {
	var at []float64
	for i := range 500 {
		at = append(at, spread(i))
		sorted := slices.Sorted(slices.Values(at))
		widest := 1 - sorted[i] + sorted[0]
		for k := range i {
			widest = max(widest, sorted[k+1]-sorted[k])
		}
		if widest*float64(i+1) > 2.2 || sorted[0] < 0 || sorted[i] >= 1 {
			t.Fatalf("%d players leave a gap of %v", i+1, widest)
		}
	}
}

// TestSkip: a call that would be a whole period late is not made, but its lateness counts.
func TestSkip(t *testing.T) {
	now := time.Now()
	calls := 0
	p, b := newPacer(now, 10), &Bot{Turn: func() error { calls++; return nil }}
	if !p.call(b, now.Add(-100*time.Millisecond), 100*time.Millisecond) || p.skipped.Load() != 1 || p.late.Summary().Count != 1 || calls != 0 {
		t.Errorf("%d skipped", p.skipped.Load())
	}
	b.since = now
	if !p.call(b, now.Add(-time.Second), time.Second) || p.skipped.Load() != 1 || p.late.Summary().Count != 1 {
		t.Error("a call from before the bot joined counts")
	}
}

// TestAdmit: whoever joins, the ring stays in order of phases, and the next one stays the next.
func TestAdmit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		p := newPacer(now, 10)
		for range rapid.IntRange(1, 20).Draw(t, "joins") {
			var next *Bot
			if len(p.ring) > 0 {
				p.at = rapid.IntRange(0, len(p.ring)-1).Draw(t, "at")
				next = p.ring[p.at]
			}
			for range rapid.IntRange(1, 3).Draw(t, "bots") {
				p.add(&Bot{phase: time.Duration(rapid.IntRange(0, 9).Draw(t, "phase"))})
			}
			p.admit(now)
			if !slices.IsSortedFunc(p.ring, func(a, b *Bot) int { return int(a.phase - b.phase) }) {
				t.Fatal("not in order")
			}
			if next != nil && slices.Index(p.ring, next) < p.at {
				t.Fatal("somebody lost its turn")
			}
			for _, b := range p.ring[:p.at] {
				if next == nil || b.phase > next.phase {
					t.Fatal("somebody's turn is over before it came")
				}
			}
		}
	})
}

type loopback struct {
	transport.PacketConn
	waiting [][]byte
}

func (l *loopback) ListenPacket(string) (transport.PacketConn, error) { return &loopback{}, nil }

func (l *loopback) WriteTo(p []byte, _ netip.AddrPort) (int, error) {
	l.waiting = append(l.waiting, slices.Clone(p))
	return len(p), nil
}

func (l *loopback) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	if len(l.waiting) == 0 {
		return 0, netip.AddrPort{}, transport.ErrTimeout // any error
	}
	n := copy(p, l.waiting[0])
	l.waiting = l.waiting[1:]
	return n, netip.AddrPort{}, nil
}

func TestLossyNetwork(t *testing.T) {
	const sent = 10_000
	pass := func(n transport.Network) (got []int) {
		pc, err := n.ListenPacket("")
		uplinktest.Must(t, err)
		for i := range sent {
			if n, err := pc.WriteTo([]byte{byte(i >> 8), byte(i)}, netip.AddrPort{}); n != 2 || err != nil {
				t.Fatal(n, err)
			}
		}
		var buf [2]byte
		for {
			if _, _, err := pc.ReadFrom(buf[:]); err != nil {
				return got
			}
			got = append(got, int(buf[0])<<8|int(buf[1]))
		}
	}
	network := func(out, in float64) transport.Network {
		n, err := newLossyNetwork(&loopback{}, simnet.Config{Loss: out, Seed: 7}, simnet.Config{Loss: in, Seed: 8})
		uplinktest.Must(t, err)
		return n
	}
	for _, c := range []struct{ out, in, want float64 }{{0, 0, 1}, {0.3, 0, 0.7}, {0, 0.3, 0.7}, {0.5, 0.5, 0.25}, {1, 0, 0}, {0, 1, 0}} {
		got := pass(network(c.out, c.in))
		if share := float64(len(got)) / sent; share < c.want-0.02 || share > c.want+0.02 || !slices.IsSorted(got) {
			t.Errorf("losses %v and %v: %v came, want %v", c.out, c.in, share, c.want)
		}
	}
	n := network(0.5, 0)
	first, second := pass(n), pass(n)
	if slices.Equal(first, second) || !slices.Equal(first, pass(network(0.5, 0))) {
		t.Error("the seed does not decide what is lost, or all sockets lose the same")
	}
	if _, err := newLossyNetwork(nil, simnet.Config{Loss: 2}, simnet.Config{}); err == nil {
		t.Error("a loss of 2 is no error")
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		uplinktest.Must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func good() *Report {
	return &Report{
		Players: PlayerCounts{Asked: 500, Connected: 500},
		Rate:    60, Codec: "adaptive", Link: "none", Seconds: 30.02,
		Frames:    FrameCounts{Sent: 900_120, PerSecond: 29984, Delivered: 900_100, Missed: 0},
		Datagrams: DatagramCounts{Sent: 915_000, Received: 165_000},
		Bits:      FrameBits{Full: 198, Payload: 41.6, Up: 291.2, Down: 54.1, WireRatio: 0.602},
		RTT:       meter.Summary{Count: 15_000, P50: 1, P90: 1, P99: 2, P999: 3, Max: 7},
		Lateness:  meter.Summary{Count: 900_120, P50: 0.214, P90: 0.631, P99: 1.37, P999: 4.02, Max: 12.6},
		CPU:       CPUUse{Seconds: 11.7, Cores: 0.39, Micros: 13.02},
	}
}

// bad is a run in which all went wrong.
func bad() *Report {
	r := good()
	r.Link = "RTT 80ms, jitter 5ms, loss 5 % in bursts of 3"
	r.Players = PlayerCounts{Asked: 500, Connected: 489, Reconnecting: 3, Failed: 6, Ended: 2, Reconnections: 41}
	r.Frames = FrameCounts{Sent: 700_000, PerSecond: 23_318, Delivered: 690_000, Missed: 2_000, Reconnecting: 812, Skipped: 99_000}
	r.Datagrams = DatagramCounts{Sent: 800_000, Received: 150_000, SendFailed: 7, LostUp: 35_000, LostDown: 8_000}
	r.Lateness = meter.Summary{Count: 799_000, P50: 2.5, P90: 31, P99: 112, P999: 220, Max: 1031}
	r.RTT = meter.Summary{}
	return r
}

func TestReport(t *testing.T) {
	golden(t, "report.golden", good().String())
	golden(t, "trouble.golden", bad().String())
	for name, r := range map[string]*Report{"report.json.golden": good(), "trouble.json.golden": bad()} {
		b, err := json.MarshalIndent(r, "", "  ")
		uplinktest.Must(t, err)
		golden(t, name, string(b)+"\n")
	}
	if good().Starved() || !bad().Starved() {
		t.Error("the wrong one was starved")
	}
}

// TestProgress: the line of the largest run still fits a terminal.
func TestProgress(t *testing.T) {
	p := Progress{
		Elapsed: 125 * time.Second, Connected: 3000, Asked: 3000, PerSecond: 179_998, Delivered: 179_000, Missed: 20,
		Cores: 1.234, RTT: meter.Summary{P99: 2}, Lateness: meter.Summary{P99: 0.41},
	}
	const want = "125 s: 3000/3000 players, 179998/s, 99.99 % came, rtt 2, late 0.41 ms, cpu 1.23"
	if got := p.String(); got != want || len(got) > 79 {
		t.Errorf("%q of %d columns, want %q", got, len(got), want)
	}
	p.Failed = 3
	if got := p.String(); got == want {
		t.Error("failures are not shown")
	}
}
