package interpolate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// playback is a server, a link and a client that shows 60 frames per second, in virtual time.
type playback struct {
	interval time.Duration
	// server and local convert true time to the clocks of server and client; nil is true time.
	server, local func(time.Duration) time.Duration
	// sends reports whether there is a snapshot at a true time; nil means always.
	sends func(time.Duration) bool
	// delay returns the delay of a packet, negative if it is lost.
	delay func() time.Duration
	// restarts reports that the server's time, and with it playback, may run backwards.
	restarts bool
	// shown is called for each frame with the true time and the server time that is shown.
	shown func(now, play time.Duration)
}

func (c playback) run(t testing.TB, b *buffer, from, to time.Duration) {
	t.Helper()
	asIs := func(d time.Duration) time.Duration { return d }
	if c.server == nil {
		c.server = asIs
	}
	if c.local == nil {
		c.local = asIs
	}
	type packet struct{ arrives, sent time.Duration }
	var flying []packet
	sent := from
	last, newest := time.Duration(-1<<62), time.Duration(-1<<62)
	for now := from; now < to; now += ms {
		if now >= sent {
			if c.sends == nil || c.sends(now) {
				if way := c.delay(); way >= 0 {
					flying = append(flying, packet{now + way, c.server(now)})
				}
			}
			sent += c.interval
		}
		rest := flying[:0]
		for _, p := range flying {
			if p.arrives > now {
				rest = append(rest, p)
				continue
			}
			// Some are late or duplicates.
			newest = max(newest, p.sent)
			_ = b.Add(c.local(now), p.sent, []uint32{7}, []thing{still(p.sent.Seconds())})
		}
		flying = rest
		if now/(16*ms) == (now-ms)/(16*ms) {
			continue
		}
		if play, ok := b.Play(c.local(now)); ok {
			if min(play, newest) < last && !c.restarts {
				t.Fatalf("at %v: shows %v after %v", now, min(play, newest), last)
			}
			last = min(play, newest)
			if c.shown != nil {
				c.shown(now, play)
			}
		}
	}
}

