package ds

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	istatesync "github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/statesync"
)

const defaultTickHz = 60

// ErrNotReady means that the client has not subscribed to the world, or has not received the
// world's initial state yet.
var ErrNotReady = replication.ErrNotReady

var errUncommitted = errors.New("ds: the tick is not committed: call Commit before Send of a stream")

// WorldConfig configures a [World]. The zero value of each field means its default.
type WorldConfig[T any] struct {
	// TickHz is the number of ticks per second, from which clients derive the world's time. 1 to
	// 1000; default 60.
	TickHz float64
	// SendHz is the maximum number of messages per second to each player: Send does nothing in the
	// other ticks. It is also the maximum number of acks per second from each client. 0.1 to
	// TickHz, which is the default.
	SendHz float64
	// Spread is the time over which Send spreads the datagrams to the players, to avoid a burst
	// that overflows queues. The first player's datagrams leave at once, and those of each other
	// player with the same delay in every tick. Up to 1/SendHz; default half of that. If Spread is
	// negative, all leave at once.
	Spread time.Duration
	// Initial puts the initial state, in ascending order of ids: the objects of a level. The first
	// snapshots are coded against it. A client with the same client.SnapshotConfig.Initial does not
	// receive it; other clients receive it before the first snapshot, over the reliable channel.
	// Nil means an empty state.
	Initial func(put func(id uint16, generation uint8, v *T) error) error
	// Areas enables areas of interest: each player receives only the objects in the areas that it
	// sees. See [World.Put] and [SnapshotStream.See]. Such a world has no Initial, and cannot be
	// offered with OfferState.
	Areas bool
	// EnterBytes is the number of bytes per message for objects that enter a player's view, with
	// Areas: if many enter at once, they are spread over ticks. One message may exceed it by the
	// objects of one group, up to 256. 64 to 32,768; default 600.
	EnterBytes int
}

const (
	minSendHz = 0.1 // clients interpolate between snapshots that are up to 10 s apart

	minEnterBytes     = 64
	defaultEnterBytes = 600
	maxEnterBytes     = 1 << 15
)

// World is a set of objects T that a server replicates to its players. T has the tags and types of
// the arguments of an RPC. A tick is
//
//	err := w.Begin(tick)
//	for ... {
//		err := w.Put(id, generation, &object) // in ascending order of ids
//	}
//	n, err := w.Send()
//
// Make all these calls in each tick of the game: Send sends at most WorldConfig.SendHz ticks a
// second. A tick that is not sent costs only the time of its Puts. It does not change the number or
// the sizes of the messages. A game that sends to each player by itself ends a tick with Commit,
// and calls Send of the players' streams.
//
// Put quantizes each object once, and again only if its value changes. A player to whom
// [World.Offer] offers the world receives snapshots, each a delta from one that its client acked. A
// player to whom [World.OfferState] offers it receives the state of the objects with the highest
// priorities, within a bandwidth. Begin, Put, Prioritize, Commit, Send, and Send of streams are for
// one goroutine at a time; all other methods are safe for concurrent use.
type World[T any] struct {
	*served
	quantizer replication.Quantizer[T]
}

// served is a world independent of its type of objects.
type served struct {
	joining  sync.Mutex
	server   atomic.Pointer[Server] // nil until the world belongs to a server; written with joining locked
	world    *replication.World
	ticks    *tickClock
	spreader *spreader
}

func (w *served) stats() ReplicationStats {
	st := w.world.Stats()
	st.Rate = w.ticks.rate()
	return st
}

// join adds the world to a server, unless it already belongs to that server.
func (w *served) join(s *Server) error {
	if w.server.Load() == s {
		return nil
	}
	w.joining.Lock()
	defer w.joining.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := w.world.Name()
	switch of := w.server.Load(); {
	case of == s:
	case of != nil:
		return fmt.Errorf("ds: world %s belongs to another server", name)
	case s.worlds[name] != nil:
		return fmt.Errorf("ds: there is a world %s already", name)
	default:
		s.worlds[name] = w
		w.world.FlushBy(s.ln.Flush)
		w.server.Store(s)
	}
	return nil
}

