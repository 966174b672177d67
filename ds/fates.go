package ds

// ackReach is how many messages an ack speaks of, of every codec: the newest and those in its window.
const ackReach = 64

// fates are those of the last messages that were sent to one player.
type fates struct {
	seqs [ackReach]uint16
	open [ackReach]bool // sent, not acked
}

func (f *fates) sent(seq uint16) {
	f.seqs[seq%ackReach], f.open[seq%ackReach] = seq, true
}

// acked says how many messages an ack is the first to ack.
func (f *fates) acked(none bool, newest uint16, window uint64) (n int) {
	if none {
		return 0
	}
	n += f.close(newest)
	for i := range ackReach - 1 {
		if window>>i&1 != 0 {
			n += f.close(newest - uint16(i) - 1)
		}
	}
	return n
}

func (f *fates) close(seq uint16) int {
	at := seq % ackReach
	if !f.open[at] || f.seqs[at] != seq {
		return 0
	}
	f.open[at] = false
	return 1
}
