package interpolate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/serverclock"
)

// Errors of [Buffer.Add]. All but ErrInput occur on a lossy link.
var (
	// ErrLate reports a snapshot that is not needed: it has the time of a stored one, it is older
	// than all stored ones while there is no space, or older than the newest by more than
	// Config.Gap.
	ErrLate = errors.New("interpolate: snapshot is not needed")
	// ErrInput reports an argument that is out of range. The text names it.
	ErrInput = errors.New("interpolate: bad snapshot")
)

type snapshot[T any] struct {
	time    time.Duration
	ids     []uint32
	objects []T
}

// Buffer stores snapshots of objects T and interpolates between them. It stores up to
// Config.Snapshots snapshots, and reuses the memory of removed ones. Not safe for concurrent use.
type Buffer[T any] struct {
	cfg     Config
	adapter Adapter[T]
	line    timeline
	held    []*snapshot[T] // oldest first
	spare   []*snapshot[T]
	older   int // number of consecutive snapshots that are older than the newest by a gap
	starved bool
	played  time.Duration // latest now passed to Play
	stats   Stats
}

// Stats counts snapshots.
type Stats struct {
	// Added is the number of stored snapshots. Late and Duplicate count snapshots rejected with
	// ErrLate, Duplicate those with the time of a stored one, and Bad those rejected with ErrInput.
	Added, Late, Duplicate, Bad uint64
	// Restarts is the number of times that the playback clock started: at the first snapshot, and
	// after pauses and jumps.
	Restarts uint64
	// Hitches is the number of times that playback reached the newest snapshot.
	Hitches uint64
	// Starved is the time for which playback was past the newest snapshot, in time of Play: objects
	// stood still or were extrapolated. It grows during a hitch, which Hitches counts once.
	Starved time.Duration
	// Delay is the current interpolation delay, in time of the server.
	Delay time.Duration
	// Rate is the measured rate of the server's time: 1 if its ticks take their nominal time, 0.9
	// if they take 11 % longer. Play plays at this rate.
	Rate float64
}

// restartAfter is the number of consecutive snapshots, all older than the newest by a gap, after
// which the server's time is assumed to have restarted.
const restartAfter = 3

// maxTime bounds times, so that no difference overflows: 73 years.
const maxTime = time.Duration(1) << 61

func beyondTime(t time.Duration) bool { return t < -maxTime || t > maxTime }

// New returns an empty buffer of objects whose poses adapter reads and writes. An error names the
// invalid field of cfg.
func New[T any](adapter Adapter[T], cfg Config) (*Buffer[T], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Buffer[T]{cfg: cfg, adapter: adapter, line: timeline{cfg: cfg, line: serverclock.Remote(cfg.Interval)}, held: make([]*snapshot[T], 0, cfg.Snapshots)}
	if cfg.Adaptive {
		b.line.needed.sorted = make([]time.Duration, 0, windowSize)
	}
	for range cfg.Snapshots {
		b.spare = append(b.spare, new(snapshot[T]))
	}
	return b, nil
}

// Add adds the snapshot of server time server, which arrived at now: objects[i] has the id ids[i].
// Snapshots may arrive in any order; ids ascend. Objects are copied, but not the memory that they
// point to.
//
// ErrLate reports a snapshot that is not needed. Its arrival time still adjusts the playback clock,
// except for snapshots older than the newest by more than Config.Gap. An error that wraps ErrInput
// names the argument that is out of range: more than Config.Objects objects, ids that do not ascend
// or are not as many as the objects, a time beyond 73 years. The buffer does not change then.
//
// The third consecutive snapshot that is older than the newest by more than Config.Gap resets the
// buffer: the server restarted.
func (b *Buffer[T]) Add(now, server time.Duration, ids []uint32, objects []T) error {
	if err := b.check(now, server, ids, objects); err != nil {
		b.stats.Bad++
		return err
	}
	if len(b.held) > 0 && server < b.held[len(b.held)-1].time-b.cfg.Gap {
		if b.older++; b.older < restartAfter {
			b.stats.Late++
			return ErrLate
		}
		b.Reset()
	}
	b.older = 0
	if b.line.arrive(now, server) {
		b.stats.Restarts++
	}
	at, found := slices.BinarySearchFunc(b.held, server, func(s *snapshot[T], t time.Duration) int { return cmp.Compare(s.time, t) })
	switch {
	case found:
		b.stats.Duplicate++
		return ErrLate
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

// insert stores a snapshot at index at. If the buffer is full, it replaces the oldest snapshot.
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

// Play returns the server time to show at now, or false before the first snapshot. The playback
// clock runs at the rate of the server's time, Stats.Rate. To follow clock drift and changes of the
// delay, it runs up to 5 % faster or slower. If it is more than 12.5 ms off, it runs up to half
// faster or slower, and if it is more than 250 ms behind, it jumps ahead. Close to the newest
// snapshot it slows down, to no less than 25 %. It runs backwards only in two cases: after a Reset,
// and if the first snapshot after a pause shows that the server's time had stopped too. In the
// second case the clock returns to the last snapshot before the pause. The time between two calls
// may be of any length. If now is before the now of the last call, Play uses the latter.
func (b *Buffer[T]) Play(now time.Duration) (server time.Duration, ok bool) {
	if len(b.held) == 0 || beyondTime(now) {
		return 0, false
	}
	if b.starved {
		b.stats.Starved += max(0, now-b.played)
	}
	b.played = max(b.played, now)
	server = b.line.play(now)
	starved := server > b.held[len(b.held)-1].time
	if starved && !b.starved {
		b.stats.Hitches++
	}
	b.starved = starved
	return server, true
}

// Reset removes all snapshots and stops the playback clock, for a change of the server or level. It
// keeps counters and memory.
func (b *Buffer[T]) Reset() {
	b.spare = append(b.spare, b.held...)
	b.held = b.held[:0]
	b.line.reset()
	b.older, b.starved = 0, false
}

// Stats returns the counters.
func (b *Buffer[T]) Stats() Stats {
	s := b.stats
	s.Delay, s.Rate = b.line.delay(), b.line.line.Rate()
	return s
}