// streamsOf returns the player's streams, to which the world can be offered.
func (w *served) streamsOf(p *Player) (*replication.Replicas, error) {
	if err := w.join(p.server); err != nil {
		return nil, err
	}
	if s := p.streams.Load(); s != nil {
		return s, nil
	}
	// Players without worlds have no replicas.
	p.streams.CompareAndSwap(nil, replication.NewReplicas(downlink{p.conn, p.server, &p.bindings}))
	return p.streams.Load(), nil
}

func (w *served) offer(p *Player) (*SnapshotStream, error) {
	to, err := w.streamsOf(p)
	if err != nil {
		return nil, err
	}
	s, err := w.world.Offer(to)
	if err != nil {
		return nil, err
	}
	return &SnapshotStream{playerStream{p, w, s}}, nil
}

func (w *served) offerState(p *Player, cfg StateConfig) (*StateStream, error) {
	cfg.Bandwidth = cmp.Or(cfg.Bandwidth, defaultBandwidth)
	err := cmp.Or(between("InputTicks", cfg.InputTicks, 0, statesync.MaxTicks), checkBandwidth(cfg.Bandwidth, cfg.MinBandwidth))
	if err != nil {
		return nil, fmt.Errorf("ds: world %s: StateConfig.%w", w.world.Name(), err)
	}
	to, err := w.streamsOf(p)
	if err != nil {
		return nil, err
	}
	s, err := w.world.OfferState(to, replication.StateConfig(cfg))
	if err != nil {
		return nil, err
	}
	return &StateStream{playerStream: playerStream{p, w, s}}, nil
}

// NewWorld adds a world to a server. Its name identifies it to clients, and to [Player.Offer]. The
// server may be nil, for a world that is declared before [Listen]: it belongs to the server of the
// first player to whom [World.Offer] or [World.OfferState] offers it. An error names the field of T
// that is not supported, the field of the configuration, or the object of the initial state.
func NewWorld[T any](s *Server, name string, cfg WorldConfig[T]) (*World[T], error) {
	if name == "" || len(name) > replication.MaxName {
		return nil, fmt.Errorf("ds: a world's name has %d bytes, want 1 to %d", len(name), replication.MaxName)
	}
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	cfg.TickHz = cmp.Or(cfg.TickHz, defaultTickHz)
	cfg.SendHz = cmp.Or(cfg.SendHz, cfg.TickHz)
	if err := cmp.Or(between("TickHz", cfg.TickHz, 1, replication.MaxRate), between("SendHz", cfg.SendHz, minSendHz, cfg.TickHz)); err != nil {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.%w", name, err)
	}
	interval := replication.Interval(cfg.SendHz)
	if cfg.Spread > interval {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.Spread is %v, want up to %v", name, cfg.Spread, interval)
	}
	cfg.EnterBytes = cmp.Or(cfg.EnterBytes, defaultEnterBytes)
	if err := between("EnterBytes", cfg.EnterBytes, minEnterBytes, maxEnterBytes); err != nil {
		return nil, fmt.Errorf("ds: world %s: WorldConfig.%w", name, err)
	}
	w, err := replication.NewWorld(typ, name, cfg.TickHz, cfg.SendHz, cfg.Initial)
	if err == nil && cfg.Areas {
		err = w.WithAreas(cfg.EnterBytes)
	}
	if err != nil {
		return nil, err
	}
	served := &served{world: w, ticks: newTickClock("world "+name, cfg.TickHz, interval), spreader: newSpreader(w, max(0, cmp.Or(cfg.Spread, interval/2)))}
	if s != nil {
		err = served.join(s)
	}
	if err != nil {
		return nil, err
	}
	return &World[T]{served, replication.NewQuantizer(typ)}, nil
}

