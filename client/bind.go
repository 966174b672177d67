package client

import (
	"context"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// MaxSendEvery is the maximum of BindConfig.SendEvery.
const MaxSendEvery = 4

// BindConfig describes how an RPC is called. The zero value of each field means its default.
type BindConfig struct {
	// RateHz is the declared number of calls per second; default schema.DefaultRate.
	RateHz float64
	// Reliable sends frames over the reliable channel: all of them arrive, in order. Each frame is
	// coded as a delta from the previous one. Frames that are not acknowledged when the connection
	// is lost may be lost with it.
	Reliable bool
	// SendEvery is the number of calls per payload, 1 to MaxSendEvery; default 1. The first
	// SendEvery-1 frames are held back, and Send of the last one sends them all. The headers of a
	// datagram take more bytes than most frames: two frames per datagram save about 40 % and add a
	// delay of one interval. Frames that are held when no more calls follow are sent after about
	// SendEvery intervals of RateHz. More than 1 requires the adaptive codec and the unreliable
	// channel.
	SendEvery int
}

// check returns an error that names the first invalid setting.
func (cfg *BindConfig) check(rpc string, codec rpcdelta.Codec) error {
	switch n := cfg.SendEvery; {
	case n < 1 || n > MaxSendEvery:
		return fmt.Errorf("client: bind %s: BindConfig.SendEvery is %d, want 1 to %d", rpc, n, MaxSendEvery)
	case n > 1 && cfg.Reliable:
		return fmt.Errorf("client: bind %s: BindConfig.SendEvery is %d: a reliable RPC sends each frame at once", rpc, n)
	case n > 1 && codec == rpcdelta.RLE:
		return fmt.Errorf("client: bind %s: BindConfig.SendEvery is %d: codec %v has one frame per payload, use %v", rpc, n, codec, rpcdelta.Adaptive)
	}
	return nil
}

// Stream sends the calls of one RPC whose arguments are a T. Its methods are
// safe for concurrent use.
type Stream[T any] struct {
	stream *stream
	typ    *schema.Type[T]
}

// Bind binds an RPC of the server to T, whose fields and tags describe the arguments. It waits for
// the server's answer until ctx is done, or for Config.BindTimeout if ctx has no deadline. It
// returns an error if the server has no such RPC ([*UnknownRPCError]), describes it differently
// ([*SchemaError]) or does not answer in time ([ErrBindTimeout]).
func Bind[T any](ctx context.Context, c *Conn, name string, cfg BindConfig) (*Stream[T], error) {
	typ, err := schema.Compile[T](name, cfg.RateHz)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	s, err := bind(ctx, c, typ.Schema(), cfg)
	if err != nil {
		return nil, err
	}
	return &Stream[T]{stream: s, typ: typ}, nil
}

func bind(ctx context.Context, c *Conn, rpcSchema *schema.Schema, cfg BindConfig) (*stream, error) {
	s, err := newStream(c, rpcSchema, cfg)
	if err != nil {
		return nil, err
	}
	return s, s.wait(ctx)
}

// Send makes one call. It never waits: on the unreliable channel the frame is
// in the socket's hands when it returns, unless it is held back as Config.Tick,
// Config.Bandwidth or BindConfig.SendEvery say, on the reliable one it is queued. A
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

// Flush sends the calls that are held back by BindConfig.SendEvery, or by Config.Bandwidth.
// With Config.Tick they are added to the datagram that [Conn.Flush] sends. Errors are
// those of Send.
func (s *Stream[T]) Flush() error { return s.stream.flush() }

// FrameStream sends the calls of one RPC that a schema describes, for programs
// that learn the schema as they run. Its methods are safe for concurrent use.
type FrameStream struct{ stream *stream }

// BindSchema is [Bind] for frames of a schema. The schema declares the rate, so BindConfig.RateHz
// must be 0.
func BindSchema(ctx context.Context, c *Conn, rpcSchema *schema.Schema, cfg BindConfig) (*FrameStream, error) {
	if cfg.RateHz != 0 {
		return nil, fmt.Errorf("client: bind %s: BindConfig.RateHz is %v, but the schema declares %v Hz: want 0", rpcSchema.RPC(), cfg.RateHz, rpcSchema.RateHz())
	}
	s, err := bind(ctx, c, rpcSchema, cfg)
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
