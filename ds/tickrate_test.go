package ds_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// rateGame is a server whose ticks take longer or shorter than they should, with a client that
// shows its world, follows its pace, and claims in each call what it shows.
type rateGame struct {
	start time.Time

	mu      sync.Mutex // server and client use the rest
	tick    uint64
	events  []client.Event
	frames  int
	starved int
	still   int
	calls   int
	shots   int
	clamped int
	offTick float64 // from five seconds after a change on
	offShot time.Duration
}

type rateBall struct {
	Position schema.Vec3 `uplink:"resolution=0.001" interpolate:"position"`
}

type rateShot struct {
	Time float64 `uplink:"resolution=0.001"`
}

// phase is the length for which a server keeps a rate.
const phase = 12 * time.Second

// TestTickRates plays on servers at 0.5 to 1.1 of their rate, and through changes between these
// rates: no frame is starved, no honest shot clamped, and inputs are delivered. Server and client
// tell when the rate leaves 1 ± 0.05, and when it returns, once each.
func TestTickRates(t *testing.T) {
	for i, rates := range [][]float64{
		{1}, {1.1}, {0.95}, {0.9}, {0.8}, {0.7}, {0.6}, {0.5}, {1, 0.9, 1}, {1, 0.8, 1, 1.1, 1, 0.6, 1}, {1, 0.5, 1}, {0.5, 1, 0.5},
	} {
		t.Run(fmt.Sprint(rates), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seed := uint64(i + 1)
				playRates(t, rates, seed)
			})
		})
	}
}

