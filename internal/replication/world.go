package replication

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// World is a server's world: the most recent ticks that were sent, and a replica for each player.
// Begin, Put, Open, Commit, Send and Replica.Send are for one goroutine at a time. All other
// methods are safe for concurrent use.
//
// A tick becomes a snapshot, with a number, when it is sent to the first player. The next tick
// replaces a tick that was not sent. So the tick rate of a game does not affect the distances
// between snapshots and their baselines.
type World struct {
	hub
	name   string
	schema *snapshot.Schema
	sets   *snapshot.History
	open   *snapshot.Set // set that is being filled, or nil
	newest *snapshot.Set
	ticks  Ticks
	// begun is the number of snapshots. It includes the newest tick, which may not be a snapshot
	// yet.
	begun uint64
	last  uint64 // newest tick
	pace  pacer  // limits Send
	count uint64 // number of ticks, for Stats

	areas *areaWorld // replaces sets in a world with areas; otherwise nil
	plan  plan
	// planned is the value of begun at the last plan. If it equals begun, the newest tick is a
	// snapshot.
	planned   uint64
	rate      float64 // measured number of snapshots per second
	encodings encodings

	snapshots mode
	states    mode
	state     *stateWorld
	stateErr  error // reason why objects of this type cannot be sent as state, or nil
}

// NewWorld returns a world of objects T without ticks, with the initial state that initial puts.
func NewWorld[T any](typ *snapshot.Type[T], name string, tickHz, sendHz float64, initial func(put func(id uint16, generation uint8, v *T) error) error) (*World, error) {
	start, err := Fill(typ, initial)
	if err != nil {
		return nil, fmt.Errorf("replication: world %s: WorldConfig.Initial: %w", name, err)
	}
	w, err := NewWorldOfSets(name, versions.Descriptions(typ.Source()), start, tickHz, sendHz)
	if err != nil {
		return nil, err
	}
	w.stateErr = nil
	f, err := StateFormatOf(typ)
	if err == nil {
		w.state, err = f.newWorld(tickHz)
	}
	if err == nil {
		w.states.offer = Offer{Name: name, Codec: StateCodec, Fields: f.Fields, RateHz: sendHz, TickHz: tickHz}
		for _, v := range w.state.config.Velocities {
			w.states.offer.PerTick = append(w.states.offer.PerTick, v.PerTick)
		}
	}
	if err != nil {
		w.stateErr = fmt.Errorf("replication: world %s: %w", name, err)
	}
	return w, nil
}

// NewWorldOfSets returns a world of objects that are quantized already and that fields describe,
// with an initial state. It cannot be offered as state.
func NewWorldOfSets(name string, fields []string, start *snapshot.Set, tickHz, sendHz float64) (*World, error) {
	w := &World{name: name, schema: start.Schema(), sets: snapshot.NewHistory(start.Schema(), start)}
	w.stateErr = fmt.Errorf("replication: world %s: it has no velocities", name)
	w.interval = tickHz / sendHz
	w.encodings = encodings{world: w, interval: max(1, uint64(sendHz/keyframesPerSecond)), messages: map[snapshot.Baseline]*encoding{}, shared: map[snapshot.Baseline]uint64{}}
	w.prepare, w.plan.room = w.choose, maxEncodings
	o := Offer{Name: name, Codec: SnapshotCodec, Fields: fields, RateHz: sendHz, TickHz: tickHz, Hash: Hash(start)}
	var err error
	if w.snapshots.initial, err = encodeInitial(w.schema, start, MaxInitial); err != nil {
		return nil, fmt.Errorf("replication: world %s: WorldConfig.Initial: %w", name, err)
	}
	o.Initial = len(w.snapshots.initial)
	if w.snapshots.offer = o; o.check() != nil {
		return nil, fmt.Errorf("replication: world %s: %w", name, o.check())
	}
	return w, nil
}

