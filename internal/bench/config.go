package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/transport"
)

// Config configures a run. Errors name the command's flags.
type Config struct {
	// Schemes are the names of codecs to compare, see [Schemes].
	Schemes []string
	// Link is the link for frames and acks.
	Link simlink.Config
	// Suite is the cipher suite in both directions. Only its overhead is counted; nothing is
	// encrypted.
	Suite transport.Suite
	// AckHz is the maximum number of acks per second. The phase of the server's ticks relative to
	// the client's frames is uniformly distributed. 0 means that a server without other datagrams
	// sends acks as [ds.Server] does: when they pay, at most ds.DefaultAckHz, which is the rate of
	// schemes with acks of their own.
	AckHz float64
	// Ring is the ring size of both ends, in frames.
	Ring int
	// Redundancy is rpcdelta.EncoderConfig's.
	Redundancy int
	// SendEvery is the number of new frames per payload of adaptive; 0 means 1.
	SendEvery int
	// Presets set the batching, the deadline and the suite of adaptive, which runs once for each.
	Presets []client.Preset
	// DownlinkHz is the rate of the server's datagrams that acks are piggybacked on: an ack counts
	// its own bytes only. 0 means that acks have datagrams of their own.
	DownlinkHz float64
	// Prior is the prior of adaptive; nil is the built-in one.
	Prior *prior.Prior
	// Distance, if not 0, replaces the link: frame n is encoded against frame n-Distance.
	Distance int
	// Seeds is the number of links, with seeds from Link.Seed on; 0 means 1.
	Seeds int
	// Frames is the number of frames over all seeds, repeating the trace; 0 means the trace once
	// per seed.
	Frames int
	// Warmup is the time of each run before counting starts. Mismatches always count.
	Warmup time.Duration

	// List is the number of frames at the start that Counts.Listed describes. It requires schemes
	// that run-length code, and the trace once over one link.
	List int
	// Fields enables Counts.Fields and Counts.Profile for adaptive.
	Fields bool
	// Arrivals enables Counts.Arrived if the trace is run once.
	Arrivals bool
	// Untimed disables the measurement of times and allocations.
	Untimed bool
	// Progress, if not nil, is called from time to time with the scheme and the completed share.
	Progress func(scheme string, done float64)
}

// Bounds of a run.
const (
	maxAckHz  = 1000
	maxSeeds  = 10_000
	maxFrames = 1_000_000_000
	maxWarmup = time.Hour
)

// once reports whether a run is the trace once over one link.
func (c *Config) once() bool { return c.Seeds <= 1 && c.Frames == 0 && c.Warmup == 0 }

// adaptiveReach exceeds the maximum age of a baseline of the adaptive codec.
const adaptiveReach = 64

// String describes the link without its seed, or the distance.
func (c *Config) String() string {
	if c.Distance != 0 {
		return fmt.Sprintf("no link, each frame against the one %d before it", c.Distance)
	}
	if c.DownlinkHz > 0 {
		return fmt.Sprintf("%v, acks on %g datagrams a second of the server", &c.Link, c.DownlinkHz)
	}
	if c.AckHz == 0 {
		return fmt.Sprintf("%v, acks when they pay", &c.Link)
	}
	return fmt.Sprintf("%v, acks at %g Hz", &c.Link, c.AckHz)
}

