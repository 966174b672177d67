package jitter

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/serverclock"
)

// AddResult is the result of [Buffer.Add].
type AddResult uint8

// Results of Add.
const (
	Held      AddResult = iota // stored until its tick
	Late                       // arrived after its tick
	Duplicate                  // the tick already has a value
	Early                      // too far ahead of the other values
)

// State is the state of a tick.
type State uint8

// States of a tick.
const (
	Waiting  State = iota // no tick is due
	Released              // a tick with a value
	Missing               // a tick without a value
)

const (
	// maxStray is the number of consecutive values far from earlier ones that count as a jump of
	// the ticks.
	maxStray = 3
	// The buffer resyncs after at least lateValues consecutive late values, over a time of lateFor
	// or lateIntervals intervals, whichever is longer.
	lateValues    = 4
	lateFor       = 100 * time.Millisecond
	lateIntervals = 4
	// shortBlocks is the number of consecutive blocks with a mean slack more than one interval
	// below the target after which release times are delayed, because the sender does not follow,
	// or too slowly.
	shortBlocks = 8
	// longBlocks is the number of consecutive blocks with a mean slack more than longIntervals
	// above the target after which values are skipped, because the sender does not follow. Blocks
	// count only while the excess has not halved.
	longBlocks    = 12
	longIntervals = 1.25
	// The sender counts as stalled after a silence of stallIntervals intervals plus the learned
	// lateness. For as long as the silence was, at most maxStall, late values are attributed to the
	// stall. Their lateness is not learned, unless another stall ended within stallsEvery.
	stallIntervals = 3
	maxStall       = time.Second
	stallsEvery    = 10 * time.Second
)

type slot[T any] struct {
	tick  uint64
	state slotState
	value T
}

type slotState uint8

const (
	empty slotState = iota
	full
	released // kept after release, to recognize duplicates
)

// maxFollowed is the maximum time for which one clock follows the ticks of a sender, a day. The
// clock restarts after it.
const maxFollowed = 24 * time.Hour

// never is before all other times.
const never = time.Duration(math.MinInt64 / 2)

// Buffer stores values by tick until they are due. It stores up to Config.Capacity values, and does
// not allocate after New. Not safe for concurrent use.
type Buffer[T any] struct {
	cfg   Config
	slots []slot[T] // indexed by tick modulo len(slots), a power of two
	held  int

	playing     bool          // false: the next value starts playing
	played      uint64        // tick of the last step
	at          time.Duration // time of the last step
	from        uint64        // ticks before it do not count as missing
	newest      uint64        // newest tick that was added
	arrivedAt   time.Duration // time at which newest was added
	done        uint64        // last tick whose value was released
	releasedAny bool          // whether done is valid

	stray     int // number of consecutive values far from earlier ones
	late      int // number of consecutive late values, each newer than all before
	lateSince time.Duration
	short     int           // see shortBlocks
	long      int           // see longBlocks
	excess    time.Duration // excess of slack in the first of the long blocks

	// State after a stall that ended at stallAt, or after a start at that time. While excused is
	// set, for up to stallLength, lateness is not learned. While stalled is set, the newest values
	// are late because of the stall.
	excused     bool
	stalled     bool
	starting    bool
	stallAt     time.Duration
	stallLength time.Duration
	stalledAt   time.Duration // end of the last stall
	wasEarly    time.Duration // slack of the newest value
	overdue     int           // number of values skipped while the receiver stalled

	// clock follows the calls of Step, with their nominal interval; with ownTicks, it follows the
	// arrivals.
	clock    serverclock.Clock
	steps    int64         // number of calls of Step
	first    uint64        // tick at the start of the clock, with ownTicks
	ownTicks bool          // Pop was called: the buffer generates the ticks
	next     time.Duration // time of the next tick
	slack    slack
	results  [Early + 1]uint64 // number of results of Add
	stats    Stats             // all other counters
}

// New returns an empty buffer. An error names the invalid field of cfg.
func New[T any](cfg Config) (*Buffer[T], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Buffer[T]{cfg: cfg, slots: make([]slot[T], cfg.Capacity), slack: newSlack(&cfg)}
	b.Reset()
	return b, nil
}