// Offer offers the world to a player as snapshots. A repeated offer returns the same replica. It is
// an error if the world is already offered as state.
func (w *World) Offer(to *Replicas) (*Replica, error) {
	if w.areas != nil {
		return to.offer(&w.hub, &w.snapshots, &areaSender{world: w, player: to.player})
	}
	return to.offer(&w.hub, &w.snapshots, &snapshotSender{world: w, player: to.player})
}

// OfferState offers the world to a player as state. A repeated offer returns the same replica and
// ignores cfg. It is an error if the world is already offered as snapshots.
func (w *World) OfferState(to *Replicas, cfg StateConfig) (*Replica, error) {
	if w.stateErr != nil {
		return nil, w.stateErr
	}
	return to.offer(&w.hub, &w.states, &stateSender{
		world: w, player: to.player, rateHz: w.states.offer.RateHz, overhead: 1 + int(to.player.Overhead()), cfg: cfg,
	})
}

// Stats returns the counts of all players, past ones included.
func (w *World) Stats() Stats {
	w.mu.Lock()
	st, replicas := w.past, slices.Clone(w.replicas)
	st.Ticks = w.count
	w.mu.Unlock()
	for _, s := range replicas {
		one := s.Stats()
		st.Add(&one)
	}
	st.Name, st.TickHz = w.name, w.snapshots.offer.TickHz
	st.Encodings = w.encodings.total.Load()
	if w.areas != nil {
		st.Encodings = w.areas.Encodings.Load()
	}
	return st
}

// Name returns the name of the world.
func (w *World) Name() string { return w.name }

// Begin begins a tick. The tick must be higher than the ticks before it, and valid for
// [Offer.CheckTick].
func (w *World) Begin(tick uint64) error {
	if err := w.snapshots.offer.CheckTick(tick); err != nil {
		return err
	}
	if w.begun > 0 && tick <= w.last {
		return fmt.Errorf("replication: world %s: tick %d after %d, want ascending ones", w.name, tick, w.last)
	}
	if w.planned == w.begun {
		w.open = w.sets.Begin()
		w.begun++
	} else {
		w.open = w.sets.Again()
	}
	if w.areas != nil {
		w.areas.reset()
	}
	n := w.begun - 1
	w.ticks.Set(uint16(n), tick)
	w.hub.ticks[n%snapshot.Ring].Store(tick)
	w.mu.Lock()
	w.count++
	w.mu.Unlock()
	w.last = tick
	w.tick.Store(tick)
	return nil
}

// Newest returns the objects of the newest tick that was committed. It is empty in a world with
// areas.
func (w *World) Newest() *snapshot.Set { return w.newest }

// SnapshotOffer returns the offer of the world as snapshots, without a number.
func (w *World) SnapshotOffer() *Offer { return &w.snapshots.offer }

// Encodes returns the number of encodings of the newest tick, or of its groups.
func (w *World) Encodes() int {
	if w.areas != nil {
		return w.areas.Encodes()
	}
	return int(w.encodings.count.Load())
}

// Open returns the set of the tick that Begin began, or nil after Commit.
func (w *World) Open() *snapshot.Set { return w.open }

// Commit ends the tick.
func (w *World) Commit() {
	if w.open == nil {
		return
	}
	w.newest, w.open = w.open, nil
}

// Send ends the tick, as Commit does, and sends it by [World.Broadcast]. It sends at most as many
// ticks per second as the world's message rate, and returns 0 for the others.
func (w *World) Send(clock func() time.Time, spread time.Duration) (int, error) {
	w.Commit()
	if w.planned != w.begun && !w.pace.take(w.last, w.interval) || w.begun == 0 {
		return 0, nil
	}
	return w.Broadcast(clock, spread)
}

// pacer limits the number of ticks that are sent per second. The zero value is ready.
type pacer struct {
	next float64 // the next tick that may be sent
}

// paceTolerance is the number of ticks by which a tick may precede pacer.next, which is subject to
// rounding.
const paceTolerance = 0.01

