package ds

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Handle registers an RPC whose arguments are a T: f is called for each of its frames. The schema
// follows from T's fields and tags. Call Handle before Serve, so that the first clients can bind.
func Handle[T any](s *Server, name string, f func(*Player, Frame[T])) error {
	t, err := schema.Compile[T](name, 0)
	if err != nil {
		return fmt.Errorf("ds: %w", err)
	}
	return handle(s, t.Schema(), 0, t.Restore, f)
}

// HandleSchema registers an RPC that a schema describes, for programs that learn the schema at run
// time. The frame is valid only while f runs.
func HandleSchema(s *Server, rpc *schema.Schema, f func(*Player, Frame[*schema.Frame])) error {
	restore := func(v **schema.Frame, d *schema.Frame) error {
		if *v == nil {
			*v = rpc.NewFrame()
		}
		(*v).CopyFrom(d)
		return nil
	}
	return handle(s, rpc, 4*rpc.Components(), restore, f)
}

// handle registers an RPC. Its values refer to extra bytes of fixed size.
func handle[T any](s *Server, rpcSchema *schema.Schema, extra int, restore func(*T, *schema.Frame) error, f func(*Player, Frame[T])) error {
	h := &handler[T]{restore: restore, f: f}
	r := &rpc{schema: rpcSchema, sink: h, handler: h}
	for range s.shards {
		h.frames = append(h.frames, new(Frame[T]))
		r.shards = append(r.shards, &rpcShard{scratch: rpcdelta.NewScratch(rpcSchema)})
	}
	if s.cfg.Poll {
		in := &inbox[T]{handler: h, queue: &s.queue, size: extra + int(unsafe.Sizeof(item[T]{}))}
		r.sink, r.buffer = in, s.cfg.JitterBuffer
		r.newBuffer = func(p *Player, b *binding, cfg *JitterBuffer, hz float64) (jitterBuffer, error) {
			return newPlayerBuffer(h, in, p, b, cfg, hz)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := rpcSchema.RPC()
	if s.rpcs[name] != nil {
		return fmt.Errorf("ds: %s is handled already", name)
	}
	s.rpcs[name] = r
	return nil
}

// Validate sets the validator of an RPC that [Handle] registered with the same T, or [HandleSchema]
// with a *schema.Frame. f sees each frame before the handler. A frame for which f returns an error
// is not delivered. It is counted as rejected, in the statistics of the RPC and of the player
// ([Player.Rejected]), and in Missed of the next frame. After [Config.MaxRejected] of them the
// session ends.
//
// f runs where handlers run, and may read what the game knows of the player. It cannot change the
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

// SetJitterBuffer replaces [Config.JitterBuffer] for one RPC, which [Handle] or [HandleSchema]
// registered. If j is nil, its frames do not wait. Call it before Serve.
func (s *Server) SetJitterBuffer(rpc string, j *JitterBuffer) error {
	r, _ := s.lookup(rpc)
	if r == nil {
		return fmt.Errorf("ds: jitter buffer of %s: it is not handled; call Handle first", rpc)
	}
	if err := s.cfg.checkJitterBuffer(j); err != nil {
		return fmt.Errorf("ds: jitter buffer of %s: %w", rpc, err)
	}
	r.buffer = j
	return nil
}

// lookup returns an RPC by its name, or nil and the names that are registered.
func (s *Server) lookup(name string) (*rpc, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rpcs[name]; r != nil {
		return r, nil
	}
	return nil, slices.Sorted(maps.Keys(s.rpcs))
}

// inbox is the sink that queues the frames of an RPC for Poll.
type inbox[T any] struct {
	handler *handler[T]
	queue   *queue
	size    int       // bytes of a waiting frame without its byte slices
	waiting []item[T] // guarded by the queue's lock

	// Of Poll:
	running []item[T]
	poll    uint64 // in which running was filled
	next    int    // of running
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
	longer := in.waiting[:n+1] // with the byte slices of an earlier value
	it := &longer[n]
	if err := in.handler.restore(&it.frame.Value, d.Frame); err != nil { // may end the goroutine
		return err
	}
	in.waiting = longer
	it.player, it.binding = p, b
	it.frame.describe(d, at)
	in.queue.waiting = append(in.queue.waiting, in)
	return nil
}

func (in *inbox[T]) collect() {
	if polls := in.queue.quota.polls; in.poll != polls { // first call in this Poll
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
