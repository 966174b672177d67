package replication

// ackWindow is the number of messages on which an ack of either codec reports.
const ackWindow = 64

// ackTracker finds the messages that are acked for the first time.
type ackTracker struct {
	seqs [ackWindow]uint16
	open [ackWindow]bool // sent and not acked
}

func (t *ackTracker) sent(seq uint16) {
	t.seqs[seq%ackWindow], t.open[seq%ackWindow] = seq, true
}

// acked returns the number of messages that this ack is the first to ack.
func (t *ackTracker) acked(none bool, newest uint16, window uint64) (n int) {
	if none {
		return 0
	}
	n += t.close(newest)
	for i := range ackWindow - 1 {
		if window>>i&1 != 0 {
			n += t.close(newest - uint16(i) - 1)
		}
	}
	return n
}

func (t *ackTracker) close(seq uint16) int {
	i := seq % ackWindow
	if !t.open[i] || t.seqs[i] != seq {
		return 0
	}
	t.open[i] = false
	return 1
}