// due reports whether a tick may be sent.
func (p *pacer) due(tick uint64) bool { return float64(tick)+paceTolerance >= p.next }

// take reports whether a tick may be sent, and counts it if so. interval is the minimum mean number
// of ticks from one sent tick to the next. A late tick does not delay the next one.
func (p *pacer) take(tick uint64, interval float64) bool {
	if !p.due(tick) {
		return false
	}
	p.next = max(p.next+interval, float64(tick)+2*paceTolerance)
	return true
}

// choose makes the newest tick a snapshot and chooses its baselines, unless that was done before.
func (w *World) choose(replicas []*Replica, now time.Time) {
	if w.planned == w.begun {
		return
	}
	w.planned = w.begun
	if w.areas != nil {
		w.areas.apply()
	}
	w.rate = w.measured()
	w.releaseAll() // waiting messages are in memory that encodings.begin reuses
	w.encodings.begin()
	w.plan.reset()
	for _, s := range replicas {
		s.mu.Lock()
		if p, ok := s.sender.(interface {
			baselines(now time.Time) (c clientBaselines, ok bool)
		}); ok {
			if c, ok := p.baselines(now); ok {
				w.plan.add(c)
			}
		}
		s.mu.Unlock()
	}
	w.plan.owe(int(w.encodings.owed.Swap(0)))
	w.plan.choose()
}

// measured returns the number of snapshots per second over the last 16 snapshots. It may be lower
// than the message rate of the offer. It is higher if players receive different ticks.
func (w *World) measured() float64 {
	const last = 16
	o := &w.snapshots.offer
	n := w.begun - 1
	if n < last {
		return o.RateHz
	}
	return last * o.TickHz / float64(w.ticks[n%snapshot.Ring]-w.ticks[(n-last)%snapshot.Ring])
}

// every returns the number of snapshots from one message of a player to the next. It is 1 unless
// players receive different ticks.
func (w *World) every() int { return max(1, int(math.Round(w.rate/w.snapshots.offer.RateHz))) }

const (
	// MaxTick is the highest tick of a world.
	MaxTick = 1<<53 - 1
	// maxTime is the maximum time of a tick since tick 0: 73 years, the maximum of package
	// interpolate.
	maxTime = time.Duration(1) << 61
)

// ValidTick reports whether a tick is valid in a world with tickHz ticks per second: see
// [Offer.CheckTick].
func ValidTick(tick uint64, tickHz float64) bool {
	return tick <= MaxTick && TickTime(tick, tickHz) <= maxTime
}

// Ticks is a ring of the ticks of the most recent snapshots, by sequence number. It encodes the
// tick that precedes a snapshot's payload. The code is a signed varint: the tick minus the tick
// that the snapshot would have if a snapshot had been sent in every tick since its baseline. The
// zero value is ready.
type Ticks [snapshot.Ring]uint64

// Set stores the tick of a snapshot.
func (t *Ticks) Set(seq uint16, tick uint64) { t[seq%snapshot.Ring] = tick }

// expected returns the tick that the difference refers to. A distance of 0 means no baseline.
func (t *Ticks) expected(seq uint16, distance int) uint64 {
	if distance == 0 {
		return 0
	}
	return t[(seq-uint16(distance))%snapshot.Ring] + uint64(distance)
}

// age returns the number of ticks between a snapshot and its baseline, 0 if it has none.
func (t *Ticks) age(seq uint16, distance int) uint64 {
	if distance == 0 {
		return 0
	}
	return t[seq%snapshot.Ring] - t[(seq-uint16(distance))%snapshot.Ring]
}

// Append appends the code of a snapshot's tick, at most binary.MaxVarintLen64 bytes.
func (t *Ticks) Append(dst []byte, seq uint16, distance int) []byte {
	return binary.AppendVarint(dst, int64(t[seq%snapshot.Ring]-t.expected(seq, distance)))
}

