package ds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/jitter"
)

// JitterBuffer is a [HandleOption]: a player's frames of the RPC wait for their tick. It is for
// RPCs that are called once in each tick. Zero fields mean the defaults.
//
// It requires Config.Poll and Config.TickHz. A client that declares another rate than TickHz cannot
// bind the RPC, since a buffer would drop some of its calls, or repeat others that were made once.
// Nor can one that binds it on the reliable channel, where no frame may be missing.
//
// A frame's tick follows from its sequence number: each [Server.Poll] releases the next frame of
// each player, in order and independent of arrival times, so that the game receives the calls as
// evenly as the player made them. If a frame has not arrived it is missed: the next frame reports
// that (Frame.Missed), and with Repeat the handler is called with the previous frame instead. A
// frame that arrives after its tick is dropped as late_for_tick, or with Config.Tuning.DeliverLate
// delivered, marked as late, at the next Poll.
//
// The server reports to the client how early its frames arrive and how early they should. The
// client's clock follows if the game runs it at the rate of client.Stream.Pace. If a client's clock
// does not follow, the buffer sets its release times again when the frames arrive too early or too
// late for them. docs/jitter.md has measurements.
//
// The frames in a buffer do not count for Config.Limits.QueueBytes. A buffer holds at most the
// frames of about twice MaxDepth.
type JitterBuffer struct {
	// Depth is the target: the mean time from a frame's arrival to its release, up to 2 s. At 0,
	// the default, the target is learned from the jitter, between MinDepth and MaxDepth. MinDepth
	// is by default a quarter of the time between two calls. MaxDepth is by default 250 ms or four
	// times the time between two calls, whichever is more. If the client lets frames wait
	// (client.DelayPolicy), each of these is at least that wait plus a quarter of the time between
	// two calls, so that a frame is not too late because it waited.
	Depth, MinDepth, MaxDepth time.Duration
	// Repeat is the number of consecutive missing frames for which the handler is called with the
	// last frame again, with Frame.Repeated set; 0, the default, for none. The validator is not
	// called again, and a rejected frame is not repeated.
	Repeat int
}

func (j JitterBuffer) apply(r *rpc, c *Config) error {
	switch {
	case !c.Poll:
		return errors.New("JitterBuffer: frames are released in Poll: set Config.Poll")
	case c.TickHz == 0:
		return errors.New("JitterBuffer: frames are released once per tick: set Config.TickHz to how often per second the game calls Poll")
	}
	r.buffer = &j
	err := cmp.Or(
		notNegative("Repeat", j.Repeat),
		between("Depth", j.Depth, 0, maxDepth),
		between("MaxDepth", j.MaxDepth, 0, maxDepth),
		between("MinDepth", j.MinDepth, 0, cmp.Or(j.MaxDepth, maxDepth)),
	)
	if err != nil {
		return fmt.Errorf("JitterBuffer.%w", err)
	}
	return nil
}

const maxDepth = 2 * time.Second

type jitterBuffer interface {
	sink
	owner() (*Player, *binding)
	// release runs the handlers of the frames that are due in a Poll, and returns their number.
	release(now time.Time) int
	// close ends the buffer. If the player was kicked, its waiting frames are counted as dropped.
	close()
	stats() BufferStats
}

type jitterBuffers struct {
	mu  sync.Mutex
	all []jitterBuffer

	// Of Poll:
	due  []jitterBuffer
	next int // index in due of the next buffer
}

func (s *jitterBuffers) add(b jitterBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, b)
}

// remove closes the buffers of a player who has left, before Config.Left is called.
func (s *jitterBuffers) remove(gone []jitterBuffer) {
	if len(gone) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(b jitterBuffer) bool { return slices.Contains(gone, b) })
	for _, b := range gone {
		b.close()
		_, of := b.owner()
		st := b.stats()
		st.Buffers = 0 // the buffer is closed; its other counts remain valid
		of.rpc.gone.add(&st)
	}
}

// finish releases the frames that wait in the buffers of a player who continues at another server,
// and removes the buffers. It runs in Poll.
func (s *jitterBuffers) finish(gone []jitterBuffer, now time.Time) {
	for _, b := range gone {
		for b.stats().Held > 0 {
			b.release(now)
		}
	}
	s.remove(gone)
}

// begin collects the buffers that exist when a Poll begins.
func (s *jitterBuffers) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = append(s.due, s.all...)
}

// release releases the due frames of the collected buffers, and returns the number of handlers that
// ran. If a handler ends the goroutine, the next call continues with the next buffer.
func (s *jitterBuffers) release(now time.Time) (calls int) {
	for s.next < len(s.due) {
		b := s.due[s.next]
		s.next++
		calls += b.release(now)
	}
	clear(s.due) // release the players
	s.due, s.next = s.due[:0], 0
	return calls
}

