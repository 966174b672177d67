package uplinktest

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/ds"
)

// Journal contains a handler that checks its frames: each has the quantized value that was sent
// with its number, no number occurs twice, frames that are not late are in order, and the counts of
// missed frames are correct.
type Journal struct {
	t    testing.TB
	salt uint64

	mu        sync.Mutex
	quantizer *Quantizer
	logs      []*Log
	byPlayer  map[*ds.Player]*Log
	errors    int
}

// Log records the frames of one player.
type Log struct {
	Player *ds.Player
	Next   uint64 // number after the newest delivered frame
	Late   uint64 // frames delivered after newer ones
	Missed uint64 // frames not delivered
	seen   map[uint64]bool
}

// Frames returns the number of delivered frames.
func (l Log) Frames() uint64 { return uint64(len(l.seen)) }

// Seen returns the numbers of the delivered frames in ascending order.
func (l Log) Seen() []uint64 { return slices.Sorted(maps.Keys(l.seen)) }

// NewJournal returns a journal of calls whose arguments are MoveAt(salt, number).
func NewJournal(t testing.TB, salt uint64) *Journal {
	return &Journal{t: t, salt: salt, quantizer: NewQuantizer(), byPlayer: map[*ds.Player]*Log{}}
}

// Handle is a handler for ds.Handle.
func (j *Journal) Handle(p *ds.Player, f ds.Frame[Move]) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.log(p)
	sent := MoveAt(j.salt, f.Seq)
	want, err := j.quantizer.Quantize(&sent)
	if err != nil || !f.Value.Equal(&want) {
		j.errorf("frame %d is %+v, want %+v (%v)", f.Seq, f.Value, want, err)
	}
	switch {
	case l.seen[f.Seq]:
		j.errorf("frame %d was delivered twice", f.Seq)
	case f.Late && (f.Seq >= l.Next || f.Missed != 0):
		j.errorf("frame %d is late before %d, with %d missed", f.Seq, l.Next, f.Missed)
	case !f.Late && (f.Seq < l.Next || f.Missed != f.Seq-l.Next):
		j.errorf("frame %d instead of %d, with %d missed", f.Seq, l.Next, f.Missed)
	}
	l.seen[f.Seq] = true
	if f.Late {
		l.Late++
		l.Missed--
		return
	}
	l.Missed += f.Missed
	l.Next = f.Seq + 1
}

func (j *Journal) errorf(format string, args ...any) {
	if j.errors++; j.errors <= 10 {
		j.t.Errorf(format, args...)
	}
}

func (j *Journal) log(p *ds.Player) *Log {
	l := j.byPlayer[p]
	if l == nil {
		l = &Log{Player: p, seen: map[uint64]bool{}}
		j.byPlayer[p] = l
		j.logs = append(j.logs, l)
	}
	return l
}

// Logs returns copies of the logs of all players, in the order of their first frames.
func (j *Journal) Logs() []Log {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Log
	for _, l := range j.logs {
		c := *l
		c.seen = maps.Clone(l.seen)
		out = append(out, c)
	}
	return out
}

// Only returns the log of the only player.
func (j *Journal) Only() Log {
	j.t.Helper()
	logs := j.Logs()
	if len(logs) != 1 {
		j.t.Fatalf("%d players, want 1", len(logs))
	}
	return logs[0]
}
