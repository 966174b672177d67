package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// short is the start of a sample.
func short(t *trace.Trace, frames int) *trace.Trace {
	s := *t
	s.Frames = s.Frames[:frames]
	return &s
}

func config() Config {
	return Config{Schemes: Schemes(), Link: simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}, AckHz: 60, Ring: rpcdelta.DefaultRing, Suite: transport.AES128GCM, Untimed: true}
}

// around is the bytes around a message: the headers of IP, UDP and datagram, and the tag of
// AES-128-GCM.
const around = 20 + 8 + 2 + 16

func mustRun(t *testing.T, tr *trace.Trace, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), tr, cfg)
	uplinktest.Must(t, err)
	return r
}

// TestLinks runs samples over many links: every frame is delivered unchanged, lost, or late.
func TestLinks(t *testing.T) {
	for _, tr := range []*trace.Trace{short(sample.Portal2(), 600), short(sample.RocketLeague(), 600)} {
		for _, loss := range []float64{0, 0.1, 0.5} {
			for _, burst := range []float64{1, 8} {
				for _, jitter := range []time.Duration{0, 15 * time.Millisecond, time.Second} {
					for _, ackHz := range []float64{3, 60} {
						for _, ring := range []int{2, 9, 64} {
							cfg := config()
							cfg.Link.Loss, cfg.Link.Burst, cfg.Link.Jitter, cfg.AckHz, cfg.Ring = loss, burst, jitter, ackHz, ring
							check(t, tr, cfg)
						}
					}
				}
			}
		}
	}
}

func check(t *testing.T, tr *trace.Trace, cfg Config) {
	t.Helper()
	for _, c := range mustRun(t, tr, cfg).Codecs {
		what := fmt.Sprintf("%s: %s: %v, %v acks/s, ring %d, seed %d", tr.Name, c.Name, &cfg.Link, cfg.AckHz, cfg.Ring, cfg.Link.Seed)
		if c.Mismatches != 0 || c.Undecodable != 0 {
			t.Errorf("%s: %d mismatches, %d undecodable", what, c.Mismatches, c.Undecodable)
		}
		all := c.DeliveredRatio + c.Lost + c.Late
		if c.Name == "adaptive" { // redundant frames may replace lost ones
			all = max(1, c.DeliveredRatio)
		}
		if c.FramesSent != len(tr.Frames) || math.Abs(all-1) > 1e-5 {
			t.Errorf("%s: of %d frames %v were delivered, %v lost and %v late", what, c.FramesSent, c.DeliveredRatio, c.Lost, c.Late)
		}
		if cfg.Link.Loss == 0 && cfg.Link.Jitter == 0 && c.FramesDelivered != c.FramesSent {
			t.Errorf("%s: %d frames delivered", what, c.FramesDelivered)
		}
		if cfg.Ring == 64 && cfg.AckHz == 60 && cfg.Link.Loss == 0 && cfg.Link.Jitter == 0 && c.Keyframes > c.FramesSent/5 {
			t.Errorf("%s: %d frames without baseline", what, c.Keyframes)
		}
	}
}

// TestSendEvery expects every frame to arrive, in payloads of several, for fewer bits each.
func TestSendEvery(t *testing.T) {
	tr := short(sample.Portal2(), 1200)
	before := math.Inf(1)
	for _, every := range []int{0, 2, 4, 8} {
		cfg := config()
		cfg.Schemes, cfg.SendEvery, cfg.AckHz = []string{"rle", "adaptive"}, every, 10
		r := mustRun(t, tr, cfg)
		c := r.Codecs[1]
		if c.FramesSent != 1200 || c.FramesDelivered != 1200 || c.Mismatches != 0 || c.Undecodable != 0 {
			t.Errorf("every %d: %+v", every, c)
		}
		want := 8 * around / float64(max(every, 1))
		if got := c.WireBits - c.PayloadBits - c.HeaderBits; math.Abs(got-want) > 1e-3 || c.WireBits > 0.7*before {
			t.Errorf("every %d: %v bits around messages, want %v; %v in all, %v before", every, got, want, c.WireBits, before)
		}
		if got := c.FullWireBits - c.FullBits; got != 8*47 || c.WireRatio < c.WireBits/c.FullWireBits {
			t.Errorf("every %d: %v bits around a full frame, ratio %v", every, got, c.WireRatio)
		}
		if rle := r.Codecs[0]; rle.FramesDelivered != 1200 || rle.WireBits < 8*around {
			t.Errorf("every %d: rle: %+v", every, rle)
		}
		before = c.WireBits
		cfg.Link.Loss, cfg.Link.Burst, cfg.Link.Jitter = 0.1, 3, 300*time.Millisecond
		if c := mustRun(t, tr, cfg).Codecs[1]; c.FramesSent != 1200 || c.FramesDelivered == 0 || c.Mismatches != 0 || c.Undecodable != 0 {
			t.Errorf("every %d, bad link: %+v", every, c)
		}
	}
}