// Reset removes all values and release times. Call it before adding values of another sender. It
// keeps counters and the learned target.
func (b *Buffer[T]) Reset() {
	for i := range b.slots {
		b.slots[i].state = empty
	}
	b.held, b.playing, b.releasedAny = 0, false, false
	b.stray, b.late, b.short, b.long, b.overdue = 0, 0, 0, 0, 0
	b.excused, b.stalled, b.starting, b.stallAt, b.stalledAt = false, false, false, never, never
	b.ownTicks, b.at, b.steps = false, never, 0
	b.clock = serverclock.New(serverclock.Local(b.cfg.Interval))
	b.slack.restart(b.slack.target())
}

func (b *Buffer[T]) slot(tick uint64) *slot[T] { return &b.slots[tick&uint64(len(b.slots)-1)] }

// after returns a - b for ticks, which may wrap around.
func after(a, b uint64) int64 { return int64(a - b) }

// Add adds the value of a tick, which arrived at now. If the result is [Held], *v is swapped with
// the previous content of the slot, so that its memory can be reused. Otherwise *v does not change.
//
// A value whose tick is too far from those before is rejected as Early or Late. The third such
// value in succession is accepted and resyncs the buffer.
func (b *Buffer[T]) Add(now time.Duration, tick uint64, v *T) AddResult {
	r := b.add(now, tick, v)
	b.results[r]++
	return r
}

func (b *Buffer[T]) add(now time.Duration, tick uint64, v *T) AddResult {
	s := b.slot(tick)
	switch {
	case s.state != empty && s.tick == tick:
		return Duplicate
	case !b.playing && b.passed(tick):
		return Late
	case !b.playing:
		b.start(now, tick)
	case b.far(tick):
		if b.stray++; b.stray >= maxStray {
			b.start(now, tick)
			break
		}
		if after(tick, b.newest) > 0 {
			return Early
		}
		return Late
	}
	b.stray = 0
	if over := after(tick, b.played) - int64(len(b.slots)); over > 0 { // the receiver stalls
		b.overdue += b.advance(int(over) + len(b.slots)/4)
		b.slack.restart(b.slack.mean)
	}
	b.arrived(now, tick)
	if after(tick, b.played) <= 0 || b.passed(tick) {
		return Late
	}
	s.tick, s.state = tick, full
	s.value, *v = *v, s.value
	b.held++
	return Held
}

func (b *Buffer[T]) far(tick uint64) bool {
	reach, jump := int64(len(b.slots)), after(tick, b.newest)
	return jump >= reach || jump <= -reach
}

// passed reports whether tick is before a recently released one.
func (b *Buffer[T]) passed(tick uint64) bool {
	age := after(b.done, tick)
	return b.releasedAny && age >= 0 && age < int64(len(b.slots))
}

// start starts playing with a value, after a pause or a jump.
func (b *Buffer[T]) start(now time.Duration, tick uint64) {
	if b.releasedAny || b.playing {
		b.stats.Resyncs++
	}
	jump := after(tick, b.done)
	unrelated := jump <= 0 || jump > int64(len(b.slots))
	b.releasedAny = b.releasedAny && !unrelated
	for i := range b.slots {
		if b.drop(&b.slots[i]); unrelated {
			b.slots[i].state = empty
		}
	}
	b.playing, b.newest, b.late, b.short, b.long = true, tick-1, 0, 0, 0
	b.starting, b.excused, b.stalled, b.stallAt, b.stallLength = true, true, false, now, maxStall
	b.schedule(now, tick, b.slack.target())
}

func (b *Buffer[T]) drop(s *slot[T]) {
	if s.state == full {
		s.state = empty
		b.held--
		b.stats.Skipped++
	}
}

// schedule sets release times such that the value that arrived now has the given slack.
func (b *Buffer[T]) schedule(now time.Duration, tick uint64, slack time.Duration) {
	var wait time.Duration // number of ticks to wait before the tick of the value
	if b.ownTicks {
		wait = slack / b.cfg.Interval
		b.next = now + slack - wait*b.cfg.Interval
		b.at = b.next - b.cfg.Interval
	} else if b.clock.Started() {
		wait = max(b.clock.At(now+slack)-b.due(0)-1, 0) / b.cfg.Interval
	} else {
		wait = max(slack-1, 0) / b.cfg.Interval
	}
	b.played, b.from, b.overdue = tick-1-uint64(wait), tick, 0
	b.slack.restart(slack)
}