func playRates(t *testing.T, rates []float64, seed uint64) {
	g := &rateGame{start: time.Now()}
	link := simnet.Config{Delay: 30 * ms, Jitter: 2 * ms, Seed: seed}
	network := uplinktest.NewNetwork(t, link, simnet.Config{Delay: 30 * ms, Jitter: 2 * ms, Seed: seed + 100})
	adapter, err := interpolate.Tagged[rateBall]()
	uplinktest.Must(t, err)
	past, err := rewind.New(adapter, rewind.Config{TickHz: 60})
	uplinktest.Must(t, err)
	const delay = 200 * ms
	var world *ds.World[rateBall]
	var stream *ds.SnapshotStream
	at := func(tick uint64) time.Duration { return time.Duration(float64(tick) / 60 * float64(time.Second)) }
	cfg := ds.Config{Poll: true, TickHz: 60, Joined: func(p *ds.Player) {
		var err error
		stream, err = world.Offer(p)
		uplinktest.Must(t, err)
	}}
	srv := uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
		return ds.Handle(s, "Shot", func(p *ds.Player, f ds.Frame[rateShot]) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.calls++
			v := stream.Viewer(at(g.tick))
			b, _ := p.Buffer("Shot")
			v.Waited, v.Delay = b.Slack, delay
			claim := time.Duration(f.Value.Time * float64(time.Second))
			if g.tick < 120 || claim == 0 {
				return
			}
			got, off := past.Seen(claim, at(g.tick), v)
			g.shots++
			if got != claim {
				g.clamped++
			}
			g.offShot = max(g.offShot, off.Abs())
		}, ds.JitterBuffer{})
	})
	world, err = ds.NewWorld(srv.Server, "balls", ds.WorldConfig[rateBall]{TickHz: 60, SendHz: 20})
	uplinktest.Must(t, err)
	stop, stopped := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); <-stopped })
	defer end()
	go func() {
		defer close(stopped)
		for next := time.Now(); ; {
			rate := rates[min(int(time.Since(g.start)/phase), len(rates)-1)]
			next = next.Add(time.Duration(float64(time.Second) / 60 / rate))
			select {
			case <-stop:
				return
			case <-time.After(time.Until(next)):
			}
			g.mu.Lock()
			g.tick++
			g.mu.Unlock()
			srv.Poll()
			ball := rateBall{schema.Vec3{X: at(g.tick).Seconds()}}
			uplinktest.Must(t, past.Add(at(g.tick), []uint32{256}, []rateBall{ball}))
			uplinktest.Must(t, world.Begin(g.tick))
			uplinktest.Must(t, world.Put(1, 0, &ball))
			_, err := world.Send()
			uplinktest.Must(t, err)
		}
	}()
	conn := uplinktest.Dial(t, network, client.Config{OnEvent: g.onEvent})
	view, err := client.SubscribeSnapshots(t.Context(), conn, "balls", client.SnapshotConfig[rateBall]{Interpolate: &interpolate.Config{Delay: delay}})
	uplinktest.Must(t, err)
	shots, err := client.Bind[rateShot](t.Context(), conn, "Shot", client.BindConfig{RateHz: 60})
	uplinktest.Must(t, err)
	sent := 0
	var shown interpolate.Sample[rateBall]
	for last := time.Duration(0); time.Since(g.start) < time.Duration(len(rates))*phase; {
		now := time.Now()
		g.mu.Lock()
		if view.Sample(now, &shown) && now.Sub(g.start) > 2*time.Second {
			g.frames++
			if shown.Starved {
				g.starved++
			}
			if shown.Time <= last {
				g.still++
			}
			last = shown.Time
		}
		if ticks, ok := view.Ticks(now); ok && now.Sub(g.start)%phase > 5*time.Second {
			g.offTick = max(g.offTick, math.Abs(ticks.Server-float64(g.tick)-0.5))
		}
		g.mu.Unlock()
		_, err := shots.Send(&rateShot{shown.Time.Seconds()})
		uplinktest.Must(t, err)
		sent++
		time.Sleep(shots.Pace().Interval(time.Second / 60))
	}
	time.Sleep(time.Second)
	end()
	g.mu.Lock()
	defer g.mu.Unlock()
	b := srv.Stats().RPCs[0].Buffer
	t.Logf("rates %v, seed %d: of %d frames %d starved, %d still; Ticks off by up to %.1f; of %d shots %d clamped, off by up to %v; of %d calls %d handled, %d missing, %d late, %d discarded",
		rates, seed, g.frames, g.starved, g.still, g.offTick, g.shots, g.clamped, g.offShot.Round(ms), sent, g.calls, b.Missing, b.Late, b.Skipped)
	if g.starved+g.still+g.clamped != 0 || g.offTick > 1.5 || g.calls < sent*99/100-10 || b.Skipped != 0 {
		t.Error("want none, 1.5 ticks, and 99 % of the calls")
	}
	g.checkEvents(t, rates, srv.Events())
	last := rates[len(rates)-1]
	if st := world.Stats(); math.Abs(st.Rate-last) > 0.01 || math.Abs(view.Stats().Rate-last) > 0.01 {
		t.Errorf("measured %.3f and %.3f, want %v", st.Rate, view.Stats().Rate, last)
	}
}

func (g *rateGame) onEvent(e client.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
}

// checkEvents checks that the events are those of the changes of the rate.
func (g *rateGame) checkEvents(t *testing.T, rates []float64, events []ds.Event) {
	want, last := 0, 1.0
	for _, rate := range rates {
		for _, limit := range []float64{0.95 + 1e-9, 1.05 - 1e-9} {
			if (last < limit) != (rate < limit) {
				want++
			}
		}
		last = rate
	}
	told := 0
	for _, e := range g.events {
		if e.TickRate != 0 {
			told++
			if e.World != "balls" || e.State != client.Connected {
				t.Errorf("%+v", e)
			}
		}
	}
	var server []string
	for _, e := range slices.Backward(events) {
		if e.Kind == "tick_rate" {
			server = append(server, e.Cause+": "+e.Text)
		}
	}
	t.Logf("%d changes, %d events at the client, at the server: %s", want, told, strings.Join(server, "; "))
	if told != want || len(server) != want {
		t.Errorf("want %d events of the rate at each end", want)
	}
}