func steady(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// lossy is a link with 40 ms, jitter and packet loss.
func lossy(seed uint64, loss float64, jitter time.Duration) func() time.Duration {
	rng := rand.New(rand.NewPCG(seed, 1))
	return func() time.Duration {
		held := time.Duration(rng.Float64() * float64(jitter))
		if rng.Float64() < loss {
			return -1
		}
		return 40*ms + held
	}
}

// TestFixedDelay checks the delay of the samples, which grows a little while playback brakes after
// losses, and that two consecutive losses cause no hitch but four do.
func TestFixedDelay(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	sent, way := 0, lossy(1, 0, 50*ms)
	hitches := uint64(0)
	c := playback{interval: 100 * ms, delay: func() time.Duration {
		if sent++; sent%10 < 2 || sent > 200 && sent%10 < 4 {
			return -1
		}
		return way()
	}, shown: func(now, play time.Duration) {
		if d := now - 40*ms - play; now > 3*time.Second && (d < 340*ms || d > 385*ms && now < 20*time.Second || d > 560*ms) {
			t.Fatalf("at %v: delay %v, want 350ms", now, d)
		}
		if now < 20*time.Second {
			hitches = b.Stats().Hitches
		}
	}}
	c.run(t, b, 0, 30*time.Second)
	if hitches != 0 {
		t.Errorf("%d hitches though never more than two in a row are lost", hitches)
	}
	if s := b.Stats(); s.Hitches < 5 || s.Hitches > 10 || s.Restarts != 1 || s.Delay != 350*ms {
		t.Errorf("%+v", s)
	}
}

// TestStarved receives no snapshots for 3 s: the hitch is counted when it begins, and its time
// grows while it lasts, and no more once snapshots arrive again.
func TestStarved(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	var during, last interpolate.Stats
	c := playback{interval: 50 * ms, delay: func() time.Duration { return 40 * ms }, shown: func(now, _ time.Duration) {
		if last = b.Stats(); now < 5*time.Second {
			during = last
		}
	}}
	c.run(t, b, 0, 2*time.Second)
	if s := b.Stats(); s.Hitches != 0 || s.Starved != 0 {
		t.Errorf("without a hitch: %+v", s)
	}
	c.delay = func() time.Duration { return -1 }
	c.run(t, b, 2*time.Second, 5*time.Second)
	if during.Hitches != 1 || during.Starved < 2500*ms || during.Starved > 3*time.Second {
		t.Errorf("during the hitch: %+v", during)
	}
	c.delay = func() time.Duration { return 40 * ms }
	c.run(t, b, 5*time.Second, 8*time.Second)
	if last.Hitches != 1 || last.Starved < during.Starved || last.Starved > during.Starved+300*ms {
		t.Errorf("after the hitch: %+v", last)
	}
}

// TestDrift follows a client clock that is 0.5 % fast or slow and has another start.
func TestDrift(t *testing.T) {
	for _, rate := range []float64{0.995, 1.005} {
		for _, adaptive := range []bool{false, true} {
			b := newBuffer(t, interpolate.Config{Interval: 50 * ms, Adaptive: adaptive})
			c := playback{interval: 50 * ms, delay: lossy(2, 0.02, 30*ms), local: func(d time.Duration) time.Duration {
				return -time.Hour + time.Duration(rate*float64(d))
			}, shown: func(now, play time.Duration) {
				if d := now - 40*ms - play; now > 5*time.Second && (d < 50*ms || d > 260*ms) {
					t.Fatalf("rate %v at %v: delay %v", rate, now, d)
				}
			}}
			c.run(t, b, 0, 2*time.Minute)
			if s := b.Stats(); s.Hitches > 3 || s.Restarts != 1 {
				t.Errorf("rate %v, adaptive %v: %+v", rate, adaptive, s)
			}
		}
	}
}

// TestAdaptive learns a shorter delay than the default on a good link, and a longer one up to
// Config.MaxDelay on a bad link.
func TestAdaptive(t *testing.T) {
	for _, c := range []struct {
		loss        float64
		jitter      time.Duration
		least, most time.Duration
		maxDelay    time.Duration
	}{
		{0, 0, 15 * ms, 20 * ms, 0},
		{0, 20 * ms, 25 * ms, 40 * ms, 0},
		{0.3, 150 * ms, 110 * ms, 400 * ms, 0},
		{0.2, 600 * ms, 120 * ms, 120 * ms, 120 * ms},
	} {
		b := newBuffer(t, interpolate.Config{Interval: 16 * ms, Adaptive: true, MaxDelay: c.maxDelay})
		rule := interpolate.Delay(16*ms, 50*ms, 0.05)
		if got := b.Stats().Delay; got != rule {
			t.Errorf("begins with %v, want %v", got, rule)
		}
		playback{interval: 16 * ms, delay: lossy(3, c.loss, c.jitter)}.run(t, b, 0, 20*time.Second)
		before := b.Stats()
		if before.Delay < c.least || before.Delay > c.most {
			t.Errorf("%+v: delay %v", c, before.Delay)
		}
		playback{interval: 16 * ms, delay: lossy(4, c.loss, c.jitter)}.run(t, b, 20*time.Second, 40*time.Second)
		if hitches := b.Stats().Hitches - before.Hitches; hitches > 8 && c.maxDelay == 0 {
			t.Errorf("%+v: %d hitches in 20 s", c, hitches)
		}
	}
}

// TestPauses checks that playback recovers within three seconds from pauses of either end, of the
// link and of the server's time.
func TestPauses(t *testing.T) {
	const from, long = 10 * time.Second, 7 * time.Second
	within := func(d time.Duration) bool { return d >= from && d < from+long }
	paused := func(d time.Duration) time.Duration { return d - max(0, min(d-from, long)) }
	jumped := func(d time.Duration) time.Duration {
		if d >= from {
			d += long
		}
		return d
	}
	for name, c := range map[string]playback{
		"link":                     {sends: func(d time.Duration) bool { return !within(d) }},
		"server, which stops":      {sends: func(d time.Duration) bool { return !within(d) }, server: paused},
		"server, which repeats":    {server: paused},
		"server, which leaps":      {server: jumped},
		"server, which steps back": {server: func(d time.Duration) time.Duration { return d - (jumped(d) - d) }, restarts: true},
		"server, which hangs briefly": {
			server: func(d time.Duration) time.Duration { return d - max(0, min(d-from, 600*ms)) },
			sends:  func(d time.Duration) bool { return d < from || d > from+600*ms },
		},
		"client's clock": {local: jumped},
	} {
		for _, adaptive := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newBuffer(t, interpolate.Config{Interval: 50 * ms, Adaptive: adaptive})
				c.interval, c.delay = 50*ms, steady(40*ms)
				now := func(d time.Duration) time.Duration {
					if c.server != nil {
						return c.server(d)
					}
					return d
				}
				last := time.Duration(0)
				c.shown = func(d, play time.Duration) {
					last = now(d) - 40*ms - play
					if d > from-time.Second && d < from && (last < 0 || last > 210*ms) {
						t.Fatalf("before, at %v: delay %v", d, last)
					}
					if d > from+long+3*time.Second && (last < 0 || last > 210*ms) {
						t.Fatalf("after, at %v: delay %v", d, last)
					}
				}
				c.run(t, b, 0, from+long+5*time.Second)
				hitches := b.Stats().Hitches
				c.run(t, b, from+long+5*time.Second, from+long+15*time.Second)
				if last < 0 || last > 210*ms {
					t.Errorf("at the end: delay %v", last)
				}
				if more := b.Stats().Hitches - hitches; more > 0 {
					t.Errorf("%d hitches long after", more)
				}
			})
		}
	}
}

// TestClientPaused checks playback after a pause of the calls.
func TestClientPaused(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	playback{interval: 100 * ms, delay: steady(0)}.run(t, b, 0, 3*time.Second)
	for at := 3 * time.Second; at <= 60*time.Second; at += 100 * ms {
		add(t, b, at, still(at.Seconds()))
	}
	if play, ok := b.Play(60 * time.Second); !ok || play != 60*time.Second-350*ms {
		t.Error(play, ok)
	}
	if again, _ := b.Play(59 * time.Second); again != 60*time.Second-350*ms {
		t.Errorf("with a clock that ran backwards: %v", again)
	}
}