// due returns the time, on b.clock, of the step that is steps after the last one.
func (b *Buffer[T]) due(steps int64) time.Duration {
	return time.Duration(b.steps+steps) * b.cfg.Interval
}

// early returns the slack of a value that arrives now.
func (b *Buffer[T]) early(now time.Duration, tick uint64) time.Duration {
	steps := after(tick, b.played)
	switch {
	case b.ownTicks:
		return b.next - now + time.Duration(float64(time.Duration(steps-1)*b.cfg.Interval)/b.clock.Rate())
	case b.clock.Started():
		return b.clock.When(b.due(steps)) - now
	}
	return time.Duration(steps) * b.cfg.Interval
}

// arrived records the arrival of a value, and resyncs if release times no longer suit the arrivals.
func (b *Buffer[T]) arrived(now time.Duration, tick uint64) {
	newest := after(tick, b.newest) > 0
	if newest && b.ownTicks {
		b.follow(now, tick)
	}
	early := b.early(now, tick)
	if newest {
		early = b.stall(now, tick, early)
	}
	ended := false
	if !b.stalled && (newest || !b.excused) && b.overdue == 0 {
		ended = b.slack.add(now, early, newest)
	}
	if !newest {
		return
	}
	b.newest, b.arrivedAt = tick, now
	if b.stalled && early > b.wasEarly+b.cfg.Interval/2 { // the sender catches up
		b.late = 0
	}
	b.wasEarly = early
	if after(tick, b.played) > 0 {
		b.late = 0
		if ended {
			b.checkBlock()
		}
		return
	}
	if b.late == 0 {
		b.lateSince = now
	}
	if b.late++; b.late >= lateValues && now-b.lateSince >= max(lateFor, lateIntervals*b.cfg.Interval) {
		b.stats.Resyncs++
		b.late = 0
		b.schedule(now, tick, b.slack.target())
	}
}

// stall detects stalls of the sender. It is called for each value newer than all before; early is
// the slack of the value. After a start, values that arrive too fast were held back before it, so
// release times move earlier. It returns the new slack of the value.
func (b *Buffer[T]) stall(now time.Duration, tick uint64, early time.Duration) time.Duration {
	since := now - b.arrivedAt
	if now-b.stallAt > b.stallLength {
		b.starting, b.excused = false, false
	}
	if over := early - b.slack.target(); b.starting && over > b.cfg.Interval && since < b.cfg.Interval/2 {
		b.newest = tick
		b.advance(int(over / b.cfg.Interval))
		b.slack.restart(b.slack.target())
		return b.early(now, tick)
	}
	if since >= stallIntervals*b.cfg.Interval+b.slack.needed && !b.starting {
		b.excused = now-b.stalledAt > stallsEvery
		b.stallAt, b.stallLength, b.stalledAt = now, min(since, maxStall), now
		b.stalled = b.excused
	}
	b.stalled = b.stalled && b.excused && early < b.slack.mean-b.slack.needed
	return early
}

// follow updates the clock with the arrival of a sender's tick.
func (b *Buffer[T]) follow(now time.Duration, tick uint64) {
	if jump := after(tick, b.first); !b.clock.Started() || jump < 0 || jump > int64(maxFollowed/b.cfg.Interval) {
		b.clock, b.first = serverclock.New(serverclock.Remote(b.cfg.Interval)), tick
	}
	b.clock.Observe(now, time.Duration(after(tick, b.first))*b.cfg.Interval)
}

// checkBlock resyncs if the mean slack of the last block is far from the target, and the sender
// does not follow.
func (b *Buffer[T]) checkBlock() {
	over := b.slack.mean - b.slack.target()
	if b.short++; -over <= b.cfg.Interval {
		b.short = 0
	}
	switch {
	case over <= time.Duration(longIntervals*float64(b.cfg.Interval)):
		b.long = 0
	case b.long == 0 || over < b.excess/2:
		b.long, b.excess = 1, over
	default:
		b.long++
	}
	switch {
	case b.long >= longBlocks:
		b.long = 0
		b.skip(over)
	case b.short >= shortBlocks:
		b.short = 0
		b.delay()
	}
}

