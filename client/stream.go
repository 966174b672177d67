package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// askEvery is the time between two requests to bind that are not answered.
const askEvery = 250 * time.Millisecond

// queuedWait is the time between two attempts to send a reliable payload that there was
// no room for.
const queuedWait = transport.DefaultTick

// maxReliable is the largest payload of a reliable RPC.
const maxReliable = 8 << 10

// stream is one bound RPC.
type stream struct {
	conn     *Conn
	number   int
	schema   *schema.Schema
	rate     float64
	ring     int
	reliable bool
	every    int // calls a payload
	request  []byte
	answer   chan error // gets the first answer

	mu      sync.Mutex
	link    *transport.Conn   // nil while reconnecting
	enc     *rpcdelta.Encoder // nil until bound over link
	refused error             // what the server said over link
	failed  bool              // Bind returned an error: nobody holds this stream
	asked   time.Time
	pending int  // requests over link that are not answered
	granted bool // the server has bound the number over link, or says that it is taken
	frame   *schema.Frame
	buf     []byte
	queued  bool      // buf is a reliable payload that the link had no room for
	waiting time.Time // since when frames are held
	limits  limits
	older   int // Config.Redundancy, or what SetRedundancy made of it
	stats   RPCStats
	pace    pace
}

// newStream adds a stream to the connection; the connection's Tick asks the
// server for it.
func newStream(c *Conn, rpcSchema *schema.Schema, cfg BindConfig) (*stream, error) {
	cfg.SendEvery = cmp.Or(cfg.SendEvery, 1)
	if err := cfg.check(rpcSchema.RPC(), c.cfg.Codec); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return nil, fmt.Errorf("client: bind %s: %w", rpcSchema.RPC(), net.ErrClosed)
	}
	if c.gone != nil {
		return nil, fmt.Errorf("client: bind %s: %w", rpcSchema.RPC(), c.gone)
	}
	n := c.freeNumber()
	if n > rpcdelta.MaxRPC {
		return nil, fmt.Errorf("client: bind %s: a connection has at most %d RPCs", rpcSchema.RPC(), rpcdelta.MaxRPC+1)
	}
	s := &stream{
		conn: c, number: n, schema: rpcSchema, rate: rpcSchema.RateHz(), ring: c.cfg.Ring, reliable: cfg.Reliable,
		every: cfg.SendEvery, limits: c.budget.limits(), older: c.redundancy,
		answer: make(chan error, 1), link: c.link, frame: rpcSchema.NewFrame(),
		stats: RPCStats{RPC: rpcSchema.RPC(), Reliable: cfg.Reliable},
	}
	r := control.BindRequest{
		RPC: msgpack.Byte(n), Name: rpcSchema.RPC(), Fingerprint: rpcSchema.Fingerprint(), Fields: control.FieldHashes(rpcSchema),
		RateHz: s.rate, Ring: s.ring, Codec: c.cfg.Codec.String(), Reliable: s.reliable, Frames: s.mostFrames(),
		Prior: c.cfg.priorHash(),
	}
	var err error
	if s.request, err = r.Append(nil); err != nil {
		return nil, fmt.Errorf("client: bind %s: %w", rpcSchema.RPC(), err)
	}
	if len(s.request) > transport.MaxPayload {
		return nil, fmt.Errorf("client: bind %s: the schema's description takes %d bytes, at most %d fit into a datagram", rpcSchema.RPC(), len(s.request), transport.MaxPayload)
	}
	if n == len(c.streams) {
		c.streams = append(c.streams, s)
	} else {
		c.streams = slices.Clone(c.streams) // others may be reading the old one
		c.streams[n] = s
	}
	return s, nil
}

// freeNumber gives the number for the next stream, with c.mu held: that of one
// that came to nothing, or a new one.
func (c *Conn) freeNumber() int {
	for n, s := range c.streams {
		if s.over() {
			return n
		}
	}
	return len(c.streams)
}

