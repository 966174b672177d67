package jitter

import "time"

// Stats is what became of a buffer's values, and how it stands.
type Stats struct {
	// Released counts the values that were released at their time, Missing the ticks that had none. Of these, Dry are
	// those at which nothing newer was held either: values came too late, where in others one was lost.
	Released, Missing, Dry uint64
	// Late values came after their time, Duplicate ones came before, Early ones were too far ahead to be held. None of
	// these was taken.
	Late, Duplicate, Early uint64
	// Resyncs is how often the release times were set anew after the first value: after a pause, a jump of the frame
	// time, or values that came too late or too early for long. Skipped values were held and let go by that.
	Resyncs, Skipped uint64
	// Held is how many values are held now.
	Held int
	// Slack is how early values came lately before their release on average, below 0 if they were late; Target is what
	// it should be.
	Slack, Target time.Duration
}

// Stats returns the counters.
func (b *Buffer[T]) Stats() Stats {
	s := b.stats
	s.Held, s.Slack, s.Target = b.held, b.slack.mean, b.slack.target()
	return s
}