// delay delays all values that are not released yet by one tick.
func (b *Buffer[T]) delay() {
	if after(b.played, b.from) >= 0 {
		b.from = b.played + 1
	}
	b.played--
	b.stats.Resyncs++
	b.slack.restart(b.slack.mean + b.cfg.Interval)
}

// skip discards the values of the next span of time.
func (b *Buffer[T]) skip(span time.Duration) {
	b.stats.Resyncs++
	n := b.advance(int(span / b.cfg.Interval))
	b.slack.restart(b.slack.mean - time.Duration(n)*b.cfg.Interval)
	b.overdue = 0
}

// advance skips the given number of ticks, but none from the newest on, and returns the number
// skipped.
func (b *Buffer[T]) advance(ticks int) int {
	ticks = max(0, min(ticks, int(after(b.newest, b.played))-1))
	for range ticks {
		b.played++
		b.drop(b.slot(b.played))
	}
	return ticks
}

// Step advances by one tick, for a receiver with ticks of its own. It returns the next tick and its
// state. If the state is [Released], the value was swapped with *v, and the buffer reuses the
// memory of *v, see Add. Otherwise *v does not change.
func (b *Buffer[T]) Step(now time.Duration, v *T) (tick uint64, state State) {
	b.at = max(b.at, now)
	if !b.ownTicks {
		b.stepped()
	}
	if !b.playing {
		return 0, Waiting
	}
	if b.overdue > 0 && b.held == 0 { // this step catches up: the value of its tick was skipped
		b.overdue--
		return b.played, Waiting
	}
	b.played++
	s := b.slot(b.played)
	switch {
	case s.tick == b.played && s.state == full:
		s.value, *v = *v, s.value
		s.state = released
		b.held--
		b.done, b.releasedAny = b.played, true
		b.stats.Released++
		return b.played, Released
	case after(b.played, b.from) < 0:
		return b.played, Waiting
	case b.held == 0 && b.at-b.arrivedAt > b.cfg.Gap:
		b.playing = false
		return b.played, Waiting
	}
	b.stats.Missing++
	if b.held == 0 {
		b.stats.Dry++
	}
	return b.played, Missing
}

// stepped adds a step to the clock. If that changes later release times, the slack measured so far
// is discarded.
func (b *Buffer[T]) stepped() {
	was := b.clock.At(b.at)
	b.steps++
	b.clock.Observe(b.at, b.due(0))
	if moved := b.clock.At(b.at) - was; max(moved, -moved) > b.cfg.Interval/2 {
		b.slack.restart(b.slack.mean)
		b.overdue = 0
	}
}

// Pop is [Buffer.Step] for a receiver without ticks of its own. Each call returns one tick that is
// due at now, or [Waiting] if there is none; call it until it returns Waiting. Ticks follow the
// rate of the sender's ticks, and run up to MaxPace faster or slower to bring slack to its target.
// After a pause of the caller all overdue ticks follow at once.
func (b *Buffer[T]) Pop(now time.Duration, v *T) (tick uint64, state State) {
	if !b.ownTicks {
		b.ownTicks, b.next = true, max(b.at+b.cfg.Interval, now)
		b.clock = serverclock.New(serverclock.Remote(b.cfg.Interval))
	}
	for b.playing && b.next <= now {
		at := b.next
		tick, state = b.Step(at, v)
		b.next += time.Duration(float64(b.cfg.Interval) * paced(b.slack.mean, b.slack.target()) / b.clock.Rate())
		if state != Waiting {
			return tick, state
		}
	}
	return 0, Waiting
}

// Stats returns the counters and the current state.
func (b *Buffer[T]) Stats() Stats {
	s := b.stats
	s.Late, s.Duplicate, s.Early = b.results[Late], b.results[Duplicate], b.results[Early]
	s.Held, s.Slack, s.Target, s.Rate = b.held, b.slack.mean, b.slack.target(), b.clock.Rate()
	return s
}
