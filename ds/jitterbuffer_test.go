package ds_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// game polls a server 60 times a second, and plays clients that call as often as it says. It
// verifies the order of each player's calls.
type game struct {
	t       *testing.T
	srv     *uplinktest.Server
	repeat  int // most repeated frames in a row
	players []*bufferedClient
	logs    map[*ds.Player]*gamerLog // from Joined to Left
	held    int                      // most at a time
}

// bufferedClient is a player's client.
type bufferedClient struct {
	stream
	every time.Duration // between calls, by the player's clock
	drift float64       // by how much that runs faster
	deaf  bool          // does not follow the server
	next  uint64
	call  time.Time
}

// gamerLog records the calls of a player.
type gamerLog struct {
	last                                frame
	next                                uint64 // sequence number
	seen                                map[uint64]bool
	calls, missed, repeated, late, idle uint64
	row                                 int  // repeated frames since the last one
	polled                              int  // calls in this Poll
	refused                             bool // the last frame
}

const hz60 = time.Second / 60

// newGame starts a server with a jitter buffer.
func newGame(t *testing.T, link simnet.Config, late bool, j ds.JitterBuffer, setups ...setup) (*game, *uplinktest.Network) {
	network := linkedBy(t, 60*ms, link)
	g := &game{t: t, repeat: j.Repeat, logs: map[*ds.Player]*gamerLog{}}
	g.srv = serve(t, network, ds.Config{
		Poll: true, TickHz: 60, Tuning: ds.Tuning{DeliverLate: late}, Limits: ds.Limits{RateSlack: 1e6},
		Joined: func(p *ds.Player) { g.logs[p] = &gamerLog{seen: map[uint64]bool{}} },
		Left:   func(p *ds.Player, _ error) { delete(g.logs, p) },
	}, append([]setup{handles("Move", g.handle, j)}, setups...)...)
	return g, network
}

// add connects a player.
func (g *game) add(n *uplinktest.Network, p bufferedClient) *client.Conn {
	conn := uplinktest.Dial(g.t, n, client.Config{Tuning: client.Tuning{Redundancy: rpcdelta.RedundancyOff}})
	p.stream = uplinktest.Bind(g.t, conn, "Move", client.BindConfig{RateHz: float64(time.Second / p.every)})
	g.players = append(g.players, &p)
	return conn
}

// handle checks a call: a frame in order, a repeated one, or a late one.
func (g *game) handle(p *ds.Player, f frame) {
	l := g.logs[p]
	switch {
	case l.seen[f.Seq] || l.refused && f.Repeated:
		g.t.Errorf("frame %d comes twice, or is repeated (%v) after one that was refused", f.Seq, f.Repeated)
	case f.Late:
		l.late++
	case f.Repeated:
		l.row++
		l.repeated++
		if f.Missed != 0 || l.row > g.repeat || !f.Value.Equal(&l.last.Value) || f.Seq < l.next {
			g.t.Errorf("repeated %d times: %+v, last %+v", l.row, f, l.last)
		}
	case f.Seq != l.next+uint64(l.row)+f.Missed:
		g.t.Errorf("frame %d comes instead of %d after %d repeated, %d missed", f.Seq, l.next, l.row, f.Missed)
	}
	l.calls++
	l.polled++
	l.missed += f.Missed
	l.seen[f.Seq] = !f.Repeated
	if !f.Repeated && !f.Late {
		l.row, l.last, l.next = 0, f, f.Seq+1
		l.last.Value.Payload = append([]byte(nil), f.Value.Payload...)
	}
}

// play plays for so long. A Poll calls the handler at most so often for a player.
func (g *game) play(d time.Duration, most int) {
	g.t.Helper()
	start := time.Now()
	for _, p := range g.players {
		p.call = start.Add(7 * ms)
	}
	for tick := start; tick.Sub(start) < d; {
		at := tick
		for _, p := range g.players {
			if p.call.Before(at) {
				at = p.call
			}
		}
		time.Sleep(time.Until(at))
		for i, p := range g.players {
			if !p.call.Equal(at) {
				continue
			}
			send(g.t, p.stream, uint64(i), p.next)
			p.next++
			every := p.every
			if !p.deaf {
				every = p.Pace().Interval(every)
			}
			p.call = at.Add(time.Duration(float64(every) / (1 + p.drift)))
		}
		if at.Equal(tick) {
			synctest.Wait()
			g.srv.Poll()
			for _, l := range g.logs {
				if l.polled > most && l.late == 0 {
					g.t.Errorf("%d calls in a Poll", l.polled)
				}
				if l.polled == 0 && l.calls > 0 {
					l.idle++
				}
				l.polled = 0
			}
			g.held = max(g.held, g.stats().Buffer.Held)
			tick = tick.Add(hz60)
		}
	}
}

func (g *game) stats() ds.RPCStats { return g.srv.Stats().RPCs[0] }

