package client

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// ackInterval is the minimum time between two datagrams with acks of calls.
const ackInterval = 100 * time.Millisecond

// Handlers are the RPCs that the server can call at this client: see [Handle]. The zero value has
// none. It may be used by several connections.
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

// Handle registers an RPC of the client, whose arguments are a T: f is called with each call of
// ds.Bind's streams of that name that arrives, on the goroutine that receives for the connection.
// It must return quickly and must not call [Conn.Close]. A panic ends the session with
// session.ErrPanic. Handle must be called before Dial, so that no call is lost; see
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

// lookup returns the RPC of a name, or nil and the names that there are.
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

// callType is an RPC with its type.
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
	dec        *rpcdelta.Decoder // nil if it was refused
	newest     uint64            // packet number
	reliable   bool
	conversion *versions.Conversion // from the server's fields; nil if they are the same
	converted  *schema.Frame
	deliver    func(*rpcdelta.Delivery, *schema.Frame) error
}

// bindCall handles a request of the server, and answers it.
func (s *connection) bindCall(link *transport.Conn, b []byte) error {
	r, err := message.ParseBindRequest(b)
	if err != nil {
		return err
	}
	if int(r.RPC) != len(s.calls) || len(s.calls) >= message.MaxCalls {
		return fmt.Errorf("%w: a request to bind RPC %d, want %d, up to %d", message.ErrMalformed, r.RPC, len(s.calls), message.MaxCalls-1)
	}
	a := message.BindAnswer{RPC: r.RPC, Ring: rpcdelta.DefaultRing}
	in, err := s.newIncoming(&r, &a)
	if err != nil {
		return fmt.Errorf("%w: a request to bind RPC %d: %w", message.ErrMalformed, r.RPC, err)
	}
	s.calls = append(s.calls, in)
	if a.Reason != message.ReasonNone {
		s.cfg.Logger.Warn("call refused", "rpc", shown(r.Name), "reason", a.Reason.String())
	} else if d := a.Differences(); d.Any() {
		s.mismatches.add(&MismatchError{RPC: r.Name, Call: true, Here: d.Answering, There: d.Asking})
		link.Wake(time.Now()) // Tick reports it
	}
	answer, err := a.Fit(nil, transport.MaxPayload)
	if err == nil {
		err = link.SendReliable(answer)
	}
	if err != nil { // the session has ended, or will
		s.cfg.Logger.Debug("call not answered", "rpc", shown(r.Name), "error", err)
	}
	return nil
}

// newIncoming binds an RPC as requested, or sets the reason of the answer. An error means that no
// server sends the request.
func (s *connection) newIncoming(r *message.BindRequest, a *message.BindAnswer) (*incoming, error) {
	in := &incoming{reliable: r.Reliable}
	t, known := s.cfg.Handlers.lookup(r.Name)
	if t == nil {
		a.Reason, a.Known = message.ReasonUnknown, known
		return in, nil
	}
	own, fields := t.schema(), make([]string, len(r.Described))
	for i, d := range r.Described {
		if d.Field != i || i >= schema.MaxFields {
			return nil, fmt.Errorf("field %d at %d", d.Field, i)
		}
		fields[i] = d.Description
	}
	there := own
	if r.Fingerprint != own.Fingerprint() {
		var err error
		if there, err = versions.Parse(r.Name, fields); err != nil {
			return nil, err
		}
		if in.conversion, err = versions.New(there, own); err != nil {
			a.Reason, a.Theirs = message.ReasonSchema, shown(err.Error())
			return in, nil
		}
		a.Report(message.Differences{Asking: in.conversion.Skipped(), Answering: in.conversion.Missing()})
		if len(in.conversion.Missing()) == len(own.Fields()) {
			a.Reason = message.ReasonSchema
			return in, nil
		}
		in.converted = own.NewFrame()
	}
	rated, err := there.WithPerTick(r.RateHz, r.PerTick)
	if err != nil {
		return nil, err
	}
	generic := prior.Generic()
	switch {
	case r.Prior != generic.Hash() || r.Codec != rpcdelta.Adaptive.String():
		a.Reason, a.Known = message.ReasonCodec, message.Codecs()
		return in, nil
	case r.Ring < 2 || r.Ring > rpcdelta.DefaultRing:
		a.Reason = message.ReasonInvalid
		return in, nil
	}
	in.dec, err = rpcdelta.NewDecoder(rated, rpcdelta.DecoderConfig{
		Codec: rpcdelta.Adaptive, RPC: int(r.RPC), PeerRing: r.Ring, Prior: generic, Reliable: r.Reliable,
	})
	in.deliver = t.deliver()
	return in, err
}

