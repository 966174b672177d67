package transport

import (
	"bytes"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// TestLull: a listener rests only while nothing but idle sessions is heard, and nothing else was for a while.
func TestLull(t *testing.T) {
	s, now := &shard{}, time.Unix(1, 0)
	batch := func(datagrams, idle int) bool {
		now = now.Add(time.Millisecond)
		s.lull.datagrams, s.lull.idle = datagrams, idle
		return s.rest(now)
	}
	for i := 1; i < lullAfter; i++ {
		if batch(2, 2) {
			t.Fatalf("rests after %d batches", i)
		}
	}
	if !batch(2, 2) {
		t.Fatal("does not rest in a lull")
	}
	if batch(0, 0) || batch(1, 1) {
		t.Error("rests after a tick without anything")
	}
	for range lullAfter {
		batch(1, 1)
	}
	for name, disturb := range map[string]func(){
		"a call":                   func() { batch(3, 2) },
		"a message that is queued": func() { s.lull.disturb(now) },
	} {
		if !batch(1, 1) {
			t.Fatal("does not rest in a lull")
		}
		disturb()
		for end := now.Add(lullQuiet); now.Before(end.Add(-time.Millisecond)); {
			if batch(1, 1) {
				t.Fatalf("rests %v before the end of what follows %s", end.Sub(now), name)
			}
		}
	}
}

// live has a guest and its desk live for some time, in ticks and batches, and says how long ago anything but an idle
// session was heard of.
func (g *guest) live(span time.Duration) time.Duration {
	d := g.desk
	d.pc.sent = func(b []byte) { g.Input(d.now, d.pc.LocalAddr(), bytes.Clone(b)) }
	for end := d.now.Add(span); d.now.Before(end); {
		time.Sleep(DefaultTick)
		d.now = time.Now()
		g.Advance(d.now)
		for len(g.out) > 0 {
			b := g.out[0]
			g.out = g.out[1:]
			d.receive(d.now, datagram{g.from, b})
		}
		d.take(d.now)
		d.tick(d.now)
		d.rest(d.now)
	}
	return d.now.Sub(d.lull.other)
}

// TestLullHearsMessages: there is no lull while a player who was idle sends something, or is sent messages, although
// heartbeats are rare until the next one.
func TestLullHearsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, Config{})
		g := d.visit(t, guestAddr, token.Token{}).open()
		g.out = nil
		for name, disturb := range map[string]func() error{
			"a datagram": func() error { return g.Send([]byte("x")) },
			"a message":  func() error { return g.SendReliable(d.now, []byte("x")) },
		} {
			const long = time.Minute
			g.live(long)
			if quiet := g.live(long); quiet < long {
				t.Fatalf("an idle session ends a lull: %v", quiet)
			}
			if err := disturb(); err != nil {
				t.Fatal(err)
			}
			if quiet := g.live(time.Second / 2); quiet > time.Second/2 {
				t.Errorf("a lull goes on for %v after %s", quiet, name)
			}
		}
		if err := d.conns.at(guestAddr).SendReliable([]byte("x")); err != nil {
			t.Fatal(err)
		}
		d.tick(d.now) // before anything comes back
		if d.lull.other != d.now {
			t.Error("a lull goes on while a message is sent")
		}
	})
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

func (r *resting) rest(time.Time) bool { return true }
func (r *resting) tick(now time.Time)  { r.ticked = append(r.ticked, now) }

// TestLoopRests: a loop that rests reads what has come every second tick, misses none, ticks as often, and can be stopped.
func TestLoopRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, between, count, room = 16 * time.Millisecond, 3 * time.Millisecond, 1000, 4
		pc := &pipe{still: still{sent: func([]byte) {}}, in: make(chan []byte, count)}
		l := newLoop(pc, interval, room, new(sentCounters), slog.New(slog.DiscardHandler))
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
