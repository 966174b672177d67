package ds

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// maxStreams is the maximum number of bound RPCs of a player's client, because each needs a
	// ring of frames at both ends.
	maxStreams = message.MaxCalls
	// maxReliableFrame is the maximum size of a payload on the reliable channel, in bytes.
	maxReliableFrame = 8 << 10
)

// BindConfig describes how an RPC of a client is called. The zero value of each field means its
// default.
type BindConfig struct {
	// RateHz is the expected number of calls per second; default 60.
	RateHz float64
	// Reliable sends calls over the reliable channel: all of them arrive, in order with each other
	// and with the messages of [Player.SendReliable]. Otherwise they may be lost, and one that
	// arrives after a newer one is dropped.
	Reliable bool
}

// Stream sends the calls of one RPC of a player's client, whose arguments are a T. Its methods are
// safe for concurrent use.
type Stream[T any] struct {
	o   *outgoing
	typ *schema.Type[T]
}

// outgoings holds the RPCs that the server calls at one player's client. A nil outgoings is empty.
type outgoings struct {
	mu   sync.Mutex
	list []*outgoing // by number
}

// outgoing is an RPC that the server calls at one player's client.
type outgoing struct {
	player *Player
	name   string
	number int
	config BindConfig

	mu      sync.Mutex
	enc     *rpcdelta.Encoder
	refused error // error if the client refused the RPC
	queued  bool  // buf is a reliable payload for which the channel had no room
	frame   *schema.Frame
	buf     []byte
	stats   rpcdelta.Stats
}

// Bind binds an RPC for which the player's client has a handler (client.Handle), whose arguments
// are a T. It does not wait: calls can be sent at once. If the client has no such handler, or
// handles other fields that cannot be converted, Send returns an error once the server knows. A
// player has at most 32 such RPCs; they end with its session.
func Bind[T any](p *Player, name string, cfg BindConfig) (*Stream[T], error) {
	typ, err := schema.Compile[T](name, cfg.RateHz)
	if err != nil {
		return nil, fmt.Errorf("ds: %w", err)
	}
	o := &outgoing{player: p, name: name, config: cfg, frame: typ.Schema().NewFrame()}
	p.outgoing.CompareAndSwap(nil, new(outgoings))
	if err := p.outgoing.Load().add(o, typ.Schema()); err != nil {
		return nil, fmt.Errorf("ds: bind %s to player %d: %w", name, p.ID(), err)
	}
	return &Stream[T]{o, typ}, nil
}

// add requests the client to bind an RPC.
func (all *outgoings) add(o *outgoing, s *schema.Schema) error {
	if all == nil {
		return net.ErrClosed
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.list) >= maxStreams {
		return fmt.Errorf("a player has at most %d RPCs of its client", maxStreams)
	}
	o.number = len(all.list)
	generic := prior.Generic()
	maxPayload := transport.MaxPayload
	if o.config.Reliable {
		maxPayload = maxReliableFrame
	}
	var err error
	o.enc, err = rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{
		Codec: rpcdelta.Adaptive, RPC: o.number, Prior: generic, Reliable: o.config.Reliable, MaxPayload: maxPayload,
	})
	if err != nil {
		return err
	}
	r := message.BindRequest{
		RPC: uint8(o.number), Name: s.RPC(), Fingerprint: s.Fingerprint(), RateHz: s.RateHz(), Ring: rpcdelta.DefaultRing,
		Codec: rpcdelta.Adaptive.String(), Reliable: o.config.Reliable, Frames: 1, Prior: generic.Hash(), PerTick: s.PerTick(),
	}
	for i, d := range versions.Descriptions(s) {
		r.Described = append(r.Described, message.Described{Field: i, Description: d})
	}
	request, err := r.Append(nil)
	if err != nil {
		return err
	}
	if err := o.player.conn.SendReliable(request); err != nil {
		return err
	}
	all.list = append(all.list, o)
	return nil
}

// Send makes one call, and returns its sequence number: client.Call.Seq of the call, from 0. It
// does not wait and, apart from fields coded as msgpack, does not allocate. A call is not sent, but
// the stream remains usable, if a value exceeds the range of its field (a [*schema.RangeError]), if
// it does not fit into a datagram ([rpcdelta.ErrTooLarge]), or if less than 8 KiB of the reliable
// queues are left (transport.ErrBacklog; see [Player.WaitReliable]). After the end of the session,
// the error wraps net.ErrClosed.
func (s *Stream[T]) Send(v *T) (seq uint64, err error) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	if err := s.typ.Quantize(s.o.frame, v); err != nil {
		return 0, err
	}
	return s.o.send(s.o.frame)
}