// TestDistance expects every delta to have just the baseline that was asked for.
func TestDistance(t *testing.T) {
	tr := short(sample.RocketLeague(), 600)
	for _, distance := range []int{1, 3, 63, 64, 200, 255} {
		cfg := config()
		cfg.Distance, cfg.Ring = distance, rpcdelta.MaxRing
		if distance >= 64 {
			cfg.Schemes = []string{"paper", "rle"}
		}
		r := mustRun(t, tr, cfg)
		if r.Link != nil || r.Distance != distance {
			t.Errorf("distance %d: link %+v, distance %d", distance, r.Link, r.Distance)
		}
		for _, c := range r.Codecs {
			if c.BaselineAge != float64(distance) {
				t.Errorf("distance %d: %s: mean baseline age %v", distance, c.Name, c.BaselineAge)
			}
			if c.Keyframes < distance || c.FramesDelivered != 600 || c.Mismatches != 0 {
				t.Errorf("distance %d: %+v", distance, c)
			}
		}
	}
}

// TestBaselineAge expects the age that delay, tick and frame rate make: a frame waits for less than
// an interval for the server's tick, and the first frame after its ack arrives uses it.
func TestBaselineAge(t *testing.T) {
	tr := short(sample.Portal2(), 1200)
	for _, c := range []struct {
		rtt   time.Duration
		ackHz float64
		want  float64
	}{
		{0, 60, 1},
		{100 * time.Millisecond, 60, 7},  // 100 to 116.7 ms are 6 to 7 frames
		{200 * time.Millisecond, 60, 13}, // 200 to 216.7 ms are 12 to 13 frames
		{100 * time.Millisecond, 20, 8},  // 7, 8 and 9 until it is replaced
	} {
		cfg := config()
		cfg.Link.RTT, cfg.AckHz = c.rtt, c.ackHz
		for _, got := range mustRun(t, tr, cfg).Codecs {
			if math.Abs(got.BaselineAge-c.want) > 0.02 {
				t.Errorf("%v, %v acks/s: %s: %v frames, want %v", c.rtt, c.ackHz, got.Name, got.BaselineAge, c.want)
			}
		}
	}
}

// TestAccounting adds up the columns, with each suite: what is encrypted stays the same.
func TestAccounting(t *testing.T) {
	tr := short(sample.Portal2(), 600)
	var plain []Counts
	for suite, tag := range map[transport.Suite]float64{transport.None: 0, transport.AES128CTRHMAC8: 8, transport.AES128GCM: 16} {
		cfg := config()
		cfg.AckHz, cfg.Suite = 30, suite
		r := mustRun(t, tr, cfg)
		if plain == nil {
			plain = r.Codecs
		}
		around := 8 * (20 + 8 + 2 + tag) // IP, UDP and datagram
		for i, c := range r.Codecs {
			if r.Suite != suite.String() || c.AEADBits != 8*tag || c.DatagramBits != 16 || c.IPBits != 224 ||
				c.PayloadBits != plain[i].PayloadBits {
				t.Errorf("%v: %+v", suite, c)
			}
			// Acks have 2 bytes, but four before the first baseline have 4, as those of the
			// article.
			ack, first := 16.0, 8.0*2*4
			if c.Name == "paper" {
				ack, first = 32, 0
			}
			acks := (c.AckBits*600 - first) / ack
			if acks < 298 || acks > 304 {
				t.Errorf("%s: %v acks for 600 frames at 60 Hz, acked at 30 Hz", c.Name, acks)
			}
			for what, v := range map[string][2]float64{
				// Binary fields end each payload: it has whole bytes.
				"wire":          {c.WireBits, c.PayloadBits + c.HeaderBits + around},
				"full wire":     {c.FullWireBits, c.FullBits + 8*endpoint.FullOverhead},
				"ack wire":      {c.AckWireBits, c.AckBits + (around+8)*acks/600},
				"kbit/s":        {c.UpKbits(60), c.WireBits * 60 / 1000},
				"kbit/s down":   {c.DownKbits(60), c.AckWireBits * 60 / 1000},
				"paper, header": {r.Codecs[0].HeaderBits, 64},
			} {
				if math.Abs(v[0]-v[1]) > 1e-4 {
					t.Errorf("%v: %s: %s is %v, want %v", suite, c.Name, what, v[0], v[1])
				}
			}
		}
		paper, rle := r.Codecs[0], r.Codecs[1]
		if paper.PayloadBits != rle.PayloadBits || paper.FramesDelivered != rle.FramesDelivered ||
			rle.HeaderBits < 16 || rle.HeaderBits > 24 {
			t.Errorf("%+v\n%+v", paper, rle)
		}
	}
}

