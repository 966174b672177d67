package ds

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/statesync"
)

// defaultBandwidth is that of a [StateConfig].
const defaultBandwidth = 256_000

// Bounds of a StateConfig's bandwidths.
const (
	leastBandwidth = 1_000
	mostBandwidth  = 1_000_000_000
)

// StateConfig says how a world's state goes to a player. The zero value of each field means its default.
type StateConfig struct {
	// Bandwidth is how many bits a second it may take, headers down to IP counted, 1,000 to 1,000,000,000; default
	// 256,000. [StateStream.SetBandwidth] changes it. What is not used is not saved up.
	Bandwidth int
	// MinBandwidth, if it is not 0, has the bandwidth follow the connection between it and Bandwidth: less where packets
	// are lost or held up, more while they are not. See [StateStream.Bandwidth].
	MinBandwidth int
	// InputTicks is of how many ticks a message repeats the inputs as long as they are not acked, up to
	// [statesync.MaxTicks]; default [statesync.DefaultTicks].
	InputTicks int
	// NoDelta has every update sent whole, to compare with.
	NoDelta bool
}

func (c StateConfig) withDefaults() (StateConfig, error) {
	if c.Bandwidth == 0 {
		c.Bandwidth = defaultBandwidth
	}
	return c, c.check()
}

func (c *StateConfig) check() error {
	if c.Bandwidth < leastBandwidth || c.Bandwidth > mostBandwidth {
		return fmt.Errorf("StateConfig.Bandwidth is %d bits a second, want %d to %d", c.Bandwidth, leastBandwidth, mostBandwidth)
	}
	if c.MinBandwidth != 0 && (c.MinBandwidth < leastBandwidth || c.MinBandwidth > c.Bandwidth) {
		return fmt.Errorf("StateConfig.MinBandwidth is %d bits a second, want 0, or %d up to Bandwidth, %d", c.MinBandwidth, leastBandwidth, c.Bandwidth)
	}
	if c.InputTicks < 0 || c.InputTicks > statesync.MaxTicks {
		return fmt.Errorf("StateConfig.InputTicks is %d, want up to %d", c.InputTicks, statesync.MaxTicks)
	}
	return nil
}

// StateStream is what one player gets of a [World] whose client simulates, too: the inputs of all, and within a bandwidth
// the state of those objects whose turn it is by their priorities. Its methods are safe for concurrent use, but for
// Send, which [World] speaks of. What is said before the client takes part is kept of SetViewer and SetBandwidth alone.
type StateStream[T any] struct {
	world *World[T]
	down  *downstream
	way   *stateWay
}

// OfferState offers the world to a player as state, as [World.Offer] does as snapshots: of each tick not all objects are
// sent, but what fits. The client takes part with client.SubscribeState, and starts from what its game knows:
// WorldConfig.Initial is not sent. A player gets a world by one of the two at a time. An error says what is wrong with
// T's tags, or with cfg. Offered once more it gives the same, as it is set.
func (w *World[T]) OfferState(p *Player, cfg StateConfig) (*StateStream[T], error) {
	t, err := w.stateTerms()
	if err == nil {
		cfg, err = cfg.withDefaults()
	}
	if err != nil {
		return nil, fmt.Errorf("ds: world %s: %w", w.w.source.name, err)
	}
	d, err := p.offer(&w.w.source, &stateWay{world: &w.w, offered: t, player: p, cfg: cfg})
	if err != nil {
		return nil, err
	}
	return &StateStream[T]{w, d, d.way.(*stateWay)}, nil
}

// stateTerms describes the world's objects, when that is first needed.
func (w *World[T]) stateTerms() (*stateTerms, error) {
	w.w.stating.Lock()
	defer w.w.stating.Unlock()
	if w.w.states != nil {
		return w.w.states, nil
	}
	o := w.w.snapshots.offer
	s, err := worlds.StatesOf(w.typ, o.TickHz)
	if err != nil {
		return nil, err
	}
	t := &stateTerms{shared: s}
	t.terms.offer = control.DownOffer{Name: o.Name, Codec: worlds.StateCodec, Fields: s.Fields, RateHz: o.RateHz, TickHz: o.TickHz}
	w.w.states = t
	return t, t.terms.offer.Check()
}

