package ds

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// TestBufferLeavesWhileReleased removes a kicked player while its buffer releases one of its
// frames. Each frame that the buffer held is counted as dropped once.
func TestBufferLeavesWhileReleased(t *testing.T) {
	const frames = 20
	var s *sender
	handled, calls, held := 0, 0, 0
	b := newBench(t, Config{Poll: true, TickHz: 60}, func(p *Player, _ Frame[testCall]) {
		handled++
		if calls++; handled >= 4 && calls == 1 {
			held = p.bindings.buffers[0].stats().Held
			p.kicked.Store(true)
			s.srv.buffers.remove(p.bindings.buffers)
		}
	}, JitterBuffer{})
	s = b.join(0)
	at := time.Now()
	for i := range frames {
		s.player.receive(s.payload(), at.Add(time.Duration(i-frames)*time.Second/60), false)
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

// TestRestoreExits verifies that frames that wait for Poll keep their values if the decoding method
// of a type ends the goroutine.
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