// over says that nobody holds the stream, and that neither does the server use its
// number nor is any answer on its way that the number's next user could mistake
// for its own.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed && s.pending == 0 && !s.granted
}

// wait returns the server's answer to the first request. On an error the
// stream is over.
func (s *stream) wait(ctx context.Context) error {
	err := s.await(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.enc, s.refused, s.failed = nil, err, true
	}
	return err
}

func (s *stream) await(ctx context.Context) error {
	began := time.Now()
	s.begin(began)
	ctx, cancel := s.conn.withBindTimeout(ctx)
	defer cancel()
	select {
	case err := <-s.answer:
		return err
	case <-s.conn.closed:
		return fmt.Errorf("client: bind %s: %w", s.schema.RPC(), net.ErrClosed)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w %s within %v: %w", ErrBindTimeout, s.schema.RPC(), time.Since(began).Round(time.Millisecond), context.Cause(ctx))
		}
		return fmt.Errorf("client: bind %s: %w", s.schema.RPC(), context.Cause(ctx))
	}
}

// tick sends the request, unless it is answered or was sent a moment ago, or the
// payload or the frames that wait. It says when to do so next; zero: not before
// something else happens.
func (s *stream) tick(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued {
		_ = s.transmit() // the next tick tries again
	}
	next := s.tickHeld(now)
	if s.queued {
		next = sooner(next, now.Add(queuedWait))
	}
	if s.link == nil || s.enc != nil || s.refused != nil {
		return next
	}
	if now.Sub(s.asked) >= askEvery {
		s.asked = now
		s.pending++
		_ = s.link.Send(s.request) // the next tick asks again
	}
	return sooner(next, s.asked.Add(askEvery))
}

// begin is the first tick.
func (s *stream) begin(now time.Time) {
	next := s.tick(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !next.IsZero() {
		s.wakeAt(next)
	}
}

// wakeAt has tick called then, with s.mu held.
func (s *stream) wakeAt(at time.Time) {
	if s.link != nil {
		s.link.Wake(at)
	}
}

// answered takes the server's answer.
func (s *stream) answered(a *control.BindAnswer) {
	err := bindError(s.schema, s.conn.cfg.Codec, a)
	var prior *prior.Prior
	fallback := false
	if err == nil {
		prior, fallback, err = s.agreed(a)
	}
	s.mu.Lock()
	s.pending = max(s.pending-1, 0)
	s.granted = s.granted || a.Reason == control.ReasonNone || a.Reason == control.ReasonNumber
	if s.enc != nil || s.refused != nil || s.link == nil {
		s.mu.Unlock()
		return // answered before
	}
	if err == nil {
		cfg := rpcdelta.EncoderConfig{Codec: s.conn.cfg.Codec, RPC: s.number, Ring: s.ring, PeerRing: a.Ring, Redundancy: s.older, Prior: prior, Delivery: s.conn.cfg.Delivery, RedundancyBytes: s.conn.cfg.RedundancyBytes, Reliable: s.reliable, MaxPayload: transport.MaxPayload}
		if s.reliable {
			cfg.MaxPayload = maxReliable
		}
		if s.enc, err = rpcdelta.NewEncoder(s.schema, cfg); err != nil {
			err = fmt.Errorf("client: bind %s: %w", s.schema.RPC(), err)
		} else {
			s.enc.LimitRedundancy(s.limits.redundancy)
		}
	}
	if fallback {
		s.stats.PriorFallbacks++
	}
	s.refused = err
	s.mu.Unlock()
	if fallback {
		s.logFallback()
	}
	if err != nil {
		s.conn.cfg.Logger.Warn("not bound", "rpc", s.schema.RPC(), "error", err)
	}
	select {
	case s.answer <- err:
	default: // bound again after a reconnection: nobody waits
	}
}

// suspend stops sending until rebind.
func (s *stream) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// stop is suspend with s.mu held.
func (s *stream) stop() {
	if s.enc != nil {
		s.stats.Reconnecting += uint64(s.enc.Held())
		fates := s.enc.DeliveryStats()
		s.stats.Delivery.Add(&fates)
	}
	s.enc, s.link, s.queued = nil, nil, false
}

// refuse makes every later Send fail with err.
func (s *stream) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// rebind has the RPC bound over another transport connection, to a server that
// may have changed its mind.
func (s *stream) rebind(link *transport.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.asked = link, time.Time{}
	s.pending, s.granted = 0, false
	s.pace.relink()
	if !s.failed {
		s.refused = nil
	}
}

func (s *stream) ack(a rpcdelta.Ack) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == nil {
		return nil
	}
	return s.enc.Ack(a)
}