// only returns the log of the only player.
func (g *game) only() *gamerLog {
	for _, l := range g.logs {
		return l
	}
	return &gamerLog{}
}

// TestBatchesMissNoTick verifies that over a perfect link no preset makes a tick miss, from the
// first frame on, and that frames are delayed by at most the wait more than without one. A fixed
// target is raised if it is too short for the wait, and otherwise kept.
func TestBatchesMissNoTick(t *testing.T) {
	measures(t)
	for _, c := range []struct {
		preset client.Preset
		depth  time.Duration
		want   time.Duration // target, if it is fixed
	}{
		{},
		{preset: client.LowLatency},
		{preset: client.Balanced},
		{preset: client.LowBandwidth},
		{client.LowLatency, 5 * ms, 5 * ms},
		{client.Balanced, 5 * ms, 2*hz60 + hz60/4},
		{client.LowBandwidth, 5 * ms, 3*hz60 + hz60/4},
		{client.LowBandwidth, 70 * ms, 70 * ms},
	} {
		preset := c.preset
		synctest.Test(t, func(t *testing.T) {
			g, network := newGame(t, simnet.Config{}, false, ds.JitterBuffer{Depth: c.depth})
			conn := uplinktest.Dial(t, network, client.Config{Preset: preset})
			p := bufferedClient{every: hz60}
			p.stream = uplinktest.Bind(t, conn, "Move")
			g.players = append(g.players, &p)
			g.play(2*time.Minute, 1)
			l, st := g.only(), g.stats().Buffer
			batch, _ := preset.FramesAt(60)
			if l.missed != 0 || st.Missing != 0 || st.Late != 0 || st.Resyncs != 0 || l.calls < 7000 {
				t.Errorf("preset %q: %d calls, %d missed: %+v", preset.Name, l.calls, l.missed, st)
			}
			if c.depth != 0 && st.Target.Round(ms/10) != c.want.Round(ms/10) || c.depth == 0 && st.Target > time.Duration(batch)*hz60+hz60/2 {
				t.Errorf("preset %q: the target is %v for %d frames: %+v", preset.Name, st.Target, batch, st)
			}
		})
	}
}

// TestJitterBuffer verifies that over a link with jitter and loss, and with clocks that drift, each
// Poll delivers one frame of each player in order, and that the slack reaches its target.
func TestJitterBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, network := newGame(t, simnet.Config{Jitter: 5 * ms, Loss: 0.03, Seed: 60}, false, ds.JitterBuffer{})
		for _, drift := range []float64{-500e-6, 0, 500e-6} {
			g.add(network, bufferedClient{every: hz60, drift: drift})
		}
		g.play(time.Minute, 1)
		missing := uint64(0)
		for p, l := range g.logs {
			st, ok := p.Buffer("Move")
			off := max(st.Slack-st.Target, st.Target-st.Slack)
			if !ok || off > 10*ms || l.missed > st.Missing || l.calls < 3300 || st.Resyncs > 1 || st.Missing > 250 {
				t.Errorf("%d calls, %d missed, %+v", l.calls, l.missed, st)
			}
			missing += st.Missing
			if _, ok := p.Buffer("Jump"); ok {
				t.Error("a buffer of an RPC that is not bound")
			}
		}
		sum := g.stats().Buffer
		if sum.Buffers != 3 || sum.Released < 3*3300 || sum.Missing != missing || sum.Target < 5*ms || sum.Target > 60*ms {
			t.Errorf("all: %+v", sum)
		}
		settle(time.Second)
		for i, p := range g.players {
			pace := p.Pace()
			if pace.Target == 0 || pace.Missing > sum.Missing || pace.Late > sum.Late || pace.Rate < 0.98 || pace.Rate > 1.02 {
				t.Errorf("player %d: %+v, of all: %+v", i, pace, sum)
			}
		}
	})
}

// TestJitterBufferRepeats verifies that with Repeat each Poll calls the handler, with the last
// frame if one is missing, unless that was rejected. Repeated frames are not validated again.
func TestJitterBufferRepeats(t *testing.T) {
	for name, rejects := range map[string]bool{"accepted": false, "rejected": true} {
		bubble(t, name, func(t *testing.T) {
			var g *game
			refused := uint64(0)
			g, network := newGame(t, simnet.Config{Loss: 0.2, Seed: 61}, false, ds.JitterBuffer{Repeat: 3}, validates("Move", func(p *ds.Player, f frame) error {
				l := g.logs[p]
				if l.refused = f.Repeated || rejects && f.Seq%2 == 0; l.refused {
					refused++
					return errTenth
				}
				return nil
			}))
			g.add(network, bufferedClient{every: hz60})
			g.play(20*time.Second, 1)
			st, l := g.stats().Buffer, g.only()
			if l.repeated < 50 || st.Repeated != l.repeated || (l.idle > 10) != rejects || (refused > 300) != rejects {
				t.Errorf("%d repeated, %d Polls without a call, %d were refused: %+v", l.repeated, l.idle, refused, st)
			}
		})
	}
}

