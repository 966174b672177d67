package ds

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TestBufferAllocatesNothing has frames with byte slices wait for their time.
func TestBufferAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var got uint64
	b := newBench(t, Config{Poll: true, JitterBuffer: &JitterBuffer{Repeat: 1}}, func(_ *Player, f Frame[testCall]) {
		var want testCall
		want.set(f.Seq)
		if f.Seq != got || f.Missed != 0 || string(f.Value.Payload) != string(want.Payload) {
			t.Errorf("frame %d comes when %d is next, and misses %d: %v", f.Seq, got, f.Missed, f.Value)
		}
		got++
	})
	s := b.join(0)
	at := time.Now()
	var acks []byte
	frame := func() {
		at = at.Add(time.Second / 60)
		s.player.receive(s.payload(), at.Add(-4*time.Millisecond), false)
		b.srv.buffers.begin()
		b.srv.buffers.release(at)
		if s.next%6 == 0 {
			_ = s.player.appendSlack(acks[:0], at)
			acks = s.ack(acks)
		}
	}
	for range 1000 {
		frame()
	}
	if n := testing.AllocsPerRun(1000, frame); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
	st := b.srv.Stats().RPCs[0]
	if got+uint64(st.Buffer.Held) != s.next || st.Buffer.Released != got || st.Buffer.Missing != 0 {
		t.Errorf("%d of %d frames handled, counted %+v", got, s.next, st)
	}
}

// BenchmarkReceiveBuffered is the server's work on one frame that waits for its time, without the socket.
func BenchmarkReceiveBuffered(b *testing.B) {
	s := newBench(b, Config{Poll: true, JitterBuffer: &JitterBuffer{}}, func(*Player, Frame[testCall]) {}).join(0)
	at := time.Now()
	var acks []byte
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(time.Second / 60)
		s.player.receive(s.payload(), at.Add(-4*time.Millisecond), false)
		s.srv.buffers.begin()
		s.srv.buffers.release(at)
		if s.next%6 == 0 {
			acks = s.ack(acks)
		}
	}
}
