package client

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Stream sends the calls of one RPC whose arguments are a T. Its methods are safe for concurrent
// use.
type Stream[T any] struct {
	b        *binding
	quantize func(v *T) (*schema.Frame, error)
	restore  func(v *T, f *schema.Frame) error // inverse of quantize
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
	return &Stream[T]{
		b:        b,
		quantize: func(v *T) (*schema.Frame, error) { return b.frame, typ.Quantize(b.frame, v) },
		restore:  typ.Restore,
	}, nil
}

// Send makes one call, and returns its sequence number: ds.Frame.Seq of the call at the server, and
// the number that [Stream.Processed] counts by. The first call of each session has the number 0.
// Send never waits: on the unreliable channel, the frame is in the socket's buffer when Send
// returns, unless it is held back because of Config.Tick, Config.Bandwidth or BindConfig.Delay; on
// the reliable channel it is queued. Apart from fields coded as msgpack, it does not allocate.
//
// A frame is not sent, but the stream remains usable, if
//   - a value exceeds the range of its field: a [*schema.RangeError] that names the field;
//   - it does not fit into a datagram: [rpcdelta.ErrTooLarge];
//   - the client is reconnecting: [ErrReconnecting];
//   - too many reliable frames wait for acks: transport.ErrBacklog.
//
// After Close the error is [net.ErrClosed]. If the server restarts and then refuses the
// RPC, Send returns the error that Bind would return.
func (s *Stream[T]) Send(v *T) (seq uint64, err error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	f, err := s.quantize(v)
	if err != nil {
		s.b.countUnsent(err)
		return 0, err
	}
	return s.b.send(f)
}

// Flush sends the frames that are held back because of a delay policy, Config.Bandwidth or
// congestion. If payloads share datagrams (Config.Tick), they wait for [Conn.Flush]. Errors are
// those of Send.
func (s *Stream[T]) Flush() error { return s.b.flush() }

// Stats returns the counts of this RPC.
func (s *Stream[T]) Stats() RPCStats { return s.b.counts() }

// Pace returns the rate at which the server's jitter buffer needs the calls. Call it each tick and
// start the next tick after Pace.Interval. Of several RPCs that are called in the same tick, one is
// enough. It does not allocate.
func (s *Stream[T]) Pace() Pace { return s.b.paceAt(time.Now()) }

// Processed returns the sequence number of the first call that the server had not processed when it
// sent the snapshot or update that contains p. That call and later ones have no effect on its
// state. A lost call counts as processed once a later call is. It reports false if the server did
// not register the RPC with ds.ForPrediction, or while the client is reconnecting.
func (s *Stream[T]) Processed(p Processed) (next uint64, ok bool) { return s.b.processed(p) }

// upcoming returns the sender of the current session, which identifies the session, and the
// sequence number of its next call.
func (s *Stream[T]) upcoming() (session *sender, seq uint64, err error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	session, err = s.b.ready()
	if err != nil {
		return nil, 0, err
	}
	return session, session.enc.Next(), nil
}

// sendIn sends v as call seq of a session and sets v to the value that the server decodes. It
// reports false and sends nothing if the session has changed or seq is not its next call.
func (s *Stream[T]) sendIn(session *sender, seq uint64, v *T) (current bool, err error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.at != session || session.enc == nil || session.enc.Next() != seq {
		return false, nil
	}
	f, err := s.quantize(v)
	if err != nil {
		s.b.countUnsent(err)
		return true, err
	}
	if _, err := s.b.send(f); err != nil {
		return true, err
	}
	return true, s.restore(v, f)
}

// Processed is an argument of [Stream.Processed].
type Processed = replication.Processed

// BindSchema is [Bind] for frames of a schema, for programs that learn the schema at run time. The
// schema declares the rate, so BindConfig.RateHz must be 0.
func BindSchema(ctx context.Context, c *Conn, rpcSchema *schema.Schema, cfg BindConfig) (*Stream[schema.Frame], error) {
	if cfg.RateHz != 0 {
		return nil, fmt.Errorf("client: bind %s: BindConfig.RateHz is %v, but the schema declares %v Hz: want 0", rpcSchema.RPC(), cfg.RateHz, rpcSchema.RateHz())
	}
	b, err := c.bind(ctx, rpcSchema, cfg)
	if err != nil {
		return nil, err
	}
	return &Stream[schema.Frame]{
		b:        b,
		quantize: func(f *schema.Frame) (*schema.Frame, error) { return f, nil },
		restore:  func(*schema.Frame, *schema.Frame) error { return nil },
	}, nil
}
