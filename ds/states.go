package ds

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/statesync"
)

// defaultBandwidth is the default of [StateConfig].Bandwidth.
const defaultBandwidth = 256_000

// Limits of the bandwidths of a StateConfig.
const (
	minBandwidth = 1_000
	maxBandwidth = 1_000_000_000
)

// StateConfig configures a [StateStream]. The zero value of each field means its default.
type StateConfig struct {
	// Bandwidth is the maximum bandwidth of the stream, in bits per second with all headers down to
	// IP, 1,000 to 1,000,000,000; default 256,000. Unused bandwidth is not saved up.
	// [StateStream.SetBandwidth] changes it.
	Bandwidth int
	// MinBandwidth, if it is not 0, enables rate control: the bandwidth follows the path between
	// MinBandwidth and Bandwidth. See [StateStream.Bandwidth].
	MinBandwidth int
	// InputTicks is the number of ticks for which a message repeats inputs that are not acked, up
	// to [statesync.MaxTicks]; default 16.
	InputTicks int
	// NoDelta disables deltas, for comparisons.
	NoDelta bool
}

func (c StateConfig) withDefaults() (StateConfig, error) {
	if c.Bandwidth == 0 {
		c.Bandwidth = defaultBandwidth
	}
	if c.InputTicks < 0 || c.InputTicks > statesync.MaxTicks {
		return c, fmt.Errorf("StateConfig.InputTicks is %d, want up to %d", c.InputTicks, statesync.MaxTicks)
	}
	return c, checkBandwidth(c.Bandwidth, c.MinBandwidth)
}

func checkBandwidth(bandwidth, least int) error {
	if bandwidth < minBandwidth || bandwidth > maxBandwidth {
		return fmt.Errorf("StateConfig.Bandwidth is %d bits a second, want %d to %d", bandwidth, minBandwidth, maxBandwidth)
	}
	if least != 0 && (least < minBandwidth || least > bandwidth) {
		return fmt.Errorf("StateConfig.MinBandwidth is %d bits a second, want 0, or %d up to Bandwidth, %d", least, minBandwidth, bandwidth)
	}
	return nil
}

// StateStream is a [World] as one player receives it whose client simulates too: the inputs of all
// players, and within a bandwidth the state of the objects with the highest priorities. Its methods
// are safe for concurrent use, except Send: see [World]. Until the client has subscribed, only
// SetViewer and SetBandwidth have an effect.
type StateStream[T any] struct{ playerStream }

// OfferState offers the world to a player as state, as [World.Offer] does as snapshots. A message
// contains the objects that fit, not all of them. The client subscribes with client.SubscribeState
// and starts from what its game knows: WorldConfig.Initial is not sent. A player receives a world
// by one codec at a time. An error names the unsupported tag of T or the field of cfg. A repeated
// offer returns the same stream with its settings.
func (w *World[T]) OfferState(p *Player, cfg StateConfig) (*StateStream[T], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("ds: world %s: %w", w.world.Name(), err)
	}
	to, err := w.streamsOf(p)
	if err != nil {
		return nil, err
	}
	s, err := w.world.OfferState(to, replication.StateConfig(cfg))
	if err != nil {
		return nil, err
	}
	return &StateStream[T]{playerStream{w.world, s}}, nil
}

// Prioritize sets an object's priority for the next message. Priorities accumulate until the object
// is sent. Call it for each object that may be sent, before Send. An object that never had a
// priority is never sent. One that has none any more is sent once more by what had accumulated, and
// again when it comes to rest if it was moving: put what a player must not know into a world of its
// own. Priorities are finite and at least 0, else the error is a [*statesync.PriorityError].
func (s *StateStream[T]) Prioritize(id uint16, priority float64) error {
	if !(priority >= 0) || math.IsInf(priority, 1) {
		return fmt.Errorf("ds: world %s: %w", s.world.Name(), &statesync.PriorityError{Object: id, Priority: priority})
	}
	return s.stream.State(func(snd *statesync.Sender) error { return snd.Prioritize(id, priority) })
}

// AddInputs adds the inputs of all players in a tick, in the game's own bytes and by ascending
// player: what the client needs to simulate the tick. They are repeated until they are acked, for
// StateConfig.InputTicks ticks. Ticks ascend and are those of the world; a tick may have inputs
// whether or not its state is sent. It is an error if the inputs are invalid.
func (s *StateStream[T]) AddInputs(tick uint64, inputs ...statesync.Input) error {
	if tick > replication.MaxTick {
		return fmt.Errorf("ds: world %s: inputs of tick %d, want up to %d", s.world.Name(), tick, uint64(replication.MaxTick))
	}
	return s.stream.State(func(snd *statesync.Sender) error { return snd.AddInputs(int64(tick), inputs...) })
}

// SetViewer sets the viewer object, relative to which positions of other objects may be coded.
func (s *StateStream[T]) SetViewer(id uint16) { s.stream.SetViewer(id) }

// SetBandwidth changes StateConfig.Bandwidth and MinBandwidth, from the next message on.
func (s *StateStream[T]) SetBandwidth(bandwidth, least int) error {
	if err := checkBandwidth(bandwidth, least); err != nil {
		return fmt.Errorf("ds: world %s: %w", s.world.Name(), err)
	}
	s.stream.SetBandwidth(bandwidth, least)
	return nil
}

// Bandwidth returns the bandwidth that the stream may use now, in bits per second. With
// StateConfig.MinBandwidth it is an estimate that starts there. While the bandwidth is used, the
// estimate grows by half at a time, until the round-trip time rises because of a queue, more than a
// tenth of the messages are lost, or acks are missing. Then it falls, and afterwards grows by a
// sixteenth of the whole range per second. Loss below a tenth is ignored, as it usually comes from
// a radio link. Acks of the client are trusted.
func (s *StateStream[T]) Bandwidth() int { return s.stream.Bandwidth() }