// Prioritize gives an object's priority for the next message that is sent to the player, where what was given for those
// before adds up until the object is sent. To be called for each object that may be sent, before Send. An object that never had one
// is never sent; one that has none any more is sent once more, by what had added up, and, if it moved when it last was, as it comes to
// rest: what a player must not know belongs into a world of its own. Priorities are numbers of 0 or above, else it is a
// [*statesync.PriorityError].
func (s *StateStream[T]) Prioritize(id uint16, priority float64) error {
	if !(priority >= 0) || math.IsInf(priority, 1) {
		return fmt.Errorf("ds: world %s: %w", s.world.w.source.name, &statesync.PriorityError{Object: id, Priority: priority})
	}
	return s.with(func(o *stateOutlet) error { return o.sender.Prioritize(id, priority) })
}

// AddInputs gives all players' inputs of a tick, in the game's own form and by ascending player: what the client needs to
// simulate that tick. They are sent until they are acked, for as long as StateConfig.InputTicks. Ticks ascend and are the
// world's, but every one of the game can have inputs, sent or not. An error says what is wrong with them.
func (s *StateStream[T]) AddInputs(tick uint64, inputs ...statesync.Input) error {
	if tick > worlds.MaxTick {
		return fmt.Errorf("ds: world %s: inputs of tick %d, want up to %d", s.world.w.source.name, tick, uint64(worlds.MaxTick))
	}
	return s.with(func(o *stateOutlet) error { return o.sender.AddInputs(int64(tick), inputs...) })
}

// with calls f with what codes the messages, if the client takes part.
func (s *StateStream[T]) with(f func(*stateOutlet) error) error {
	s.down.mu.Lock()
	defer s.down.mu.Unlock()
	o, ok := s.down.outlet.(*stateOutlet)
	if !ok {
		return nil
	}
	if err := f(o); err != nil {
		return fmt.Errorf("ds: world %s: %w", s.world.w.source.name, err)
	}
	return nil
}

// SetViewer names the object that places of others are told from where that is shorter: the player's own.
func (s *StateStream[T]) SetViewer(id uint16) {
	s.down.mu.Lock()
	defer s.down.mu.Unlock()
	s.way.viewer, s.way.sees = id, true
	if o, ok := s.down.outlet.(*stateOutlet); ok {
		o.sender.SetViewer(id)
	}
}

// SetBandwidth changes StateConfig.Bandwidth, and MinBandwidth, from the next message on.
func (s *StateStream[T]) SetBandwidth(bandwidth, least int) error {
	s.down.mu.Lock()
	defer s.down.mu.Unlock()
	cfg := s.way.cfg
	cfg.Bandwidth, cfg.MinBandwidth = bandwidth, least
	if err := cfg.check(); err != nil {
		return fmt.Errorf("ds: world %s: %w", s.world.w.source.name, err)
	}
	s.way.cfg = cfg
	if o, ok := s.down.outlet.(*stateOutlet); ok {
		o.limit()
	}
	return nil
}

// Bandwidth is how many bits a second may be taken now. With StateConfig.MinBandwidth it is an estimate: from there it
// grows while it is used, by half at a time until the round trip rises by what waits in a queue on the way, more than a
// tenth of the messages are lost, or none is acked. Then it falls, and from then on grows by a sixteenth of the whole range a
// second. Loss below a tenth does not count: it is most likely the radio's. What a client acks it is believed.
func (s *StateStream[T]) Bandwidth() int {
	s.down.mu.Lock()
	defer s.down.mu.Unlock()
	if o, ok := s.down.outlet.(*stateOutlet); ok {
		return int(o.bandwidth())
	}
	return s.way.cfg.Bandwidth
}

// Send sends the world's newest tick to this player alone, as [SnapshotStream.Send] does. While the bandwidth has no room yet
// for a message that is worth its headers it does nothing; where it never will, since not even one object fits, the
// error wraps [statesync.ErrBudget].
func (s *StateStream[T]) Send() error { return s.world.sendTo(s.down) }

// Ready says whether the client takes part.
func (s *StateStream[T]) Ready() bool {
	st := s.down.counted()
	return st.Ready > 0
}

// Stats gives what was counted for this player.
func (s *StateStream[T]) Stats() ReplicationStats { return s.down.counted() }

// RTT is the player's.
func (s *StateStream[T]) RTT() time.Duration { return s.down.player.RTT() }

// Stop ends it: no more is sent, and the client is told. The world can be offered again, by either codec.
func (s *StateStream[T]) Stop() { s.down.quit() }

// sendTo sends the newest tick to one player.
func (w *World[T]) sendTo(d *downstream) error {
	if w.w.open != nil {
		return errUncommitted
	}
	if err := d.send(); !errors.Is(err, errNothing) {
		return err
	}
	return nil
}