// Begin begins a tick, whose number must be higher than those before it; ticks may be skipped. If
// the tick before was not sent, its objects are discarded. A tick that is more than 73 years after
// tick 0 at WorldConfig.TickHz is an error: it is most likely a time in another unit.
//
// Clients play at the rate at which ticks begin, measured over the last seconds, from a quarter to
// twice WorldConfig.TickHz. The rate is in Stats; an [Event] reports when it leaves 1 ± 0.05. A
// server that was overloaded skips the ticks that it missed, or runs them at once, so that the
// world does not fall behind.
func (w *World[T]) Begin(tick uint64) error {
	if err := w.world.Begin(tick); err != nil {
		return err
	}
	w.ticks.tick(w.server.Load(), time.Now(), replication.TickTime(tick, w.ticks.hz))
	return nil
}

// Put adds a copy of an object to the tick that Begin began. Ids ascend; objects that use the same
// id one after the other differ in the generation: an [IDPool] hands out both. With
// WorldConfig.Areas, the object is in up to 16 areas in this tick, and only players that see one of
// them receive it; without any, all players do. If a value is out of its field's range, the error
// names the object and the field, and the object is not added.
func (w *World[T]) Put(id uint16, generation uint8, v *T, in ...area.ID) error {
	return put(w.world, 0, &w.quantizer, snapshot.Object{ID: id, Generation: generation}, v, in)
}

func put[T any](w *replication.World, number int, q *replication.Quantizer[T], o snapshot.Object, v *T, in []area.ID) error {
	var row []int32
	if w.Open() != nil { // otherwise Put returns an error
		var err error
		if row, err = q.Row(o.ID, v); err != nil {
			return fmt.Errorf("ds: world %s: put object %d: %w", w.Name(), o.ID, err)
		}
	}
	return w.Put(number, o, row, in...)
}

// ObjectType is a further type of objects of a world: see [AddType].
type ObjectType[T any] struct {
	world     *replication.World
	number    int
	quantizer replication.Quantizer[T]
}

// AddType adds a type of objects to a world with WorldConfig.Areas, before its first tick and its
// first offer. Clients receive its objects together with those of the world, and declare the type
// when they subscribe: see client.NewObjectType. Each type has ids of its own. For fields that only
// one player may know, add a type, and put its objects into an area that only this player sees.
func AddType[T, W any](w *World[W], name string) (*ObjectType[T], error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	n, err := w.world.AddType(name, versions.Descriptions(typ.Source()), typ.Schema())
	if err != nil {
		return nil, err
	}
	return &ObjectType[T]{w.world, n, replication.NewQuantizer(typ)}, nil
}

// Put adds an object to the tick of the world, as [World.Put] does.
func (t *ObjectType[T]) Put(id uint16, generation uint8, v *T, in ...area.ID) error {
	return put(t.world, t.number, &t.quantizer, snapshot.Object{ID: id, Generation: generation}, v, in)
}

// Prioritize sets an object's priority for all players to whom OfferState offers the world, until
// it is changed; default 0. [StateStream.Prioritize] sets another one for one player, for example
// by the distance from its own object. An error names the object, or the unsupported tag of T.
func (w *World[T]) Prioritize(id uint16, priority float64) error {
	return w.world.Prioritize(id, priority)
}

// Commit ends the tick, which Send of streams can then send. [World.Send] does so itself.
func (w *World[T]) Commit() { w.world.Commit() }

// Send ends the tick. If WorldConfig.SendHz permits a message in it, Send sends it to all players
// whose clients have subscribed, each by the codec of its offer, and returns the number of these
// players. The others are not ready, have received the tick already, or have no bandwidth for it
// yet. SendHz counts in ticks: with 60 ticks and 25 messages a second, there are two or three ticks
// from one message to the next. Send returns when all messages are encoded; those that
// have not left by then leave in the background, over WorldConfig.Spread, or at the latest with the
// next Send. Send uses several goroutines if there are many players. The error is the first one of
// a player, such as a snapshot of more than 64 datagrams.
func (w *World[T]) Send() (int, error) {
	if w.server.Load() == nil {
		w.Commit()
		return 0, nil // the world was not offered to any player
	}
	return w.spreader.send()
}

