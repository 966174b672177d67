package client

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// ackInterval is the minimum time between two datagrams with acks of calls.
const ackInterval = 100 * time.Millisecond

// Handlers holds the RPCs that the server can call at this client, see [Handle]. The zero value is
// empty. It may be used by several connections.
type Handlers struct {
	mu    sync.Mutex
	types map[string]callType
}

// Call is one call of an RPC by the server.
type Call[T any] struct {
	// Value contains the arguments, each rounded to its field's resolution. Byte slices in it are
	// valid only while the handler runs.
	Value T
	// Seq is the number that ds.Stream.Send returned for the call.
	Seq uint64
	// Missed is the number of calls that were lost or dropped between the previous one and this
	// one; always 0 for a reliable RPC.
	Missed uint64
}

// Handle registers an RPC of the client, whose arguments are a T. The server calls it over a stream
// of ds.Bind with the same name. f runs for each call that arrives, on the goroutine that receives
// for the connection. It must return quickly and must not call [Conn.Close]. A panic ends the
// session with transport.ErrPanic. Handle must be called before Dial, so that no call is lost; see
// [Config.Handlers].
func Handle[T any](h *Handlers, name string, f func(Call[T])) error {
	typ, err := schema.Compile[T](name, 0)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if f == nil {
		return fmt.Errorf("client: handle %s: the handler is nil", name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.types[name] != nil {
		return fmt.Errorf("client: %s is handled already", name)
	}
	if h.types == nil {
		h.types = map[string]callType{}
	}
	h.types[name] = &handledType[T]{typ, f}
	return nil
}

// lookup returns the RPC with a name, or nil and the names of all RPCs, nearest first.
func (h *Handlers) lookup(name string) (callType, []string) {
	if h == nil {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.types[name]; t != nil {
		return t, nil
	}
	known := slices.Sorted(maps.Keys(h.types))
	message.SortByDistance(known, name) // the last ones may not fit into the answer
	return nil, known
}

// callType is a registered RPC.
type callType interface {
	schema() *schema.Schema
	// deliver returns a function that calls the handler.
	deliver() func(*rpcdelta.Delivery, *schema.Frame) error
}

type handledType[T any] struct {
	typ *schema.Type[T]
	f   func(Call[T])
}

func (t *handledType[T]) schema() *schema.Schema { return t.typ.Schema() }

func (t *handledType[T]) deliver() func(*rpcdelta.Delivery, *schema.Frame) error {
	call := new(Call[T])
	return func(d *rpcdelta.Delivery, f *schema.Frame) error {
		call.Seq, call.Missed = d.Seq, d.Missed
		if err := t.typ.Restore(&call.Value, f); err != nil {
			return err
		}
		t.f(*call)
		return nil
	}
}

// incoming is an RPC that the server has bound over a link. It belongs to the goroutine that
// receives.
type incoming struct {
	dec        *rpcdelta.Decoder // nil if the RPC was refused
	newest     uint64            // packet number of the newest call
	reliable   bool
	conversion *versions.Conversion // converts from the server's fields; nil if they are the same
	converted  *schema.Frame
	deliver    func(*rpcdelta.Delivery, *schema.Frame) error
}

func (in *incoming) handle(d *rpcdelta.Delivery) error {
	f := d.Frame
	if in.conversion != nil {
		in.conversion.Convert(in.converted, f)
		f = in.converted
	}
	return in.deliver(d, f)
}
