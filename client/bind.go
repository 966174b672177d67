package client

import (
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Option changes how an RPC is bound.
type Option func(*options)

type options struct {
	rate     float64
	reliable bool
	every    int
}

// MaxSendEvery is the most calls that [SendEvery] puts into a datagram.
const MaxSendEvery = 4

// Rate declares how often a second the RPC is called; default
// schema.DefaultRate.
func Rate(hz float64) Option { return func(o *options) { o.rate = hz } }

// Reliable has frames arrive in order, every one, over the reliable channel.
// Each is the difference from the one before. Those that are on their way when
// the connection is lost may be lost with it.
func Reliable() Option { return func(o *options) { o.reliable = true } }

// SendEvery has n calls leave in one datagram, 1 to MaxSendEvery: the first n-1 are
// held back, and Send of the last sends them all. The headers of a datagram weigh
// more than most frames, so that two calls in one take about 40 % less, for a delay of
// one interval. What is held when no more calls come leaves after about n intervals
// of [Rate]. The adaptive codec can do this, on the unreliable channel.
func SendEvery(n int) Option { return func(o *options) { o.every = n } }

func collect(opts []Option) options {
	o := options{every: 1}
	for _, set := range opts {
		set(&o)
	}
	return o
}

// check says which option cannot be.
func (o *options) check(rpc string, codec rpcdelta.Codec) error {
	switch {
	case o.every < 1 || o.every > MaxSendEvery:
		return fmt.Errorf("client: bind %s: SendEvery(%d), want 1 to %d", rpc, o.every, MaxSendEvery)
	case o.every > 1 && o.reliable:
		return fmt.Errorf("client: bind %s: SendEvery(%d) of a reliable RPC: leave out one of them", rpc, o.every)
	case o.every > 1 && codec == rpcdelta.RLE:
		return fmt.Errorf("client: bind %s: SendEvery(%d): codec %v sends one frame a payload, take %v", rpc, o.every, codec, rpcdelta.Adaptive)
	}
	return nil
}

// Stream sends the calls of one RPC whose arguments are a T. Its methods are
// safe for concurrent use.
type Stream[T any] struct {
	stream *stream
	typ    *schema.Type[T]
}

// Bind ties an RPC of the server to T, whose fields and tags describe the
// arguments, and waits for the server's answer. It is an error if the server
// has no such RPC ([*UnknownRPCError]) or describes it differently
// ([*SchemaError]), or does not answer ([ErrBindTimeout]).
func Bind[T any](c *Conn, name string, opts ...Option) (*Stream[T], error) {
	o := collect(opts)
	typ, err := schema.Compile[T](name, o.rate)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	s, err := bind(c, typ.Schema(), o)
	if err != nil {
		return nil, err
	}
	return &Stream[T]{stream: s, typ: typ}, nil
}

func bind(c *Conn, rpcSchema *schema.Schema, o options) (*stream, error) {
	s, err := newStream(c, rpcSchema, o)
	if err != nil {
		return nil, err
	}
	return s, s.wait()
}

// Send makes one call. It never waits: on the unreliable channel the frame is
// in the socket's hands when it returns, unless it is held back as Config.Tick,
// Config.Bandwidth or [SendEvery] say, on the reliable one it is queued. A
// value that a field cannot hold is a [*schema.RangeError] that names it,
// and a frame that does not fit a datagram [rpcdelta.ErrTooLarge]; nothing is
// sent then, and the stream goes on. While the connection is being made again
// it is [ErrReconnecting], while too many reliable frames wait to be acknowledged
// transport.ErrBacklog, and after Close [net.ErrClosed]. If a server that was
// restarted refuses the RPC, it is what Bind would have returned. It allocates
// nothing, but for fields that go through msgpack.
func (s *Stream[T]) Send(v *T) error {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	if err := s.typ.Quantize(s.stream.frame, v); err != nil {
		s.stream.countRefused(err)
		return err
	}
	return s.stream.sendFrame(s.stream.frame)
}

// Flush sends the calls that are held back by [SendEvery], or by Config.Bandwidth.
// With Config.Tick they are added to the datagram that [Conn.Flush] sends. Errors are
// those of Send.
func (s *Stream[T]) Flush() error { return s.stream.flush() }

// FrameStream sends the calls of one RPC that a schema describes, for programs
// that learn the schema as they run. Its methods are safe for concurrent use.
type FrameStream struct{ stream *stream }

// BindSchema is [Bind] for frames of a schema. The schema's rate is declared to
// the server, so that [Rate] is an error.
func BindSchema(c *Conn, rpcSchema *schema.Schema, opts ...Option) (*FrameStream, error) {
	o := collect(opts)
	if o.rate != 0 {
		return nil, fmt.Errorf("client: bind %s: the schema's rate counts, %v Hz: leave out Rate", rpcSchema.RPC(), rpcSchema.RateHz())
	}
	s, err := bind(c, rpcSchema, o)
	if err != nil {
		return nil, err
	}
	return &FrameStream{stream: s}, nil
}

// Send makes one call with the arguments in f; see [Stream.Send].
func (s *FrameStream) Send(f *schema.Frame) error {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.sendFrame(f)
}

// Flush sends the calls that are held back; see [Stream.Flush].
func (s *FrameStream) Flush() error { return s.stream.flush() }