// Stats returns the counts of all players.
func (w *World[T]) Stats() ReplicationStats { return w.stats() }

// SnapshotStream replicates a [World] to one player as snapshots.
type SnapshotStream struct{ playerStream }

// Offer offers the world to a player as snapshots, in Config.Joined for example. The world
// is sent after the client has subscribed with client.SubscribeSnapshots and has the initial state.
// A repeated offer returns the same stream.
func (w *World[T]) Offer(p *Player) (*SnapshotStream, error) { return w.offer(p) }

// See replaces the areas whose objects the player sees. They are listed by descending priority. If
// many objects enter the view at once, those of the first areas are sent first. Clients forget
// objects that leave the view. It has no effect without WorldConfig.Areas.
func (s *SnapshotStream) See(areas ...area.ID) { s.stream.See(areas) }

// playerStream is the common part of the streams of both codecs.
type playerStream struct {
	player *Player
	of     *served
	stream *replication.Replica
}

// Send sends the world's newest tick to this player alone, for games that send to some players less
// often than to others. It returns [ErrNotReady] while the client has not subscribed. Each tick is
// sent at most once, and at most WorldConfig.SendHz of them a second. A state stream sends only if
// the bandwidth has room for more than headers. Other errors are those of the codec, such as
// [statesync.ErrBudget] if no object fits the bandwidth, or wrap net.ErrClosed.
func (s playerStream) Send() error {
	if s.of.world.Open() != nil {
		return errUncommitted
	}
	defer s.of.world.Flush()
	return s.stream.Send(time.Now())
}

// SendReliable sends a copy of a message of up to [MaxMessage] bytes to the player. The client
// delivers it with the first snapshot or update of that tick of the world or a later one, so that
// an effect is not announced before the state that shows it: see client.SnapshotConfig.OnMessage.
// Messages of one stream arrive in order; against those of [Player.SendReliable] there is no order.
// Errors are [ErrNotReady] while the client has not subscribed, and those of Player.SendReliable.
func (s playerStream) SendReliable(tick uint64, message []byte) error {
	return s.stream.SendGameMessage(tick, message)
}

// Ready reports whether the client has subscribed and has the initial state.
func (s playerStream) Ready() bool { return s.stream.Ready() }

// Stats returns the counts of this player.
func (s playerStream) Stats() ReplicationStats { return s.stream.Stats() }

// RTT returns the player's round-trip time.
func (s playerStream) RTT() time.Duration { return s.stream.RTT() }

// Viewer estimates the age of the world that the player sees, and the ticks that its client shows,
// for [rewind.History.Seen]. now is the server time: the time since tick 0 at WorldConfig.TickHz.
// The game sets Waited and Delay.
func (s playerStream) Viewer(now time.Duration) rewind.Viewer {
	v := rewind.Viewer{RTT: s.player.conn.RTT(), MinRTT: s.player.conn.MinRTT()}
	v.Rate, v.Unsettled = s.of.ticks.viewer(time.Now())
	sent, acked := s.stream.Newest()
	age := func(tick uint64) time.Duration {
		return max(1, now-time.Duration(float64(tick)*float64(time.Second)/s.stream.TickHz()))
	}
	if sent != 0 {
		v.SentAge = age(sent)
	}
	if acked != 0 {
		v.AckAge = age(acked)
	}
	v.Ticks = s.stream.Shown(nil)
	return v
}

// Stop ends the stream and informs the client. The world can be offered again, by either codec.
func (s playerStream) Stop() { s.stream.Stop() }

// Bandwidths of a StateConfig, in bits per second.
const (
	minBandwidth     = 1_000
	defaultBandwidth = 256_000
	maxBandwidth     = 1_000_000_000
)

