package jitter

import (
	"math"
	"time"
)

// Fate is what became of a value that was added.
type Fate uint8

// The fates.
const (
	Held      Fate = iota // it waits for its time
	Late                  // its time has passed
	Duplicate             // one of that frame time came before
	Early                 // it is too far ahead to be held
)

// State is what a tick has.
type State uint8

// The states.
const (
	Waiting  State = iota // nothing is due: nothing came yet, or for long, or what came has to wait
	Released              // a value
	Missing               // the value that is due did not come, or not yet
)

const (
	// strays is how many values in a row, all far from those before, are a jump of the frame time.
	strays = 3
	// Values that are all late, so many and for so long or so many intervals where that is more, will go on to be.
	lateValues    = 4
	lateFor       = 100 * time.Millisecond
	lateIntervals = 4
	// shortBlocks is how many blocks in a row, all of values that come too late by more than an interval on average, are
	// a sender that does not follow, or not fast enough.
	shortBlocks = 8
)

// slot is a place for a value.
type slot[T any] struct {
	tick  uint64
	state slotState
	value T
}

type slotState uint8

const (
	empty slotState = iota
	full
	released // and remembered, to tell a duplicate
)

// never is a time before all others.
const never = time.Duration(math.MinInt64 / 2)

// Buffer holds values by frame time until they are due. Memory is that of Config.Capacity values from the start, and
// nothing is allocated after. It is not safe for concurrent use.
type Buffer[T any] struct {
	cfg   Config
	slots []slot[T] // by frame time, modulo their number, which is a power of two
	held  int

	playing bool          // else the next value begins
	played  uint64        // frame time of the last step
	at      time.Duration // when it was
	from    uint64        // nothing before it is missing
	newest  uint64        // that came
	heard   time.Duration // when
	done    uint64        // the last that was released
	gave    bool          // something was

	astray    int // values in a row that are far from those before
	late      int // newest ones in a row that were
	lateSince time.Duration
	short     int // blocks in a row

	own   bool          // Pop has been called: ticks are the buffer's own
	next  time.Duration // when the next one is
	slack slack
	stats Stats
}

// New returns an empty buffer, or an error that names the field of cfg which is out of its bounds.
func New[T any](cfg Config) (*Buffer[T], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Buffer[T]{cfg: cfg, slots: make([]slot[T], cfg.Capacity), slack: newSlack(&cfg)}
	b.Reset()
	return b, nil
}

// Reset forgets all values and times, as for another sender. Counters and what was learned of uneven arrival stay.
func (b *Buffer[T]) Reset() {
	for i := range b.slots {
		b.slots[i].state = empty
	}
	b.held, b.playing, b.gave = 0, false, false
	b.astray, b.late, b.short = 0, 0, 0
	b.own, b.at = false, never
	b.slack.restart(b.slack.target())
}

func (b *Buffer[T]) slot(tick uint64) *slot[T] { return &b.slots[tick&uint64(len(b.slots)-1)] }

// after says how much later frame time a is than b. Frame times wrap around.
func after(a, b uint64) int64 { return int64(a - b) }

// Add takes the value of a frame time, which came now. If it is [Held], *v becomes what lay in its place: memory that
// the value refers to can be used again. Otherwise nothing happens to *v.
//
// A frame time that is further from those before than the buffer reaches is refused, as Early or Late, until the third
// in a row: that one begins anew.
func (b *Buffer[T]) Add(now time.Duration, tick uint64, v *T) Fate {
	s := b.slot(tick)
	switch {
	case s.state != empty && s.tick == tick:
		return b.refuse(Duplicate)
	case !b.playing && b.passed(tick):
		return b.refuse(Late)
	case !b.playing:
		b.begin(now, tick)
	case b.far(tick):
		if b.astray++; b.astray >= strays {
			b.begin(now, tick)
			break
		}
		if after(tick, b.newest) > 0 {
			return b.refuse(Early)
		}
		return b.refuse(Late)
	}
	b.astray = 0
	if after(tick, b.played) > int64(len(b.slots)) { // the sender is far too fast
		b.skip(b.early(now, tick) - b.slack.target())
	}
	b.arrived(now, tick)
	if after(tick, b.played) <= 0 || b.passed(tick) {
		return b.refuse(Late)
	}
	s.tick, s.state = tick, full
	s.value, *v = *v, s.value
	b.held++
	return Held
}

// far says whether a frame time is out of reach of those before.
func (b *Buffer[T]) far(tick uint64) bool {
	reach := int64(len(b.slots))
	jump := after(tick, b.newest)
	return jump >= reach || jump <= -reach
}

// passed says whether a frame time is before one that was released not long ago.
func (b *Buffer[T]) passed(tick uint64) bool {
	age := after(b.done, tick)
	return b.gave && age >= 0 && age < int64(len(b.slots))
}

func (b *Buffer[T]) refuse(f Fate) Fate {
	switch f {
	case Late:
		b.stats.Late++
	case Duplicate:
		b.stats.Duplicate++
	case Early:
		b.stats.Early++
	case Held:
	}
	return f
}

