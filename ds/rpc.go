package ds

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// rpc is one RPC of the server, for all players. After Serve has started, only the field gone
// changes.
type rpc struct {
	schema  *schema.Schema
	sink    sink
	handler any // *handler[T]
	shards  []*rpcShard
	// buffer configures the jitter buffers, which newBuffer creates. It is nil if the RPC has none.
	buffer    *JitterBuffer
	newBuffer func(p *Player, b *binding, batch int) (jitterBuffer, error)
	gone      BufferStats // counts of the buffers of players who left; guarded by Server.buffers.mu
	predicted bool        // messages of worlds report which frames were processed
	time      *timeCheck  // nil without a TimeCheck
}

// sink receives the decoded frames of an RPC. deliver returns an errDrop if it drops the frame, and
// another error if the frame does not contain a value of the RPC's type.
type sink interface {
	deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error
}

// Frame is one call of an RPC.
type Frame[T any] struct {
	// Value contains the arguments, each rounded to its field's resolution. Byte slices in it are
	// valid only while the handler runs.
	Value T
	// Seq is the frame's sequence number, from 0 when the client binds the RPC.
	Seq uint64
	// Missed is the number of frames that were lost, dropped or rejected between the previous
	// delivered frame and this one, except frames that a repeated frame replaced.
	Missed uint64
	// Late reports that a newer frame was delivered or rejected before this one or, with a
	// [JitterBuffer], that the frame's tick has passed; see [Tuning.DeliverLate].
	Late bool
	// Repeated reports that the frame of this tick is missing and that Value repeats the previous
	// frame; see [JitterBuffer]. Seq is the number of the missing frame.
	Repeated bool
	// Redundant reports that a redundant copy delivered the frame, because an earlier datagram that
	// contained it was lost or is late. If the client batches frames, the server cannot always tell
	// a copy from a frame that was sent for the first time. It then assumes that each missing
	// datagram contained a frame of the RPC, and reports the minimum number of frames in them.
	Redundant bool
	// Received is when the datagram arrived.
	Received time.Time

	delta time.Duration // time that the call simulates, for a TimeCheck
}

// HandleOption is an option of [Handle] for one RPC: a [JitterBuffer], a [TimeCheck], or
// [ForPrediction].
type HandleOption interface {
	apply(r *rpc, c *Config) error
}

// ForPrediction is a [HandleOption]: the messages of worlds to each player contain the number of
// processed calls of the RPC, in 3 bytes. Clients that predict need that: see
// client.Stream.Processed.
type ForPrediction struct{}

func (ForPrediction) apply(r *rpc, _ *Config) error {
	r.predicted = true
	return nil
}

// Handle registers an RPC whose arguments are a T: f is called for each of its frames. The schema
// follows from T's fields and tags. Call Handle before Serve, so that the first clients can bind.
func Handle[T any](s *Server, name string, f func(*Player, Frame[T]), options ...HandleOption) error {
	t, err := schema.Compile[T](name, 0)
	if err != nil {
		return fmt.Errorf("ds: %w", err)
	}
	return handle(s, t.Schema(), 0, t.Restore, f, options)
}

// HandleSchema registers an RPC that a schema describes, for programs that learn the schema at run
// time. The frame is valid only while f runs.
func HandleSchema(s *Server, rpc *schema.Schema, f func(*Player, Frame[*schema.Frame]), options ...HandleOption) error {
	restore := func(v **schema.Frame, d *schema.Frame) error {
		if *v == nil {
			*v = rpc.NewFrame()
		}
		(*v).CopyFrom(d)
		return nil
	}
	return handle(s, rpc, 4*rpc.Components(), restore, f, options)
}