// StateConfig configures a [StateStream]. The zero value of each field means its default.
type StateConfig struct {
	// Bandwidth is the maximum bandwidth of the stream, in bits per second with all headers down to
	// IP, 1,000 to 1,000,000,000; default 256,000. Unused bandwidth is not saved up.
	// [StateStream.SetBandwidth] changes it.
	Bandwidth int
	// MinBandwidth is the bandwidth to which congestion of the path reduces the stream at most, up
	// to Bandwidth; 0 means no minimum. See [StateStream.Bandwidth].
	MinBandwidth int
	// InputTicks is the number of ticks for which a message repeats inputs that are not acked, up
	// to [statesync.MaxTicks]; default 16.
	InputTicks int
}

// checkBandwidth checks StateConfig.Bandwidth and MinBandwidth.
func checkBandwidth(bandwidth, least int) error {
	return cmp.Or(
		between("Bandwidth", bandwidth, minBandwidth, maxBandwidth),
		between("MinBandwidth", cmp.Or(least, minBandwidth), minBandwidth, bandwidth),
	)
}

// StateStream replicates a [World] to one player whose client simulates the world too. It sends the
// inputs of all players and, within a bandwidth, the state of the objects with the highest
// priorities. Its methods are safe for concurrent use, except Send: see [World]. Until the client
// has subscribed, only SetViewer and SetBandwidth have an effect.
type StateStream struct {
	playerStream
	inputs []istatesync.Input // scratch of AddInputs, guarded by stream.State
}

// OfferState offers the world to a player by state synchronization; [World.Offer] offers it as
// snapshots. A message contains only the objects that fit. The client subscribes with
// client.SubscribeState and starts from what its game knows: WorldConfig.Initial is not sent. A
// player receives a world by one codec at a time. An error names the unsupported tag of T or the
// field of cfg. A repeated offer returns the same stream with its settings.
func (w *World[T]) OfferState(p *Player, cfg StateConfig) (*StateStream, error) {
	return w.offerState(p, cfg)
}

// Prioritize sets an object's priority for the next message, instead of that of [World.Prioritize].
// Call it before Send. Priorities accumulate until the object is sent. An object that never had a
// priority is never sent. An object that no longer gets a priority may still be sent: once because
// of its accumulated priority, and again when it comes to rest if it was moving. Put objects that a
// player must not know into a separate world. A priority must be finite and at least 0, otherwise
// the error names the object.
func (s *StateStream) Prioritize(id uint16, priority float64) error {
	return s.stream.State(func(snd *istatesync.Sender) error { return snd.Prioritize(id, priority) })
}

// AddInputs adds the inputs of all players in a tick, by ascending player, which the client needs
// to simulate the tick. The game chooses their format. They are repeated until they are acked, but
// at most for StateConfig.InputTicks ticks. The ticks are those of the world and must ascend. A
// tick may have inputs whether or not its state is sent. AddInputs returns an error if the inputs
// are invalid.
func (s *StateStream) AddInputs(tick uint64, inputs ...statesync.Input) error {
	if err := s.of.world.SnapshotOffer().CheckTick(tick); err != nil {
		return err
	}
	return s.stream.State(func(snd *istatesync.Sender) error {
		s.inputs = s.inputs[:0]
		for _, i := range inputs {
			s.inputs = append(s.inputs, istatesync.Input(i))
		}
		return snd.AddInputs(int64(tick), s.inputs...)
	})
}

// SetViewer sets the viewer object, relative to which positions of other objects may be coded.
func (s *StateStream) SetViewer(id uint16) { s.stream.SetViewer(id) }

// SetBandwidth changes StateConfig.Bandwidth and MinBandwidth, from the next message on.
func (s *StateStream) SetBandwidth(bandwidth, least int) error {
	if err := checkBandwidth(bandwidth, least); err != nil {
		return fmt.Errorf("ds: world %s: StateConfig.%w", s.of.world.Name(), err)
	}
	s.stream.SetBandwidth(bandwidth, least)
	return nil
}

// Bandwidth returns the bandwidth that the stream may use now, in bits per second: the rate that
// the path is known to carry, between StateConfig.MinBandwidth and Bandwidth. It begins at 393,216,
// and grows while messages use it and arrive.
func (s *StateStream) Bandwidth() int { return s.stream.Bandwidth() }