// begin starts with a value, after a pause or a jump.
func (b *Buffer[T]) begin(now time.Duration, tick uint64) {
	if b.gave || b.playing {
		b.stats.Resyncs++
	}
	for i := range b.slots {
		b.drop(&b.slots[i])
	}
	if jump := after(tick, b.done); jump <= 0 || jump > int64(len(b.slots)) {
		b.gave = false
		for i := range b.slots {
			b.slots[i].state = empty
		}
	}
	b.playing, b.newest, b.late, b.short = true, tick-1, 0, 0
	b.schedule(now, tick, b.slack.target())
}

// drop lets go of what is held there.
func (b *Buffer[T]) drop(s *slot[T]) {
	if s.state == full {
		s.state = empty
		b.held--
		b.stats.Skipped++
	}
}

// schedule sets release times: that of a value which came now shall be so much later.
func (b *Buffer[T]) schedule(now time.Duration, tick uint64, slack time.Duration) {
	var wait time.Duration // ticks before that of the value
	if b.own {
		wait = slack / b.cfg.Interval
		b.next = now + slack - wait*b.cfg.Interval
		b.at = b.next - b.cfg.Interval
	} else {
		last := max(b.at, now-b.cfg.Interval) // a tick that is overdue comes now
		wait = max(now+slack-last-1, 0) / b.cfg.Interval
	}
	b.played, b.from = tick-1-uint64(wait), tick
	b.slack.restart(slack)
}

// early is how much later the release of a value is than now.
func (b *Buffer[T]) early(now time.Duration, tick uint64) time.Duration {
	next := max(b.at+b.cfg.Interval, now)
	return next - now + time.Duration(after(tick, b.played)-1)*b.cfg.Interval
}

// arrived takes note of a value, and sets release times anew if they no longer suit what comes.
func (b *Buffer[T]) arrived(now time.Duration, tick uint64) {
	newest := after(tick, b.newest) > 0
	early := b.early(now, tick)
	ended := b.slack.add(now, early, newest)
	if !newest {
		return
	}
	b.newest, b.heard = tick, now
	if after(tick, b.played) > 0 {
		b.late = 0
		if ended {
			b.judge()
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

// judge looks at the average of a block, for what a sender's clock will not mend soon.
func (b *Buffer[T]) judge() {
	if b.slack.target()-b.slack.mean <= b.cfg.Interval {
		b.short = 0
	} else {
		b.short++
	}
	switch over := b.slack.mean - b.cfg.MaxDepth; {
	case over > spare*b.cfg.Interval:
		b.skip(b.slack.mean - b.slack.target())
	case b.short >= shortBlocks:
		b.short = 0
		b.hold()
	}
}

// hold has all that was not released yet wait for a tick more.
func (b *Buffer[T]) hold() {
	if after(b.played, b.from) >= 0 {
		b.from = b.played + 1
	}
	b.played--
	b.stats.Resyncs++
	b.slack.restart(b.slack.mean + b.cfg.Interval)
}

// skip lets go of so much that is to be released next.
func (b *Buffer[T]) skip(span time.Duration) {
	n := uint64(span / b.cfg.Interval)
	n = min(n, uint64(after(b.newest, b.played)-1))
	b.slack.restart(b.slack.mean - time.Duration(n)*b.cfg.Interval)
	for ; n > 0; n-- {
		b.played++
		b.drop(b.slot(b.played))
	}
	b.stats.Resyncs++
}

// Step is one tick, of a receiver whose ticks the sender follows. It gives the next frame time, and what there is of it.
// A value that is [Released] is in *v, and what was there serves for later ones: see Add. Otherwise *v stays as it is.
// Without a value no frame time counts as [Waiting].
func (b *Buffer[T]) Step(now time.Duration, v *T) (tick uint64, state State) {
	b.at = max(b.at, now)
	if !b.playing {
		return 0, Waiting
	}
	b.played++
	s := b.slot(b.played)
	switch {
	case s.tick == b.played && s.state == full:
		s.value, *v = *v, s.value
		s.state = released
		b.held--
		b.done, b.gave = b.played, true
		b.stats.Released++
		return b.played, Released
	case after(b.played, b.from) < 0:
		return b.played, Waiting
	case b.held == 0 && b.at-b.heard > b.cfg.Gap:
		b.playing = false
		return b.played, Waiting
	}
	b.stats.Missing++
	if b.held == 0 {
		b.stats.Dry++
	}
	return b.played, Missing
}

// Pop is [Buffer.Step] for a receiver that follows the sender: it gives what is due by now, one frame time a call, and
// [Waiting] when there is no more. It is called until then. Its ticks run up to MaxPace faster or slower, so that slack
// comes to its target. After a pause of the caller what is due comes all at once.
func (b *Buffer[T]) Pop(now time.Duration, v *T) (tick uint64, state State) {
	if !b.own {
		b.own, b.next = true, max(b.at+b.cfg.Interval, now)
	}
	for b.playing && b.next <= now {
		at := b.next
		tick, state = b.Step(at, v)
		b.next += time.Duration(float64(b.cfg.Interval) * Rate(b.slack.mean, b.slack.target()))
		if state != Waiting {
			return tick, state
		}
	}
	return 0, Waiting
}