// call handles a payload with unreliable calls of the server, in a datagram of that packet number.
// It ignores RPCs that were refused, and calls that overtake the request to bind.
func (s *connection) call(b []byte, number uint64) error {
	n, err := rpcdelta.PeekRPC(b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", message.ErrMalformed, err)
	case n >= len(s.calls) || s.calls[n].dec == nil:
		s.count(&s.stats.CallsDropped, 1)
		return nil
	case s.calls[n].reliable:
		return errUnbound
	}
	in := s.calls[n]
	if number+shortReach <= in.newest { // its sequence number could be that of a newer one
		s.count(&s.stats.CallsDropped, 1)
		return nil
	}
	in.newest = max(in.newest, number)
	err = s.decode(in, b)
	if in.dec.AckDue() {
		s.own.Wake(s.start.Add(s.callsAcked + ackInterval))
	}
	if err != nil {
		s.count(&s.stats.CallsDropped, 1)
	}
	return nil
}

// shortReach is the number of sequence numbers that the short header of a payload distinguishes.
const shortReach = 64

var errUnbound = fmt.Errorf("%w: a frame of an RPC that is not bound", message.ErrMalformed)

// reliableCall handles a payload with a reliable call. Those of an RPC that was refused are
// ignored: the server may not know yet.
func (s *connection) reliableCall(b []byte) error {
	n, err := rpcdelta.PeekRPC(b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", message.ErrMalformed, err)
	case n >= len(s.calls) || !s.calls[n].reliable:
		return errUnbound
	case s.calls[n].dec == nil:
		return nil
	}
	if err := s.decode(s.calls[n], b); err != nil {
		return fmt.Errorf("%w: a frame of RPC %d: %w", message.ErrMalformed, n, err)
	}
	return nil
}

func (s *connection) decode(in *incoming, b []byte) error {
	frames, err := in.dec.Decode(b)
	for i := range frames {
		if err := in.handle(&frames[i]); err != nil {
			return err
		}
		s.count(&s.stats.Calls, 1)
	}
	return err
}

func (in *incoming) handle(d *rpcdelta.Delivery) error {
	f := d.Frame
	if in.conversion != nil {
		in.conversion.Convert(in.converted, f)
		f = in.converted
	}
	return in.deliver(d, f)
}

// ackCalls sends the acks of the server's calls that are worth a datagram.
func (s *connection) ackCalls(now time.Time) {
	due, pays := false, false
	overhead := 8 * (transport.IPSize + transport.HeaderSize + s.own.Suite().Overhead() + 1) // bits around acks
	for _, in := range s.calls {
		if in.dec != nil && in.dec.AckDue() {
			due, pays = true, pays || in.dec.AckPays(overhead, 0)
		}
	}
	switch at := s.start.Add(s.callsAcked + ackInterval); {
	case !due:
		return
	case now.Before(at):
		s.own.Wake(at)
		return
	case !pays:
		s.own.Wake(now.Add(ackInterval))
		return
	}
	acks := []byte{byte(message.Acks)}
	for _, in := range s.calls {
		if in.dec != nil && in.dec.AckDue() {
			acks = in.dec.AppendAck(acks)
		}
	}
	if s.own.Send(acks) == nil { // otherwise the session has ended
		s.callsAcked = now.Sub(s.start)
	}
}
