package ds

import "testing"

// TestOvertaken: a datagram that may hold a frame 64 behind the newest, which its
// short header could not tell from one ahead, is dropped; one that cannot is not.
func TestOvertaken(t *testing.T) {
	const newest = 1000
	for frames := uint64(1); frames <= 8; frames++ {
		b := binding{frames: frames, newest: newest}
		for behind := uint64(1); behind <= 70; behind++ {
			// The newest frame is the last of its datagram, the other payload the first
			// of its own.
			oldest := behind*frames + frames - 1
			if got := b.ambiguous(newest - behind); got != (oldest >= 64) {
				t.Errorf("%d frames a datagram, %d behind: %v, though a frame may be %d behind", frames, behind, got, oldest)
			}
		}
		if b.ambiguous(newest) || b.ambiguous(newest+1) {
			t.Errorf("%d frames a datagram: the newest is dropped", frames)
		}
		b.reliable = true
		if b.ambiguous(0) {
			t.Errorf("%d frames a datagram: a reliable one is dropped", frames)
		}
	}
}