// TestJitterBufferLate verifies that late frames are dropped and counted, or with DeliverLate
// delivered and marked.
func TestJitterBufferLate(t *testing.T) {
	for name, deliver := range map[string]bool{"dropped": false, "delivered": true} {
		bubble(t, name, func(t *testing.T) {
			g, network := newGame(t, simnet.Config{Jitter: 15 * ms, Seed: 62}, deliver, ds.JitterBuffer{Depth: 5 * ms})
			g.add(network, bufferedClient{every: hz60})
			g.play(20*time.Second, 1)
			st, l := g.stats(), g.only()
			if deliver && (l.late < 100 || l.late != st.Buffer.Late || st.Drops[ds.LateForTick] != 0 || l.calls < 1190) {
				t.Errorf("%d late, %d came: %+v", l.late, l.calls, st)
			}
			if !deliver && (l.late != 0 || st.Drops[ds.LateForTick] < 100 || st.Drops[ds.LateForTick] != st.Buffer.Late) {
				t.Errorf("%d late: %+v", l.late, st)
			}
		})
	}
}

// TestJitterBufferRates verifies that a client cannot bind an RPC with a jitter buffer at another
// rate than the ticks', or on the reliable channel, that the error says what to set, and that RPCs
// without a buffer are not affected by one: each call is handled once.
func TestJitterBufferRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fires := uplinktest.NewJournal(t, 2)
		repeated := 0
		g, network := newGame(t, simnet.Config{}, false, ds.JitterBuffer{Repeat: 3}, handles("ServerFire", func(p *ds.Player, f frame) {
			if f.Repeated {
				repeated++
			}
			fires.Handle(p, f)
		}))
		g.add(network, bufferedClient{every: hz60})
		conn := uplinktest.Dial(t, network, client.Config{})
		for want, cfg := range map[string]client.BindConfig{
			"client: bind Move: 10 calls a second, but the server takes 60, since it has a ds.JitterBuffer (ds.Config.TickHz) or a ds.TimeCheck (its RateHz) for it: set BindConfig.RateHz to 60": {RateHz: 10},
			"takes no reliable calls": {RateHz: 60, Reliable: true},
			"250":                     {RateHz: 300},
		} {
			if _, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
		fire := uplinktest.Bind(t, conn, "ServerFire", client.BindConfig{RateHz: 10})
		const calls = 59
		go func() {
			for i := range uint64(calls) {
				send(t, fire, 2, i)
				time.Sleep(100 * ms)
			}
		}()
		g.play(7*time.Second, 1)
		if f := fires.Only(); f.Frames() != calls || repeated != 0 {
			t.Errorf("%d calls of %d were handled, %d repeated", f.Frames(), calls, repeated)
		}
		if st := g.stats().Buffer; st.Released < 400 {
			t.Errorf("%+v", st)
		}
	})
}

// TestJitterBufferFlood verifies that a player that calls far above its declared rate, or does not
// follow the pace, affects only itself.
func TestJitterBufferFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, network := newGame(t, simnet.Config{Seed: 64}, false, ds.JitterBuffer{})
		g.add(network, bufferedClient{every: hz60, deaf: true})
		g.add(network, bufferedClient{every: hz60, deaf: true})
		g.players[1].every = hz60 / 5
		g.play(20*time.Second, 1)
		if st := g.stats(); len(g.logs) != 2 || g.held > 128+16 || st.Drops[ds.Discarded] < 4000 {
			t.Errorf("%d are held at most: %+v", g.held, st)
		}
		for _, l := range g.logs {
			if l.calls < 1100 {
				t.Errorf("%d calls in 20 s", l.calls)
			}
		}
	})
}

// TestJitterBufferLeave verifies that frames are delivered between Joined and Left only, and that a
// pause does not count as missing ticks.
func TestJitterBufferLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, network := newGame(t, simnet.Config{}, false, ds.JitterBuffer{})
		conn := g.add(network, bufferedClient{every: hz60})
		g.play(5*time.Second, 1)
		players := g.players
		g.players = nil
		g.play(10*time.Second, 1)
		g.players = players
		g.play(5*time.Second, 1)
		if st := g.stats().Buffer; st.Missing > 40 || st.Released < 590 || st.Resyncs != 1 {
			t.Errorf("after a pause: %+v", st)
		}
		uplinktest.Must(t, conn.Close())
		g.players = nil
		g.play(time.Second, 1)
		if st := g.stats().Buffer; st.Buffers != 0 || st.Held != 0 || st.Released < 590 || len(g.logs) != 0 {
			t.Errorf("when nobody is there: %+v", st)
		}
	})
}