// Stats returns the counts of the calls that were sent.
func (s *Stream[T]) Stats() rpcdelta.Stats {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	return s.o.stats
}

// SendAll makes the same call to several players. It is coded for each player against that client's
// acked frames. It sends to all of them whatever the errors, which it joins.
func SendAll[T any](v *T, streams ...*Stream[T]) error {
	var errs []error
	for _, s := range streams {
		if _, err := s.Send(v); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// send sends a frame of the schema. The caller holds o.mu.
func (o *outgoing) send(f *schema.Frame) (seq uint64, err error) {
	switch {
	case o.refused != nil:
		return 0, o.refused
	case o.config.Reliable && o.player.conn.ReliableRoom() < maxReliableFrame:
		return 0, o.wrap(fmt.Errorf("%w: less than %d bytes are left of Config.Limits.ReliableQueue or of Config.Limits.TotalReliableQueue", transport.ErrBacklog, maxReliableFrame))
	case o.queued:
		if err := o.transmit(); err != nil {
			return 0, err
		}
	}
	buf, info, err := o.enc.AppendFrame(o.buf[:0], f)
	if err != nil {
		return 0, o.wrap(err)
	}
	o.buf = buf
	if err := o.transmit(); err != nil && !o.queued {
		return 0, err
	}
	o.stats.Count(&info)
	o.player.server.called[0].Add(1)
	o.player.server.called[1].Add(uint64(len(buf)))
	return info.Seq, nil
}

// transmit sends the payload in o.buf. On the reliable channel the next delta depends on it: if the
// channel has no room left, the payload is queued, and the next call sends it first.
func (o *outgoing) transmit() (err error) {
	if !o.config.Reliable {
		return o.wrap(o.player.conn.Send(o.buf))
	}
	err = o.player.conn.SendReliable(o.buf)
	o.queued = errors.Is(err, transport.ErrBacklog)
	return o.wrap(err)
}

func (o *outgoing) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ds: call %s of player %d: %w", o.name, o.player.ID(), err)
}

// at returns the RPC with a number, or nil.
func (all *outgoings) at(n int) *outgoing {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if n < len(all.list) {
		return all.list[n]
	}
	return nil
}

// count returns the number of RPCs that the server calls at the client.
func (all *outgoings) count() int {
	if all == nil {
		return 0
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.list)
}

// countAcks returns the number of acks in a message, at least 1. The unparsable rest counts as one.
func countAcks(b []byte) int {
	for n := 1; ; n++ {
		_, rest, err := rpcdelta.ParseAck(b)
		if err != nil || len(rest) == 0 {
			return n
		}
		b = rest
	}
}

// handleAcks handles the client's acks of calls. After an invalid ack, the others are still
// applied. It returns false if an ack is invalid.
func (all *outgoings) handleAcks(b []byte) bool {
	valid := len(b) > 0
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			return false
		}
		o := all.at(int(a.RPC))
		valid = o != nil && o.ack(a) == nil && valid
		b = rest
	}
	return valid
}

func (o *outgoing) ack(a rpcdelta.Ack) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.enc.Ack(a)
}

// handleAnswer handles the client's answer to a request to bind. It reports false if the server did
// not send such a request.
func (all *outgoings) handleAnswer(a *message.BindAnswer) bool {
	o := all.at(int(a.RPC))
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.refused != nil:
	case a.Reason == message.ReasonNone:
		o.player.differ("call", o.name, a.Differences(), "server", "client")
	default:
		o.refused = o.wrap(refusedCall(o.name, a))
		o.player.callRefused(o.name, a.Reason, o.refused)
	}
	return true
}

// refusedCall returns the error of a call that the client refused. Its text may be hostile.
func refusedCall(name string, a *message.BindAnswer) error {
	switch a.Reason {
	case message.ReasonUnknown:
		return fmt.Errorf("the client handles no such RPC%s; it handles %s", message.Nearest(name, a.Known), message.Printable(cmp.Or(strings.Join(a.Known, ", "), "no RPCs"), message.MaxTheirs))
	case message.ReasonSchema:
		return fmt.Errorf("the client cannot convert its fields: %s", message.Printable(cmp.Or(a.Theirs, "none has a name that the client knows"), message.MaxTheirs))
	case message.ReasonCodec:
		return errors.New("the client has another built-in prior: both ends need the same version of uplink")
	default:
		return fmt.Errorf("the client refuses it: %v", a.Reason)
	}
}
