package ds

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Frame is one call of an RPC, as the client made it.
type Frame[T any] struct {
	// Value holds the arguments, each to its field's resolution. Byte slices in it
	// are valid only while the handler runs.
	Value T
	// Seq is the frame's number, from 0 when the client binds the RPC.
	Seq uint64
	// Missed is how many frames before this one were not delivered, since the last
	// one that was: lost, dropped or refused. Those that one was repeated for are not
	// among them.
	Missed uint64
	// Late says that newer frames were delivered, or refused, before, or that the
	// frame's tick is over where there is a [JitterBuffer]; see [Config.DeliverLate].
	Late bool
	// Repeated says that there is no frame for the tick, and Value is that of the one
	// before; see [JitterBuffer]. Seq is the number of the one that is missing.
	Repeated bool
	// Older says that the frame rode along in the payload of a newer one, which is
	// delivered next: its own payload was lost or is late, or it was held back.
	Redundant bool
	// Received is when the datagram came.
	Received time.Time
}

// rpc is one RPC of the server, for all players.
type rpc struct {
	schema *schema.Schema
	sink   sink
	// handler is the *handler[T], for Validate.
	handler any
	shards  []*rpcShard // of the server's shards
	// buffer says how frames wait for their time, if it is not nil, and newBuffer has
	// those of one player do so.
	buffer    *JitterBuffer
	newBuffer func(p *Player, b *binding, cfg *JitterBuffer, hz float64) (buffered, error)
	gone      BufferStats // of players who left; guarded by the server's buffers
}

// sink is where an RPC's frames go. A frame that does not hold a value of the
// RPC's type is an error.
type sink interface {
	deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error
}

// Handle has f called for each frame of the RPC whose arguments are a T. The
// schema comes from T's fields and tags. Handle before Serve, so that the first
// clients find the RPC.
func Handle[T any](s *Server, name string, f func(*Player, Frame[T])) error {
	t, err := schema.Compile[T](name, 0)
	if err != nil {
		return fmt.Errorf("ds: %w", err)
	}
	return handle(s, t.Schema(), 0, t.Restore, f)
}

// HandleSchema has f called for each frame of an RPC that a schema describes,
// for programs that learn the schema as they run. The frame is valid only while
// f runs.
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

// handle adds an RPC whose values hold so many bytes of fixed size besides their own.
func handle[T any](s *Server, rpcSchema *schema.Schema, more int, restore func(*T, *schema.Frame) error, f func(*Player, Frame[T])) error {
	h := &handler[T]{restore: restore, f: f}
	r := &rpc{schema: rpcSchema, sink: h, handler: h}
	for range s.shards {
		h.frames = append(h.frames, new(Frame[T]))
		r.shards = append(r.shards, &rpcShard{scratch: rpcdelta.NewScratch(rpcSchema)})
	}
	if s.cfg.Poll {
		in := &inbox[T]{handler: h, queue: &s.queue, size: more + int(unsafe.Sizeof(item[T]{}))}
		r.sink, r.buffer = in, s.cfg.JitterBuffer
		r.newBuffer = func(p *Player, b *binding, cfg *JitterBuffer, hz float64) (buffered, error) {
			return newPlayerBuffer(in, p, b, cfg, hz)
		}
	}
	return s.register(r)
}

// handler calls f at once.
type handler[T any] struct {
	restore func(*T, *schema.Frame) error
	f       func(*Player, Frame[T])
	// validate, if not nil, may refuse a frame.
	validate func(*Player, Frame[T]) error
	frames   []*Frame[T] // of the shards; reused, so that byte slices keep their room
}

func (h *handler[T]) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	f := h.frames[p.shard.index]
	f.Seq, f.Missed, f.Late, f.Redundant, f.Received = d.Seq, d.Missed, d.Late, older(d), at
	if err := h.restore(&f.Value, d.Frame); err != nil {
		return err
	}
	h.call(p, b, f)
	return nil
}

// older says whether another frame of the payload comes after it: the newest alone
// has the bits.
func older(d *rpcdelta.Delivery) bool { return d.HeaderBits == 0 }
