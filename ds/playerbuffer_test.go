package ds

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/schema"

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
			_ = s.player.appendAckHeader(acks[:0], at)
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

// TestBufferLeavesWhileReleased: a player that is kicked leaves while its buffer releases the first
// of two frames. Each frame that the buffer held then is counted as dropped once.
func TestBufferLeavesWhileReleased(t *testing.T) {
	const frames = 20
	var s *sender
	handled, calls, held := 0, 0, 0
	b := newBench(t, Config{Poll: true, JitterBuffer: &JitterBuffer{TickHz: 30}}, func(p *Player, _ Frame[testCall]) {
		handled++
		if calls++; handled >= 4 && calls == 1 {
			held = p.buffers[0].stats().Held
			p.kicked.Store(true)
			s.srv.buffers.remove(p.buffers)
		}
	})
	s = b.join(0)
	at := time.Now()
	for i := range frames {
		s.player.receive(s.payload(), at.Add(time.Duration(i)*time.Millisecond), false)
	}
	for range 100 {
		b.srv.buffers.begin()
		calls = 0
		at = at.Add(time.Second / 30)
		b.srv.buffers.release(at)
	}
	if got := int(b.srv.Stats().RPCs[0].Drops[Kicked]); held < 2 || got != held {
		t.Errorf("%d frames were held after %d were handled, %d dropped", held, handled, got)
	}
}

// TestRestoreExits: a type's own method that decodes a value ends the goroutine. The frames that
// wait for Poll keep their values.
func TestRestoreExits(t *testing.T) {
	var got []uint64
	b := newBench(t, Config{Poll: true}, func(_ *Player, f Frame[testCall]) {
		var want testCall
		want.set(f.Seq)
		if f.Value.Buttons != want.Buttons || f.Value.Location != want.Location {
			t.Errorf("frame %d has the values %+v", f.Seq, f.Value)
		}
		got = append(got, f.Seq)
	})
	h := b.srv.rpcs["Call"].handler.(*handler[testCall])
	restore, restored := h.restore, 0
	h.restore = func(v *testCall, f *schema.Frame) error {
		if restored++; restored == 3 {
			runtime.Goexit()
		}
		return restore(v, f)
	}
	s := b.join(0)
	for range 6 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.call()
		}()
		<-done
	}
	b.srv.Poll()
	if !slices.Equal(got, []uint64{0, 1, 3, 4, 5}) {
		t.Errorf("frames %v were handled", got)
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
