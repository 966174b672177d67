package ds

import (
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
)

// buffers are all jitter buffers that Poll releases from.
type buffers struct {
	mu  sync.Mutex
	all []buffered

	// Of Poll alone:
	due  []buffered
	next int // of due
}

func (s *buffers) add(b buffered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, b)
}

// remove takes out those of a player who leaves, before the game is told.
func (s *buffers) remove(gone []buffered) {
	if len(gone) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range gone {
		b.leave()
		if i := slices.Index(s.all, b); i >= 0 {
			s.all = slices.Delete(s.all, i, i+1)
		}
		_, r := b.of()
		st := b.stats()
		r.gone.count(&st)
	}
}

// begin takes those that there are when a Poll begins.
func (s *buffers) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = append(s.due, s.all...)
}

// release releases what is due of the buffers that begin took, and returns the number of handlers
// that ran. If it does not return, as a handler has ended the goroutine, the next call goes on
// after that buffer.
func (s *buffers) release(now time.Time) (calls int) {
	for s.next < len(s.due) {
		b := s.due[s.next]
		s.next++
		calls += b.release(now)
	}
	clear(s.due) // release the players
	s.due, s.next = s.due[:0], 0
	return calls
}

// addTo adds how the buffers stand to the statistics of their RPCs.
func (s *buffers) addTo(stats []RPCStats, rpcs map[string]*rpc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := make(map[*rpc]int, len(rpcs))
	for i := range stats {
		if st := &stats[i]; !st.Reliable {
			r := rpcs[st.RPC]
			index[r] = i
			st.Buffer.count(&r.gone)
		}
	}
	for _, b := range s.all {
		_, r := b.of()
		one := b.stats()
		stats[index[r]].Buffer.add(&one)
	}
}

// slackEvery is the time between two messages that tell a player of its buffers.
const slackEvery = 250 * time.Millisecond

// appendSlack begins a message of acks: with how the player's jitter buffers stand, if
// that is due, or without.
func (p *Player) appendSlack(dst []byte, now time.Time) []byte {
	if len(p.buffers) == 0 || now.Sub(p.told) < slackEvery-p.server.cfg.tick()/2 {
		return append(dst, byte(control.Acks))
	}
	p.told = now
	all := p.buffers[:min(len(p.buffers), control.MaxBuffered)]
	dst = control.AppendSlack(dst, len(all))
	for _, b := range all {
		s := b.told()
		dst = s.Append(dst)
	}
	return dst
}