// Validate returns an error that names an invalid flag.
func (c *Config) Validate() error {
	for _, name := range c.Schemes {
		s, err := schemeOf(name)
		if err != nil {
			return err
		}
		if s.codec == rpcdelta.Adaptive && c.Distance >= adaptiveReach && c.Distance < c.Ring {
			return fmt.Errorf("--distance %d: adaptive looks back %d frames at most", c.Distance, adaptiveReach-1)
		}
		if c.List > 0 && s.codec != rpcdelta.RLE {
			return fmt.Errorf("--list: %s does not run-length code; want --codec rle or paper", name)
		}
	}
	switch {
	case c.Prior != nil && !slices.Contains(c.Schemes, rpcdelta.Adaptive.String()):
		return fmt.Errorf("--prior: only --codec %v starts from one", rpcdelta.Adaptive)
	case len(c.Schemes) == 0:
		return fmt.Errorf("--codec: no codec, want some of %s", strings.Join(Schemes(), ", "))
	case c.Distance < 0 || c.Distance >= rpcdelta.MaxRing:
		return fmt.Errorf("--distance %d: want 1 to %d frames", c.Distance, rpcdelta.MaxRing-1)
	case !(c.AckHz >= 0 && c.AckHz <= maxAckHz):
		return fmt.Errorf("--ack-hz %v: want 0 to %d acks a second", c.AckHz, maxAckHz)
	case !(c.DownlinkHz >= 0 && c.DownlinkHz <= maxAckHz):
		return fmt.Errorf("--downlink %v: want 0 to %d datagrams a second", c.DownlinkHz, maxAckHz)
	case len(c.Presets) > 0 && (c.SendEvery > 1 || c.Distance != 0):
		return fmt.Errorf("--preset: leave out --send-every, which it sets, and --distance")
	case len(c.Presets) > 0 && !slices.Contains(c.Schemes, rpcdelta.Adaptive.String()):
		return fmt.Errorf("--preset: it needs %v among --codec", rpcdelta.Adaptive)
	case c.Ring < 2 || c.Ring > rpcdelta.MaxRing:
		return fmt.Errorf("--ring %d: want 2 to %d frames", c.Ring, rpcdelta.MaxRing)
	case c.List < 0 || c.List > 0 && !c.once():
		return fmt.Errorf("--list %d: want 0 or more frames, and neither --seeds, --frames nor --warmup", c.List)
	case c.Seeds < 0 || c.Seeds > maxSeeds:
		return fmt.Errorf("--seeds %d: want 1 to %d", c.Seeds, maxSeeds)
	case c.Frames < 0 || c.Frames > maxFrames:
		return fmt.Errorf("--frames %d: want 0 to %d", c.Frames, maxFrames)
	case c.Warmup < 0 || c.Warmup > maxWarmup:
		return fmt.Errorf("--warmup %v: want 0s to %v", c.Warmup, maxWarmup)
	case c.SendEvery < 0 || c.SendEvery > rpcdelta.MaxHeld:
		return fmt.Errorf("--send-every %d: want 1 to %d frames", c.SendEvery, rpcdelta.MaxHeld)
	case c.Distance != 0 && c.SendEvery > 1:
		return fmt.Errorf("--send-every %d: with --distance each frame has a payload of its own", c.SendEvery)
	case c.Distance >= c.Ring:
		return fmt.Errorf("--distance %d: want less than --ring %d", c.Distance, c.Ring)
	}
	return c.Link.Validate()
}

// scheme is a codec with its header sizes.
type scheme struct {
	name  string
	codec rpcdelta.Codec
	// header and ack are the sizes in bytes of a frame's header and of an ack, or 0 for those of
	// the codec.
	header, ack int
	preset      *client.Preset // or nil
}

// withPresets returns the scheme with each preset, if it knows presets and there are any.
func (s scheme) withPresets(presets []client.Preset) []scheme {
	if s.codec != rpcdelta.Adaptive || len(presets) == 0 {
		return []scheme{s}
	}
	out := make([]scheme, len(presets))
	for i := range presets {
		out[i] = s
		out[i].preset = &presets[i]
	}
	return out
}

// The paper's header is two sequence numbers. It does not give their size; its ack is one sequence
// number of 32 bits.
var schemes = []scheme{
	{name: "paper", codec: rpcdelta.RLE, header: 8, ack: 4},
	{name: "rle", codec: rpcdelta.RLE},
	{name: "adaptive", codec: rpcdelta.Adaptive},
}

// Schemes returns the names for Config.Schemes.
func Schemes() []string {
	var names []string
	for _, s := range schemes {
		names = append(names, s.name)
	}
	return names
}

func schemeOf(name string) (scheme, error) {
	i := slices.Index(Schemes(), name)
	if i < 0 {
		return scheme{}, fmt.Errorf("--codec %q: want some of %s", name, strings.Join(Schemes(), ", "))
	}
	return schemes[i], nil
}
