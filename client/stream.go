package client

import (
	"context"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/schema"
)

// Stream sends the calls of one RPC whose arguments are a T. Its methods are safe for concurrent
// use.
type Stream[T any] struct {
	*binding
	typ *schema.Type[T]
}

// Bind binds an RPC of the server to T, whose fields and tags describe the arguments. It waits for
// the server's answer until ctx is done, or for Config.Transport.BindTimeout if ctx has no
// deadline. It returns an error if the server has no such RPC ([ErrUnknownRPC]), has a field
// that cannot be converted ([*FieldError]) or does not answer in time ([ErrBindTimeout]).
func Bind[T any](ctx context.Context, c *Conn, name string, cfg BindConfig) (*Stream[T], error) {
	typ, err := schema.Compile[T](name, cfg.RateHz)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	b, err := c.bind(ctx, typ.Schema(), cfg)
	if err != nil {
		return nil, err
	}
	return &Stream[T]{binding: b, typ: typ}, nil
}

// Send makes one call, and returns its sequence number: ds.Frame.Seq of the call at the server, and
// the number that [Stream.Processed] counts by. The first call of each session has the number 0.
// Send never waits: on the unreliable channel, the frame is in the socket's
// buffer when Send returns, unless it is held back because of Config.Tick, Config.Bandwidth or
// BindConfig.Delay; on the reliable channel it is queued. Apart from fields coded as msgpack,
// it does not allocate.
//
// A frame is not sent, but the stream remains usable, if
//   - a value exceeds the range of its field: a [*schema.RangeError] that names the field;
//   - it does not fit into a datagram: [rpcdelta.ErrTooLarge];
//   - the client is reconnecting: [ErrReconnecting];
//   - too many reliable frames wait for acks: session.ErrBacklog.
//
// After Close the error is [net.ErrClosed]. If the server restarts and then refuses the
// RPC, Send returns the error that Bind would return.
func (s *Stream[T]) Send(v *T) (seq uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.typ.Quantize(s.frame, v); err != nil {
		s.countUnsent(err)
		return 0, err
	}
	return s.send(s.frame)
}

// upcoming returns the sender of the current session, which identifies it, and the sequence number
// of the next call in it.
func (s *Stream[T]) upcoming() (session *sender, seq uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, err = s.ready()
	if err != nil {
		return nil, 0, err
	}
	return session, session.enc.Next(), nil
}

// sendIn sends a call if it is the next one of a session, and sets v to what the server decodes. It
// reports whether that session was still the current one.
func (s *Stream[T]) sendIn(session *sender, seq uint64, v *T) (current bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != session || session.enc == nil || session.enc.Next() != seq {
		return false, nil
	}
	if err := s.typ.Quantize(s.frame, v); err != nil {
		s.countUnsent(err)
		return true, err
	}
	if _, err := s.send(s.frame); err != nil {
		return true, err
	}
	return true, s.typ.Restore(v, s.frame)
}

// Processed is an argument of [Stream.Processed].
type Processed = replication.Processed

// FrameStream sends the calls of one RPC that a schema describes, for programs that learn the
// schema at run time. Its methods are safe for concurrent use.
type FrameStream struct{ *binding }

// BindSchema is [Bind] for frames of a schema. The schema declares the rate, so BindConfig.RateHz
// must be 0.
func BindSchema(ctx context.Context, c *Conn, rpcSchema *schema.Schema, cfg BindConfig) (*FrameStream, error) {
	if cfg.RateHz != 0 {
		return nil, fmt.Errorf("client: bind %s: BindConfig.RateHz is %v, but the schema declares %v Hz: want 0", rpcSchema.RPC(), cfg.RateHz, rpcSchema.RateHz())
	}
	b, err := c.bind(ctx, rpcSchema, cfg)
	if err != nil {
		return nil, err
	}
	return &FrameStream{b}, nil
}

// Send makes one call with the arguments in f; see [Stream.Send].
func (s *FrameStream) Send(f *schema.Frame) (seq uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(f)
}
