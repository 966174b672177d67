package transport

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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
	for _, c := range []struct{ datagrams, idle int }{{3, 2}, {0, 0}} { // a call, and a tick without anything
		for range lullAfter {
			batch(1, 1)
		}
		if !batch(1, 1) {
			t.Error("does not rest in a lull")
		}
		if batch(c.datagrams, c.idle) || batch(1, 1) {
			t.Errorf("rests after %+v", c)
		}
	}
}

// pipe is a packet connection that reads what is put into it. As with a socket, a read whose deadline has passed finds
// nothing, whatever is there.
type pipe struct {
	still
	in chan []byte

	mu       sync.Mutex
	deadline *time.Timer
}

func (p *pipe) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deadline == nil {
		p.deadline = time.NewTimer(time.Until(t))
	} else {
		p.deadline.Reset(max(0, time.Until(t)))
	}
	return nil
}

func (p *pipe) ReadBatch(into []Datagram) (n int, err error) {
	p.mu.Lock()
	passed := p.deadline.C
	p.mu.Unlock()
	take := func(d []byte) {
		into[n].N, into[n].Addr = copy(into[n].Buf, d), port(1)
		n++
	}
	select {
	case <-passed:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	select {
	case <-passed:
		return 0, os.ErrDeadlineExceeded
	case d := <-p.in:
		take(d)
	}
	for n < len(into) && len(p.in) > 0 {
		take(<-p.in)
	}
	return n, nil
}

func (p *pipe) WriteBatch(out []Datagram) (int, error) { return len(out), nil }

// resting is an endpoint in a lull without end.
type resting struct {
	echoing
	ticked []time.Time
}

func (r *resting) rest() bool         { return true }
func (r *resting) tick(now time.Time) { r.ticked = append(r.ticked, now) }

// TestLoopRests: a loop that rests reads what has come every second tick, misses none, ticks as often, and can be stopped.
func TestLoopRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, between, count, room = 16 * time.Millisecond, 3 * time.Millisecond, 1000, 4
		pc := &pipe{still: still{sent: func([]byte) {}}, in: make(chan []byte, count)}
		l := newLoop(pc, interval, room, new(sentCounters))
		l.drains = true
		e := &resting{echoing: echoing{loop: &l}}
		done := make(chan error, 1)
		go func() { done <- l.run(e) }()
		begin := time.Now()
		for range count {
			pc.in <- []byte("x")
			time.Sleep(between)
		}
		time.Sleep(2 * restTicks * interval)
		passed := time.Since(begin)
		l.stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := len(e.times); n != count {
			t.Errorf("%d datagrams, want %d", n, count)
		}
		if n, want := len(e.ticked), int(passed/interval/restTicks); n < want-1 || n > want+1 {
			t.Errorf("%d ticks in %v, want %d", n, passed, want)
		}
		read := 0 // at how many times
		for i, at := range e.times {
			if i == 0 || at != e.times[i-1] {
				read++
			}
		}
		if most := 2 * (len(e.ticked) + 1); read > most { // the first four of five or six, and the rest
			t.Errorf("read at %d times, want %d at most", read, most)
		}
	})
}
