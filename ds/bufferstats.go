package ds

import "time"

// BufferStats is what became of frames in jitter buffers, and how these stand: those of
// all players of an RPC, or one.
type BufferStats struct {
	// Buffers is how many there are now.
	Buffers int
	// Released counts frames that were released at their time, Missing ticks that had
	// none. Of these, Dry are those where nothing newer was there either: frames came
	// too late, where in others one was lost; and for Repeated the last one was repeated.
	Released, Missing, Dry, Repeated uint64
	// Late counts frames that came after their time, Early those that there was no room
	// for, Skipped those that were let go when release times were set anew, and Resyncs
	// how often that was.
	Late, Early, Discarded, Resyncs uint64
	// Held is how many frames wait now.
	Held int
	// Slack is how early frames come lately before their release, and Target how early
	// they should, on average.
	Slack, Target time.Duration
}

// count adds up what is counted.
func (s *BufferStats) count(o *BufferStats) {
	s.Released += o.Released
	s.Missing += o.Missing
	s.Dry += o.Dry
	s.Repeated += o.Repeated
	s.Late += o.Late
	s.Early += o.Early
	s.Discarded += o.Discarded
	s.Resyncs += o.Resyncs
}

// add adds how a buffer stands, too.
func (s *BufferStats) add(o *BufferStats) {
	s.count(o)
	s.Buffers++
	s.Held += o.Held
	n := time.Duration(s.Buffers)
	s.Slack += (o.Slack - s.Slack) / n
	s.Target += (o.Target - s.Target) / n
}

// Buffer says how the jitter buffer of one of the player's RPCs stands, the first that
// was bound; false if there is none.
func (p *Player) Buffer(rpc string) (BufferStats, bool) {
	s := &p.server.buffers
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		if who, r := b.of(); who == p && r.schema.RPC() == rpc {
			return b.stats(), true
		}
	}
	return BufferStats{}, false
}