// handle registers an RPC. Its values refer to extra bytes of fixed size.
func handle[T any](s *Server, rpcSchema *schema.Schema, extra int, restore func(*T, *schema.Frame) error, f func(*Player, Frame[T]), options []HandleOption) error {
	h := &handler[T]{restore: restore, f: f}
	r := &rpc{schema: rpcSchema, sink: h, handler: h}
	for range s.shards {
		h.frames = append(h.frames, new(Frame[T]))
		r.shards = append(r.shards, &rpcShard{scratch: rpcdelta.NewScratch(rpcSchema), converted: rpcSchema.NewFrame()})
	}
	if s.cfg.Poll {
		in := &inbox[T]{handler: h, queue: &s.queue, size: extra + int(unsafe.Sizeof(item[T]{}))}
		r.sink = in
		r.newBuffer = func(p *Player, b *binding, batch int) (jitterBuffer, error) {
			return newPlayerBuffer(h, in, p, b, r.buffer, batch)
		}
	}
	name := rpcSchema.RPC()
	if f == nil {
		return fmt.Errorf("ds: handle %s: the handler is nil", name)
	}
	for _, o := range options {
		if err := o.apply(r, &s.cfg); err != nil {
			return fmt.Errorf("ds: handle %s: %w", name, err)
		}
	}
	if r.buffer != nil && r.time != nil {
		return fmt.Errorf("ds: handle %s: a JitterBuffer takes one call per tick: leave out the TimeCheck", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rpcs[name] != nil {
		return fmt.Errorf("ds: %s is handled already", name)
	}
	s.rpcs[name] = r
	if r.predicted {
		s.predicts.Store(true)
	}
	return nil
}

// Validate sets the validator of an RPC that [Handle] registered with the same T, or [HandleSchema]
// with a *schema.Frame. f sees each frame before the handler. A frame for which f returns an error
// is not delivered. It is counted as rejected, in the statistics of the RPC and of the player
// ([Player.Rejected]), and in Missed of the next frame. After [Limits.MaxRejected] of them the
// session ends.
//
// f runs where handlers run, and may read the game's state of the player. It cannot change the
// frame. A rejected frame is still a baseline: the codec does not depend on the validator. Call
// Validate before Serve.
func Validate[T any](s *Server, name string, f func(*Player, Frame[T]) error) error {
	r, _ := s.lookup(name)
	if r == nil {
		return fmt.Errorf("ds: validate %s: it is not handled; call Handle first", name)
	}
	h, ok := r.handler.(*handler[T])
	if !ok {
		return fmt.Errorf("ds: validate %s: it is handled, but not with %v", name, reflect.TypeFor[T]())
	}
	h.validate = f
	return nil
}

// handler is the sink that calls the game's handler at once.
type handler[T any] struct {
	restore  func(*T, *schema.Frame) error
	f        func(*Player, Frame[T])
	validate func(*Player, Frame[T]) error // nil if there is none
	frames   []*Frame[T]                   // by shard; reused with the capacity of their byte slices
}

func (h *handler[T]) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	f := h.frames[p.shard.index]
	f.describe(b, d, at)
	if err := h.restore(&f.Value, d.Frame); err != nil {
		return err
	}
	h.call(p, b, f)
	return nil
}

// describe sets the fields of the frame other than Value from a delivery.
func (f *Frame[T]) describe(b *binding, d *rpcdelta.Delivery, at time.Time) {
	f.Seq, f.Missed, f.Late, f.Redundant, f.Received = d.Seq, d.Missed, d.Late, d.Recovered, at
	if b.rpc.time != nil {
		f.delta = b.rpc.time.delta(b.rpc.schema, d.Frame)
	}
}

// call validates a frame and calls the game's handler with it, and reports whether that returned.
// Frames of a kicked player are dropped. A panic ends the player's session.
func (h *handler[T]) call(p *Player, b *binding, f *Frame[T]) (handled bool) {
	if p.kicked.Load() {
		p.dropFrame(b, Kicked, 0)
		return false
	}
	p.server.guard(p, func() {
		if h.accepts(p, b, f) {
			h.f(p, *f)
			handled = true
		}
	})
	b.process(f.Seq)
	return handled
}

// accepts reports whether the validator accepts a frame, and counts rejected frames as missed.
func (h *handler[T]) accepts(p *Player, b *binding, f *Frame[T]) bool {
	if b.rejected != 0 && !f.Late {
		f.Missed += b.rejected
		b.rejected = 0
	}
	if b.rpc.time != nil && !b.keepsTime(p, f.Received, f.delta) {
		b.reject(f.Late, f.Missed)
		p.dropFrame(b, AheadOfTime, 0)
		return false
	}
	if h.validate == nil {
		return true
	}
	err := h.validate(p, *f)
	if err == nil {
		return true
	}
	b.reject(f.Late, f.Missed)
	p.dropFrame(b, Rejected, 0)
	n := p.Rejected()
	cfg := &p.server.cfg
	if n <= maxRejectedLogged {
		cfg.Logger.Warn("frame rejected", "rpc", b.rpc.schema.RPC(), "seq", f.Seq, "player", p.ID(), "error", err)
	}
	if cfg.Limits.MaxRejected != 0 && n >= uint64(cfg.Limits.MaxRejected) {
		p.kick(transport.ErrLimit, fmt.Sprintf("%d rejected frames, MaxRejected is %d", n, cfg.Limits.MaxRejected))
	}
	return false
}

const maxRejectedLogged = 8

// inbox is the sink that queues the frames of an RPC for Poll.
type inbox[T any] struct {
	handler *handler[T]
	queue   *queue
	size    int       // bytes of a waiting frame without its byte slices
	waiting []item[T] // guarded by the queue's lock

	// Used only by Poll:
	running []item[T]
	poll    uint64 // value of quota.polls when running was filled
	next    int    // index in running of the next frame
}

type item[T any] struct {
	player  *Player
	binding *binding
	frame   Frame[T]
}

func (in *inbox[T]) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	in.queue.mu.Lock()
	defer in.queue.mu.Unlock()
	size := in.size
	for _, s := range d.Frame.Bytes {
		size += len(s)
	}
	if !in.queue.quota.admit(&p.quota, size) {
		return errDrop(QueueFull)
	}
	n := len(in.waiting)
	if n == cap(in.waiting) {
		in.waiting = append(in.waiting, item[T]{})[:n]
	}
	longer := in.waiting[:n+1] // reuses the byte slices of an earlier value
	it := &longer[n]
	if err := in.handler.restore(&it.frame.Value, d.Frame); err != nil { // may end the goroutine
		return err
	}
	in.waiting = longer
	it.player, it.binding = p, b
	it.frame.describe(b, d, at)
	in.queue.waiting = append(in.queue.waiting, in)
	return nil
}

func (in *inbox[T]) collect() {
	if polls := in.queue.quota.polls; in.poll != polls { // first job of this RPC in this Poll
		in.waiting, in.running = in.running[:0], in.waiting
		in.poll, in.next = polls, 0
	}
}

func (in *inbox[T]) run() {
	it := &in.running[in.next]
	in.next++
	p, b := it.player, it.binding
	it.player, it.binding = nil, nil
	in.handler.call(p, b, &it.frame)
}

// fixedRate returns the rate at which a client must bind the RPC, in calls per second, or 0 for any
// rate.
func (r *rpc) fixedRate(c *Config) float64 {
	switch {
	case r.buffer != nil:
		return c.TickHz
	case r.time != nil && r.time.field < 0:
		return r.time.RateHz
	}
	return 0
}