// parseTick splits a message into the code of its tick, which resolve decodes, and the payload.
func parseTick(message []byte) (difference int64, payload []byte, err error) {
	difference, n := binary.Varint(message)
	if n <= 0 || difference < -MaxTick || difference > MaxTick {
		return 0, nil, fmt.Errorf("%w: no tick before the payload", snapshot.ErrMalformed)
	}
	return difference, message[n:], nil
}

// resolve returns and stores the tick of a snapshot, in a world with tickHz ticks per second. The
// ring must contain the tick of the snapshot's baseline.
func (t *Ticks) resolve(seq uint16, distance int, difference int64, tickHz float64) (uint64, error) {
	tick := t.expected(seq, distance) + uint64(difference)
	if !ValidTick(tick, tickHz) {
		return 0, fmt.Errorf("%w: tick %d of snapshot %d, with %v ticks a second", snapshot.ErrMalformed, int64(tick), seq, tickHz)
	}
	t.Set(seq, tick)
	return tick, nil
}

// WithAreas configures a new world so that each client sees some of its areas. enter is the maximum
// number of bytes per message for keyframes of groups that enter a client's view.
func (w *World) WithAreas(enter int) error {
	if len(w.snapshots.initial) > 0 {
		return fmt.Errorf("replication: world %s: WorldConfig.Initial and Areas: want one of them", w.name)
	}
	w.areas = &areaWorld{History: areas.NewHistory(), enter: enter}
	w.areas.add(w.schema)
	w.plan.room = areaEncodings
	w.snapshots.offer.Areas = true
	w.stateErr = fmt.Errorf("replication: world %s: it has areas, so it cannot be sent as state", w.name)
	return nil
}

// AddType adds a type of objects to a world with areas that has not been offered, and returns its
// number.
func (w *World) AddType(name string, fields []string, s *snapshot.Schema) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	offer := w.snapshots.offer
	offer.Types = append(offer.Types, OfferedType{Name: name, Fields: fields})
	switch {
	case w.areas == nil:
		return 0, fmt.Errorf("replication: world %s: type %s: set WorldConfig.Areas", w.name, name)
	case len(w.replicas) > 0 || w.begun > 0:
		return 0, fmt.Errorf("replication: world %s: type %s: add it before the first tick and the first offer", w.name, name)
	case offer.check() != nil:
		return 0, fmt.Errorf("replication: world %s: type %s: %w", w.name, name, offer.check())
	}
	w.snapshots.offer = offer
	w.areas.add(s)
	return len(w.areas.types) - 1, nil
}

// Put adds an object of a type to the tick that Begin began. Ids must ascend.
func (w *World) Put(typ int, o snapshot.Object, row []int32, in ...area.ID) (err error) {
	switch {
	case w.open == nil:
		err = errNotBegun
	case w.areas != nil:
		err = w.areas.tick[typ].put(o, row, in)
	case len(in) > 0:
		err = errNoAreas
	default:
		err = w.open.Add(o, row)
	}
	if err != nil {
		return fmt.Errorf("replication: world %s: put object %d: %w", w.name, o.ID, err)
	}
	return nil
}

// Observe sets an observer, for measurements. Call it before the first tick.
func (w *World) Observe(o Observer) {
	w.encodings.observer = o
	if w.areas != nil {
		w.areas.Observer = o
	}
}

// newestAcked returns the tick of the newest snapshot that a client has acked. It returns 0 if that
// is not one of the last snapshot.Ring snapshots.
func (w *World) newestAcked(r *snapshot.Receipts) uint64 {
	if n, ok := r.NewestAcked(); ok {
		return w.hub.ticks[n%snapshot.Ring].Load()
	}
	return 0
}

// Prioritize sets the priority of an object for all players that receive the world as state, until
// it is changed.
func (w *World) Prioritize(id uint16, priority float64) error {
	err := w.stateErr
	if err == nil {
		if err = w.state.world.Prioritize(id, priority); err != nil {
			err = fmt.Errorf("replication: world %s: %w", w.name, err)
		}
	}
	return err
}
