package soak

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// verifier compares decoded frames with the bots' traces. A bot starts at an unknown row, and its
// frames follow by sequence number. For each player, verifier keeps the start rows that agree with
// all frames so far. It is safe for concurrent use; the frames of one player arrive one at a time.
type verifier struct {
	traces           []*trace.Trace
	good, mismatched atomic.Uint64

	mu      sync.Mutex
	players map[*ds.Player][]begin
}

// begin is a trace row that sequence number 0 may have.
type begin struct {
	trace *trace.Trace
	row   uint64
}

func newVerifier(traces []*trace.Trace) *verifier {
	return &verifier{traces: traces, players: map[*ds.Player][]begin{}}
}

// Frame is a handler of the server.
func (v *verifier) Frame(p *ds.Player, f ds.Frame[*schema.Frame]) {
	v.mu.Lock()
	possible := v.players[p]
	v.mu.Unlock()
	if len(possible) > 0 {
		possible = slices.DeleteFunc(possible, func(b begin) bool {
			return !f.Value.Equal(b.trace.At(int(b.row + f.Seq)))
		})
	} else {
		possible = v.find(f)
	}
	v.mu.Lock()
	v.players[p] = possible
	v.mu.Unlock()
	if len(possible) > 0 {
		v.good.Add(1)
	} else {
		v.mismatched.Add(1)
	}
}

// Left removes a player.
func (v *verifier) Left(p *ds.Player, _ error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.players, p)
}

// Counts returns the numbers of correct and wrong frames.
func (v *verifier) Counts() (good, mismatched uint64) { return v.good.Load(), v.mismatched.Load() }

func (v *verifier) find(f ds.Frame[*schema.Frame]) (found []begin) {
	for _, t := range v.traces {
		rows := uint64(len(t.Frames))
		for row := range t.Frames {
			if f.Value.Equal(&t.Frames[row]) {
				found = append(found, begin{t, (uint64(row) + rows - f.Seq%rows) % rows})
			}
		}
	}
	return found
}