// TestDeafLink loses everything.
// TestBatchedRLE compares a preset that does not batch with rle by itself, and one that does with
// full frames and adaptive.
func TestBatchedRLE(t *testing.T) {
	cfg := config()
	cfg.Schemes, cfg.Presets, cfg.DownlinkHz = []string{"rle", "adaptive"}, []client.Preset{client.LowLatency, client.Balanced}, 30
	c := mustRun(t, short(sample.Portal2(), 1000), cfg).Codecs
	rle, single, balanced := &c[0], &c[1], &c[2]
	if rle.BatchedRLERatio != 0 || math.Abs(single.BatchedRLERatio/rle.WireRatio-1) > 0.01 {
		t.Errorf("rle alone: %v, %v; in single datagrams: %v", rle.WireRatio, rle.BatchedRLERatio, single.BatchedRLERatio)
	}
	if b := balanced.BatchedRLERatio; b <= balanced.WireRatio || b >= balanced.BatchedRatio {
		t.Errorf("batched: rle %v, full frames %v, adaptive %v", b, balanced.BatchedRatio, balanced.WireRatio)
	}
}

func TestDeafLink(t *testing.T) {
	cfg := config()
	cfg.Link.Loss = 1
	for _, c := range mustRun(t, short(sample.Portal2(), 100), cfg).Codecs {
		if c.FramesDelivered != 0 || c.Keyframes != 100 || c.AckBits != 0 || c.Lost != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// TestJSON holds the names that scripts read.
func TestJSON(t *testing.T) {
	const counts = "name suite frames_sent frames_delivered delivered_ratio full_bits_per_frame payload_bits_per_frame header_bits_per_frame " +
		"datagram_bits_per_frame aead_bits_per_frame ip_udp_bits_per_frame wire_bits_per_frame full_wire_bits_per_frame ack_bits_per_frame ack_wire_bits_per_frame " +
		"wire_both_bits_per_frame wire_ratio batched_ratio delay_ms_mean urgent_delay_ms_max urgent_frames_per_s datagrams_per_s keyframes mismatches encode_ns_per_frame decode_ns_per_frame allocs_per_frame"
	tr := short(sample.Portal2(), 20)
	cfg := config()
	cfg.Schemes = []string{"rle"}
	for distance, want := range map[int]string{
		0: "trace frames rate_hz link rtt_ms jitter_ms loss burst seed suite codecs " + counts,
		6: "trace frames rate_hz link distance suite codecs " + counts,
	} {
		cfg.Distance = distance
		text, err := json.Marshal(mustRun(t, tr, cfg))
		uplinktest.Must(t, err)
		got := ""
		for _, m := range regexp.MustCompile(`"(\w+)":`).FindAllSubmatch(text, -1) {
			got += " " + string(m[1])
		}
		if got != " "+want {
			t.Errorf("distance %d:\ngot  %s\nwant  %s", distance, got, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	tr := short(sample.Portal2(), 1500)
	cfg := config()
	cfg.Untimed, cfg.Link.Loss = false, 0.1
	for _, c := range mustRun(t, tr, cfg).Codecs {
		if c.EncodeNs <= 0 || c.DecodeNs <= 0 {
			t.Errorf("%s: encode takes %v ns, decode %v ns", c.Name, c.EncodeNs, c.DecodeNs)
		}
		if c.Allocs > 0.1 { // others in this process may allocate a little at the same time
			t.Errorf("%s: %v allocations a frame", c.Name, c.Allocs)
		}
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := config()
	cfg.Progress = func(string, float64) { cancel() }
	if _, err := Run(ctx, sample.Portal2(), cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Schemes = nil }, "--codec: no codec, want some of paper, rle, adaptive"},
		{func(c *Config) { c.Schemes = []string{"zip"} }, `--codec "zip": want some of paper, rle, adaptive`},
		{func(c *Config) { c.Link.RTT = -1 }, "--rtt -1ns: want 0s to 1m0s"},
		{func(c *Config) { c.AckHz = -1 }, "--ack-hz -1: want 0 to 1000 acks a second"},
		{func(c *Config) { c.Ring = 1 }, "--ring 1: want 2 to 256 frames"},
		{func(c *Config) { c.SendEvery = 9 }, "--send-every 9: want 1 to 8 frames"},
		{func(c *Config) { c.SendEvery, c.Distance = 2, 6 }, "--send-every 2: with --distance each frame has a payload of its own"},
		{func(c *Config) { c.Distance = 256 }, "--distance 256: want 1 to 255 frames"},
		{func(c *Config) { c.Distance = 64 }, "--distance 64: want less than --ring 64"},
		{func(c *Config) { c.Distance, c.Ring = 64, 128 }, "--distance 64: adaptive looks back 63 frames at most"},
	} {
		cfg := config()
		c.change(&cfg)
		if _, err := Run(context.Background(), sample.Portal2(), cfg); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func bitsOf(c *Counts) []*float64 {
	return []*float64{&c.FullBits, &c.PayloadBits, &c.HeaderBits, &c.WireBits, &c.AckBits, &c.AckWireBits}
}

// TestSeeds: runs over several links add up to what each of them comes to alone, again, and what
// warms up counts for nothing.
func TestSeeds(t *testing.T) {
	tr := short(sample.RocketLeague(), 600)
	cfg := config()
	cfg.SendEvery, cfg.Link.Loss, cfg.Link.Jitter = 2, 0.1, 20*time.Millisecond
	cfg.Frames, cfg.Warmup = 1000, 2*time.Second
	const seeds = 3
	sums, seen := make([]Counts, len(cfg.Schemes)), map[float64]bool{}
	for seed := range uint64(seeds) {
		one := cfg
		one.Link.Seed += seed
		for i, c := range mustRun(t, tr, one).Codecs {
			if c.FramesSent != 1000 || c.FramesDelivered < 700 || c.FramesDelivered > 1000 {
				t.Errorf("%s, seed %d: %d of %d frames delivered", c.Name, one.Link.Seed, c.FramesDelivered, c.FramesSent)
			}
			if seen[c.WireBits] {
				t.Errorf("%s: seed %d changes nothing", c.Name, one.Link.Seed)
			}
			seen[c.WireBits] = true
			s := &sums[i]
			s.FramesDelivered += c.FramesDelivered
			s.Keyframes += c.Keyframes
			for k, v := range bitsOf(&c) {
				*bitsOf(s)[k] += *v / seeds
			}
		}
	}
	cfg.Seeds, cfg.Frames = seeds, seeds*cfg.Frames
	for i, c := range mustRun(t, tr, cfg).Codecs {
		s := &sums[i]
		if c.FramesSent != cfg.Frames || c.FramesDelivered != s.FramesDelivered || c.Keyframes != s.Keyframes || c.Mismatches != 0 {
			t.Errorf("%s: %+v, want %+v", c.Name, c, s)
		}
		for k, v := range bitsOf(&c) {
			if math.Abs(*v-*bitsOf(s)[k]) > 1e-4 {
				t.Errorf("%s: %+v together, %+v on the mean of each", c.Name, c, s)
			}
		}
		if c.Lost < 0.05 || c.Lost > 0.15 {
			t.Errorf("%s: %v of the datagrams are lost", c.Name, c.Lost)
		}
	}
}

// TestPresets checks what the presets promise on recorded play: urgent frames leave at once, few
// frames miss their deadline, and datagrams are few.
func TestPresets(t *testing.T) {
	for _, c := range []struct {
		loss  float64
		ratio []float64 // maximum of each preset
	}{
		{0, []float64{0.8, 0.33, 0.24}},
		{0.05, []float64{0.85, 0.45, 0.32}},
	} {
		cfg := config()
		cfg.Schemes, cfg.Presets, cfg.DownlinkHz = []string{"adaptive"}, []client.Preset{client.LowLatency, client.Balanced, client.LowBandwidth}, 30
		cfg.Link.RTT, cfg.Link.Loss, cfg.Seeds = 100*time.Millisecond, c.loss, 4
		for i, r := range mustRun(t, sample.Portal2(), cfg).Codecs {
			if r.Preset != cfg.Presets[i].Name || r.Mismatches != 0 || r.UrgentPerSecond == 0 || r.UrgentDelayMsMax != 0 {
				t.Errorf("%+v", r)
			}
			if r.DeliveredRatio < 0.998 || r.WireRatio > c.ratio[i] || r.WireRatio < c.ratio[i]/2 {
				t.Errorf("%s at %v: %v delivered, ratio %v, want at most %v", r.Preset, c.loss, r.DeliveredRatio, r.WireRatio, c.ratio[i])
			}
		}
	}
}

// TestDefault verifies that a stream without a preset never costs more than full frames in
// datagrams of their own, acks included, and delivers its frames from the first one on.
func TestDefault(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/traces/*.csv.gz")
	uplinktest.Must(t, err)
	const seeds = 2
	for loss, ratio := range map[float64]float64{0: 0.88, 0.01: 0.92, 0.05: 0.96, 0.1: 0.99} {
		if testing.Short() && loss != 0.1 {
			continue
		}
		for _, downlink := range []float64{0, 30} {
			cfg := config()
			cfg.Schemes, cfg.AckHz, cfg.DownlinkHz, cfg.Link.Loss, cfg.Seeds = []string{"adaptive"}, 0, downlink, loss, seeds
			logs, delivered := 0.0, 0.0
			for _, path := range paths {
				tr, err := trace.Load(path, nil)
				uplinktest.Must(t, err)
				c := mustRun(t, tr, cfg).Codecs[0]
				logs += math.Log(c.WireRatio)
				delivered += c.DeliveredRatio
			}
			n := float64(len(paths))
			if got := math.Exp(logs / n); len(paths) != 5 || got > ratio || delivered/n < 0.999 {
				t.Errorf("loss %v, downlink %v Hz: ratio %.3f on %v recordings, want at most %v; %v delivered", loss, downlink, got, n, ratio, delivered/n)
			}
		}
	}
}

// TestWarmup expects every frame to count once, whichever warm-up precedes those that count, also
// if payloads have several frames and there are others before and after.
func TestWarmup(t *testing.T) {
	cfg := config()
	cfg.Schemes, cfg.Presets, cfg.DownlinkHz = []string{"adaptive"}, []client.Preset{client.Balanced, client.LowBandwidth}, 30
	for _, cfg.Warmup = range []time.Duration{0, 500 * time.Millisecond, 1017 * time.Millisecond, 1050 * time.Millisecond} {
		for _, c := range mustRun(t, short(sample.Portal2(), 600), cfg).Codecs {
			if c.FramesSent != 600 || c.DeliveredRatio != 1 || c.FramesDelivered != 600 {
				t.Errorf("%v, %s: %d frames, %d delivered, %v in time", cfg.Warmup, c.Preset, c.FramesSent, c.FramesDelivered, c.DeliveredRatio)
			}
		}
	}
}

// TestLongBursts expects the preset for the fewest bits to take no more than Balanced where bursts
// are longer than its deadline.
func TestLongBursts(t *testing.T) {
	for _, tr := range []*trace.Trace{sample.Portal2(), sample.RocketLeague()} {
		for _, loss := range []float64{0.1, 0.2, 0.3} {
			for _, burst := range []float64{10, 20} {
				cfg := config()
				cfg.Schemes, cfg.Presets, cfg.DownlinkHz = []string{"adaptive"}, []client.Preset{client.Balanced, client.LowBandwidth}, 30
				cfg.Link.Loss, cfg.Link.Burst, cfg.Seeds = loss, burst, 2
				c := mustRun(t, short(tr, 1800), cfg).Codecs
				balanced, low := &c[0], &c[1]
				if low.WireBothBits > balanced.WireBothBits {
					t.Errorf("%s, %v in bursts of %v: %s %v bits, %s %v", tr.Name, loss, burst, low.Preset, low.WireBothBits, balanced.Preset, balanced.WireBothBits)
				}
				for _, c := range c {
					if sum := c.DeliveredRatio + c.Late; c.Late < 0 || sum > 1 || c.DeliveredRatio < 1-loss-0.2 {
						t.Errorf("%s: %v delivered, %v late", c.Preset, c.DeliveredRatio, c.Late)
					}
				}
			}
		}
	}
}
