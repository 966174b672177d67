package interpolate

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// snapshot is one of a buffer's places.
type snapshot[T any] struct {
	time    time.Duration
	ids     []uint32
	objects []T
}

// Buffer holds snapshots of objects T. Memory is that of Config.Snapshots snapshots, as large as the largest that was in
// each place; once they are, nothing is allocated. It is not safe for concurrent use.
type Buffer[T any] struct {
	cfg     Config
	adapter Adapter[T]
	line    timeline
	held    []*snapshot[T] // oldest first
	spare   []*snapshot[T]
	behind  int // snapshots in a row that were older than the newest by a gap
	starved bool
	stats   Stats
}

// Stats counts what became of a buffer's snapshots.
type Stats struct {
	// Added were taken, Late and Duplicate refused with the errors of these names, Bad with ErrInput.
	Added, Late, Duplicate, Bad uint64
	// Restarts is how often the server's time was learned anew: at the first snapshot, and after pauses and jumps.
	Restarts uint64
	// Hitches is how often the play came to the end of the newest snapshot.
	Hitches uint64
	// Delay is how far behind a snapshot that nothing held up the play is to be now.
	Delay time.Duration
}

// restartAfter is how many snapshots in a row, all older than the newest by a gap, are a server whose time began anew.
const restartAfter = 3

// maxTime bounds times, so that no difference of two overflows: 73 years.
const maxTime = time.Duration(1) << 61

func beyondTime(t time.Duration) bool { return t < -maxTime || t > maxTime }

// New returns an empty buffer whose objects' poses adapter knows, or an error that names the field of cfg which is out
// of its bounds.
func New[T any](adapter Adapter[T], cfg Config) (*Buffer[T], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Buffer[T]{cfg: cfg, adapter: adapter, line: timeline{cfg: cfg}, held: make([]*snapshot[T], 0, cfg.Snapshots)}
	if cfg.Adaptive {
		b.line.needed.sorted = make([]time.Duration, 0, windowSize)
	}
	for range cfg.Snapshots {
		b.spare = append(b.spare, new(snapshot[T]))
	}
	return b, nil
}

// Add takes the snapshot of the server's time server, which arrived at now: objects[i] is that of ids[i]. Snapshots may
// come in any order; ids ascend. Objects are copied, but not what they point to.
//
// ErrDuplicate and ErrLate are snapshots that are of no use; they too tell of the link. An error that wraps ErrInput
// names the argument that is out of bounds: more than Config.Objects objects, ids that do not ascend or are not as many
// as the objects, a time beyond 73 years. Nothing is changed then.
//
// Three snapshots in a row that are older than the newest by more than Config.Gap are a server that began anew: the last
// of them is taken after a Reset.
func (b *Buffer[T]) Add(now, server time.Duration, ids []uint32, objects []T) error {
	if err := b.check(now, server, ids, objects); err != nil {
		b.stats.Bad++
		return err
	}
	if len(b.held) > 0 && server < b.held[len(b.held)-1].time-b.cfg.Gap {
		if b.behind++; b.behind < restartAfter {
			b.stats.Late++
			return ErrLate
		}
		b.Reset()
	}
	b.behind = 0
	if b.line.arrive(now, server) {
		b.stats.Restarts++
	}
	at, found := slices.BinarySearchFunc(b.held, server, func(s *snapshot[T], t time.Duration) int { return cmp.Compare(s.time, t) })
	switch {
	case found:
		b.stats.Duplicate++
		return ErrDuplicate
	case at == 0 && len(b.spare) == 0:
		b.stats.Late++
		return ErrLate
	}
	b.insert(at, server, ids, objects)
	b.stats.Added++
	return nil
}

func (b *Buffer[T]) check(now, server time.Duration, ids []uint32, objects []T) error {
	switch {
	case len(ids) != len(objects):
		return fmt.Errorf("%w: %d ids for %d objects", ErrInput, len(ids), len(objects))
	case len(ids) > b.cfg.Objects:
		return fmt.Errorf("%w: %d objects, at most %d are allowed by Config.Objects", ErrInput, len(ids), b.cfg.Objects)
	case beyondTime(now):
		return fmt.Errorf("%w: now is %v, must be within 73 years", ErrInput, now)
	case beyondTime(server):
		return fmt.Errorf("%w: server is %v, must be within 73 years", ErrInput, server)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			return fmt.Errorf("%w: id %d comes after %d, ids must ascend", ErrInput, ids[i], ids[i-1])
		}
	}
	return nil
}

// insert puts a snapshot at a place among those held, in the stead of the oldest if there is no other room.
func (b *Buffer[T]) insert(at int, server time.Duration, ids []uint32, objects []T) {
	if len(b.spare) == 0 {
		b.spare = append(b.spare, b.held[0])
		b.held = slices.Delete(b.held, 0, 1)
		at--
	}
	s := b.spare[len(b.spare)-1]
	b.spare = b.spare[:len(b.spare)-1]
	s.time = server
	s.ids = append(s.ids[:0], ids...)
	s.objects = append(s.objects[:0], objects...)
	b.held = slices.Insert(b.held, at, s)
}

// Play gives the server's time that is to be shown at now, or false before the first snapshot. It runs up to a twentieth
// faster or slower to follow a clock that drifts or a delay that changes; where it is further than 250 ms from where it
// should be it jumps on or stands still. What is shown never runs backwards, but after a Reset: the play itself goes on
// beyond the newest snapshot, and is put back to its end when a pause turns out to have been one of the server's time.
// Calls may cease for any while: a client that paused goes on where the play is by then. A now before that of the last
// call counts as that.
func (b *Buffer[T]) Play(now time.Duration) (server time.Duration, ok bool) {
	if len(b.held) == 0 || beyondTime(now) {
		return 0, false
	}
	server = b.line.play(now)
	starved := server > b.held[len(b.held)-1].time
	if starved && !b.starved {
		b.stats.Hitches++
	}
	b.starved = starved
	return server, true
}

// Reset forgets all snapshots and the server's time, as for another server or level. Counters and memory stay.
func (b *Buffer[T]) Reset() {
	b.spare = append(b.spare, b.held...)
	b.held = b.held[:0]
	b.line.reset()
	b.behind, b.starved = 0, false
}

// Stats returns the counters.
func (b *Buffer[T]) Stats() Stats {
	s := b.stats
	s.Delay = b.line.delay()
	return s
}
