package transport

import "testing"

// TestLull: a listener rests only while nothing but idle sessions is heard.
func TestLull(t *testing.T) {
	s := &shard{}
	batch := func(datagrams, idle int) bool {
		s.lull.datagrams, s.lull.idle = datagrams, idle
		return s.rest()
	}
	for i := 1; i < lullAfter; i++ {
		if batch(2, 2) {
			t.Fatalf("rests after %d batches", i)
		}
	}
	for _, idle := range []int{1, 0} { // and without a batch, as at a tick
		if !batch(idle, idle) {
			t.Error("does not rest in a lull")
		}
	}
	if batch(3, 2) {
		t.Error("rests after a call")
	}
	if batch(1, 1) {
		t.Error("rests after one idle batch")
	}
}