// sendFrame sends f, which belongs to the schema, and is called with s.mu held.
func (s *stream) sendFrame(f *schema.Frame) error {
	if err := s.ready(); err != nil {
		if errors.Is(err, ErrReconnecting) {
			s.stats.Reconnecting++
		}
		return err
	}
	if n := s.perPayload(); n > 1 || s.enc.Held() > 0 {
		return s.hold(f, n)
	}
	return s.sendAlone(f)
}

// sendAlone sends f in a payload of its own.
func (s *stream) sendAlone(f *schema.Frame) error {
	buf, info, err := s.enc.AppendFrame(s.buf[:0], f)
	if err != nil {
		s.countRefused(err)
		return err
	}
	s.buf = buf
	return s.post(&info)
}

// post sends the payload in buf, and counts its frames.
func (s *stream) post(info *rpcdelta.Info) error {
	var in added
	var err error
	switch {
	case s.reliable:
		err = s.transmit()
	case s.conn.cfg.coalesces():
		in, err = s.conn.out.add(s.link, s.number, s.buf, info.Held+1)
		err = s.sent(err)
	default:
		err = s.sent(s.link.Send(s.buf))
	}
	if err != nil && !s.queued {
		if errors.Is(err, ErrReconnecting) {
			s.stats.Reconnecting += uint64(info.Held + 1)
		}
		return err
	}
	s.stats.Count(info)
	s.stats.Messages++
	s.stats.Bytes += uint64(len(s.buf))
	if in.shared {
		s.stats.Coalesced++
		s.stats.CoalescedBytes += uint64(in.extra)
	} else {
		s.stats.AEADBytes += uint64(s.link.Suite().Overhead())
	}
	return nil
}

// ready says why no frame can be sent now.
func (s *stream) ready() error {
	switch {
	case s.conn.isClosed():
		return s.ended()
	case s.refused != nil:
		return s.refused
	case s.enc == nil:
		return s.ended()
	case s.queued:
		return s.transmit()
	}
	return nil
}

// transmit gives the payload in buf to the reliable channel. The encoder counts on
// each, so one that the link has no room for is queued, and the next frame has to
// wait for it.
func (s *stream) transmit() error {
	err := s.link.SendReliable(s.buf)
	queued := errors.Is(err, transport.ErrBacklog)
	if queued && !s.queued {
		s.wakeAt(time.Now().Add(queuedWait))
	}
	s.queued = queued
	return s.sent(err)
}

// sent says what an error of the link means.
func (s *stream) sent(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return s.ended() // and suspend is about to be called
	case err != nil:
		return fmt.Errorf("client: send %s: %w", s.schema.RPC(), err)
	}
	return nil
}

// ended says why there is no link to send over.
func (s *stream) ended() error {
	if s.conn.isClosed() {
		return fmt.Errorf("client: %w", net.ErrClosed)
	}
	return ErrReconnecting
}

func (s *stream) countRefused(err error) {
	var out *schema.RangeError
	switch {
	case errors.Is(err, rpcdelta.ErrTooLarge):
		s.stats.TooLarge++
	case errors.As(err, &out):
		s.stats.OutOfRange++
	default:
		s.stats.Unencodable++
	}
}
