package ds

import (
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// buffered is the jitter buffer of one RPC of one player.
type buffered interface {
	sink
	// of says whose it is.
	of() (*Player, *rpc)
	// release runs the handlers of what is due in a Poll, and gives their number.
	release(now time.Time) int
	// leave ends the buffer, as the player has left. If the player was kicked, the frames that wait
	// are counted as dropped.
	leave()
	stats() BufferStats
	// told is what the client is told of it.
	told() control.Buffered
}

// playerBuffer is one for frames of a T.
type playerBuffer[T any] struct {
	inbox   *inbox[T] // for what comes late
	player  *Player
	binding *binding
	late    bool // what comes late is delivered
	repeat  int
	since   time.Time
	ticks   float64 // frames a Poll

	in held[T] // of the shard's goroutine

	mu     sync.Mutex
	frames *jitter.Buffer[held[T]]
	again  uint64 // frames that were repeated
	left   bool

	// Of Poll alone:
	out    held[T]
	credit float64 // of frames
	next   uint64  // after the last frame that was released
	can    bool    // it can be repeated
	times  int     // it was in a row
}

// held is a frame that waits for its time.
type held[T any] struct {
	value    T
	received time.Time
	older    bool
}

func newPlayerBuffer[T any](in *inbox[T], p *Player, b *binding, cfg *JitterBuffer, hz float64) (*playerBuffer[T], error) {
	if !(hz >= 1 && hz <= 1000) {
		return nil, fmt.Errorf("ds: %v calls a second in a jitter buffer, want 1 to 1000", hz)
	}
	frames, err := jitter.New[held[T]](jitter.Config{
		Interval: time.Duration(float64(time.Second) / hz), Depth: cfg.Depth, MinDepth: cfg.MinDepth, MaxDepth: cfg.MaxDepth,
	})
	if err != nil {
		return nil, err
	}
	ticks := 1.0
	if cfg.TickHz != 0 {
		ticks = hz / cfg.TickHz
	}
	return &playerBuffer[T]{
		inbox: in, player: p, binding: b, late: p.server.cfg.DeliverLate, repeat: cfg.Repeat, since: time.Now(), ticks: ticks,
		frames: frames,
	}, nil
}

func (b *playerBuffer[T]) of() (*Player, *rpc) { return b.player, b.binding.rpc }

func (b *playerBuffer[T]) leave() {
	b.mu.Lock()
	b.left = true
	held := b.frames.Stats().Held
	b.mu.Unlock()
	if b.player.kicked.Load() {
		for range held {
			b.player.dropFrame(b.binding, Kicked, 0)
		}
	}
}

// deliver takes a frame into the buffer.
func (b *playerBuffer[T]) deliver(p *Player, from *binding, d *rpcdelta.Delivery, at time.Time) error {
	if err := b.inbox.handler.restore(&b.in.value, d.Frame); err != nil {
		return err
	}
	b.in.received, b.in.older = at, older(d)
	b.mu.Lock()
	before := b.frames.Stats().Skipped
	fate := b.frames.Add(at.Sub(b.since), d.Seq, &b.in)
	skipped := b.frames.Stats().Skipped - before
	b.mu.Unlock()
	for range skipped {
		p.dropFrame(from, Discarded, 0)
	}
	switch fate {
	case jitter.Held:
		return nil
	case jitter.Late:
		if !b.late {
			return errOverdue
		}
		late := *d
		late.Late, late.Missed = true, 0
		return b.inbox.deliver(p, from, &late, at)
	case jitter.Duplicate:
		return rpcdelta.ErrDuplicate
	case jitter.Early:
	}
	return errSkipped
}

// most is how much less than a frame counts as one: shares of a tick do not quite add up.
const most = 1e-6

func (b *playerBuffer[T]) release(now time.Time) (calls int) {
	for b.credit += b.ticks; b.credit >= 1-most; {
		b.credit--
		b.mu.Lock()
		if b.left {
			b.mu.Unlock()
			return calls
		}
		seq, state := b.frames.Step(now.Sub(b.since), &b.out)
		again := state == jitter.Missing && b.can && b.times < b.repeat
		if again {
			b.again++
		}
		b.mu.Unlock()
		f := Frame[T]{Value: b.out.value, Seq: seq, Redundant: b.out.older, Received: b.out.received}
		switch {
		case state == jitter.Released:
			missed := seq - b.next
			f.Missed = missed - min(missed, uint64(b.times))
			b.next, b.times = seq+1, 0
			b.can = b.inbox.handler.call(b.player, b.binding, &f)
			calls++
		case again && !b.player.kicked.Load():
			b.times++
			f.Repeated = true
			b.player.server.guard(b.player, func() { b.inbox.handler.f(b.player, f) })
			calls++
		}
	}
	return calls
}

func (b *playerBuffer[T]) stats() BufferStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.frames.Stats()
	return BufferStats{
		Buffers: 1, Released: s.Released, Missing: s.Missing, Dry: s.Dry, Repeated: b.again, Late: s.Late, Early: s.Early,
		Discarded: s.Skipped, Resyncs: s.Resyncs, Held: s.Held, Slack: s.Slack, Target: s.Target,
	}
}

func (b *playerBuffer[T]) told() control.Buffered {
	s := b.stats()
	return control.Buffered{
		RPC: uint8(b.binding.number), Slack: s.Slack, Target: s.Target, Missing: uint16(s.Missing), Late: uint16(s.Late),
	}
}