func (s *jitterBuffers) addTo(stats []RPCStats, rpcs map[string]*rpc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := make(map[*rpc]int, len(rpcs))
	for i := range stats {
		if st := &stats[i]; !st.Reliable {
			r := rpcs[st.RPC]
			index[r] = i
			st.Buffer.add(&r.gone)
		}
	}
	for _, b := range s.all {
		_, of := b.owner()
		one := b.stats()
		stats[index[of.rpc]].Buffer.add(&one)
	}
}

type playerBuffer[T any] struct {
	handler *handler[T]
	late    sink // for late frames; nil if they are dropped
	player  *Player
	binding *binding
	repeat  int
	start   time.Time

	in held[T] // scratch, used only by the shard's goroutine

	mu       sync.Mutex
	frames   *jitter.Buffer[held[T]]
	repeated uint64
	closed   bool

	// Of Poll:
	out        held[T]
	next       uint64 // sequence number after the last released frame
	repeatable bool   // the last released frame was handled
	repeats    int    // number of repetitions since then
}

type held[T any] struct {
	value     T
	received  time.Time
	redundant bool
}

func newPlayerBuffer[T any](h *handler[T], late sink, p *Player, b *binding, cfg *JitterBuffer, batch int) (*playerBuffer[T], error) {
	interval := time.Duration(float64(time.Second) / b.hz)
	depth, minDepth, maxDepth := cfg.Depth, cfg.MinDepth, cfg.MaxDepth
	if batch > 0 { // frames that a client holds back must still be in time
		least := time.Duration(batch)*interval + interval/4
		minDepth = max(minDepth, least)
		if maxDepth != 0 {
			maxDepth = max(minDepth, maxDepth)
		}
		if depth != 0 {
			depth = max(least, depth)
		}
	}
	frames, err := jitter.New[held[T]](jitter.Config{Interval: interval, Depth: depth, MinDepth: minDepth, MaxDepth: maxDepth})
	if err != nil {
		return nil, err
	}
	if !p.server.cfg.Tuning.DeliverLate {
		late = nil
	}
	return &playerBuffer[T]{
		handler: h, late: late, player: p, binding: b, repeat: cfg.Repeat, start: time.Now(), frames: frames,
	}, nil
}

func (b *playerBuffer[T]) owner() (*Player, *binding) { return b.player, b.binding }

func (b *playerBuffer[T]) close() {
	b.mu.Lock()
	b.closed = true
	held := b.frames.Stats().Held
	b.mu.Unlock()
	if b.player.kicked.Load() {
		for range held {
			b.player.dropFrame(b.binding, Kicked, 0)
		}
	}
}

func (b *playerBuffer[T]) deliver(p *Player, from *binding, d *rpcdelta.Delivery, at time.Time) error {
	if err := b.handler.restore(&b.in.value, d.Frame); err != nil {
		return err
	}
	b.in.received, b.in.redundant = at, d.Recovered
	b.mu.Lock()
	before := b.frames.Stats().Skipped
	result := b.frames.Add(at.Sub(b.start), d.Seq, &b.in)
	discarded := b.frames.Stats().Skipped - before
	b.mu.Unlock()
	for range discarded {
		p.dropFrame(from, Discarded, 0)
	}
	switch result {
	case jitter.Held:
		return nil
	case jitter.Late:
		if b.late == nil {
			return errDrop(LateForTick)
		}
		late := *d
		late.Late, late.Missed = true, 0
		return b.late.deliver(p, from, &late, at)
	case jitter.Duplicate:
		return errDrop(Duplicate)
	case jitter.Early:
	}
	return errDrop(Discarded)
}

// release releases the frame of the tick and returns the number of handlers that ran: 0 or 1.
func (b *playerBuffer[T]) release(now time.Time) (calls int) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0
	}
	seq, state := b.frames.Step(now.Sub(b.start), &b.out)
	repeat := state == jitter.Missing && b.repeatable && b.repeats < b.repeat
	if repeat {
		b.repeated++
	}
	b.mu.Unlock()
	f := Frame[T]{Value: b.out.value, Seq: seq, Redundant: b.out.redundant, Received: b.out.received}
	switch {
	case state == jitter.Released:
		missed := seq - b.next
		f.Missed = missed - min(missed, uint64(b.repeats))
		b.next, b.repeats = seq+1, 0
		b.repeatable = b.handler.call(b.player, b.binding, &f)
		return 1
	case repeat && !b.player.kicked.Load():
		b.repeats++
		f.Repeated = true
		b.player.server.guard(b.player, func() { b.handler.f(b.player, f) })
		b.binding.process(seq)
		return 1
	}
	return 0
}

func (b *playerBuffer[T]) stats() BufferStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BufferStats{Buffers: 1, Stats: b.frames.Stats(), Repeated: b.repeated}
}
