package worldbench

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

const ms = time.Millisecond

// offline returns the configuration of a run without sockets. Each look at its clock takes 1 us.
func offline(s Scene, players, ticks int) Config {
	now := time.Duration(0)
	return Config{
		Scene: s, Players: players, Ticks: ticks, Loss: .02, MinRTT: 20 * ms, MaxRTT: 200 * ms, Seed: 1, Offline: true,
		Clock: func() time.Duration { now += time.Microsecond; return now },
	}
}

func load(t *testing.T) []cubes.Frame {
	t.Helper()
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_120.bin.gz")
	uplinktest.Must(t, err)
	return frames
}

// TestRecording checks that the objects of a scene are those that were recorded.
func TestRecording(t *testing.T) {
	frames := load(t)
	sets, err := cubeset.Of(frames)
	uplinktest.Must(t, err)
	s, err := Recorded(frames)
	uplinktest.Must(t, err)
	w, err := s.NewWorld()
	uplinktest.Must(t, err)
	for _, at := range [][2]int{{0, 0}, {7, 7}, {119, 119}, {120, 118}, {237, 1}, {238, 0}} {
		tick, frame := at[0], at[1]
		uplinktest.Must(t, w.Begin(uint64(tick)))
		uplinktest.Must(t, s.Put(w, tick))
		for i := range sets[frame].Len() {
			if got, want := w.Open().Row(i), sets[frame].Row(i); !slices.Equal(got, want) {
				t.Fatalf("tick %d: object %d is %v, want %v", tick, i, got, want)
			}
		}
		w.Commit()
	}
	if s.Objects() != cubes.Count {
		t.Errorf("%d objects", s.Objects())
	}
}

// TestRun checks the figures of a run, and that another one with the same seed has the same bytes.
func TestRun(t *testing.T) {
	s, err := Recorded(load(t))
	uplinktest.Must(t, err)
	r, err := Run(t.Context(), offline(s, 20, 60))
	uplinktest.Must(t, err)
	t.Logf("%+v", *r)
	if r.Mismatches != 0 || r.EncodesPerTick < 7 || r.EncodesPerTick > maxEncodes {
		t.Errorf("%+v", r)
	}
	// The clock moves by 1 us while a snapshot is encoded, and while the world is fitted.
	if want := 1e3 * (1 + r.EncodesPerTick); r.EncodeNs < .9*want || r.EncodeNs > 1.1*want || r.TickNs < r.EncodeNs+r.SendNs+r.QuantizeNs {
		t.Errorf("coding takes %.0f ns of %.0f, want about %.0f", r.EncodeNs, r.TickNs, want)
	}
	again, err := Run(t.Context(), offline(s, 20, 60))
	uplinktest.Must(t, err)
	if r.SnapshotBytes != again.SnapshotBytes {
		t.Errorf("%+v, then %+v", r, again)
	}
}

// maxEncodes is the maximum number of encodings of a tick: 8, and 2 without a baseline.
const maxEncodes = 10

// TestLink checks the rate of losses, and what an ack of the received snapshots contains.
func TestLink(t *testing.T) {
	l := link{seed: 3, client: 5, loss: .1, rtt: 4}
	lost, arrived := 0, uint64(0)
	for tick := range 2000 {
		m, ok := l.arrives(tick)
		switch {
		case ok && m.snapshot != uint64(tick-l.rtt):
			t.Fatalf("snapshot %d arrives at tick %d", m.snapshot, tick)
		case ok:
			l.receive(m.snapshot)
			arrived = arrived<<1 | 1
		case tick >= l.rtt:
			lost++
			arrived <<= 1
		}
		l.begin(tick)
		l.send(tick, uint64(tick), 0)
	}
	if lost < 150 || lost > 250 {
		t.Errorf("%d of 2000 lost", lost)
	}
	if newest := uint(bits.TrailingZeros64(arrived)); l.newest != uint64(1995-newest) || l.window<<1|1 != arrived>>newest {
		t.Errorf("%d and %b received, want %b", l.newest, l.window, arrived)
	}
}

func TestInvalid(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.Players = 0 },
		func(c *Config) { c.Ticks = 0 },
		func(c *Config) { c.Hostile = true },
		func(c *Config) { c.Loss = 1 },
		func(c *Config) { c.MaxRTT = time.Second },
		func(c *Config) { c.MinRTT = c.MaxRTT + 1 },
	} {
		cfg := offline(nil, 1, 1)
		change(&cfg)
		if _, err := Run(t.Context(), cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	if _, err := Recorded(nil); err == nil {
		t.Error("an empty recording is accepted")
	}
	if _, err := Plain(0, 1); err == nil {
		t.Error("an empty world is accepted")
	}
}
