package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// binding is an RPC that the game calls. It holds the state that is kept from one server to the
// next; a [sender] holds the state of one server.
type binding struct {
	cfg        *Config
	closed     <-chan struct{} // closed by Conn.Close
	mismatches *mismatches
	answer     chan error // receives the first answer
	number     int
	schema     *schema.Schema
	reliable   bool
	delay      DelayPolicy
	request    []byte // request to bind, without descriptions of fields

	// mu guards the fields below, and all senders of the RPC. The caller of a method of sender
	// holds mu, unless stated otherwise.
	mu         sync.Mutex
	at         *sender // sender at the current server; nil while reconnecting
	over       error   // final error: no frame can be sent to any server any more
	failed     bool    // Bind returned an error, so the game does not use this binding
	frame      *schema.Frame
	limits     limits
	owed       float64 // batching debt: number of frames by which recent payloads fell short of limits.every on average
	redundancy int     // Config.Tuning.Redundancy, or the value of SetRedundancy
	paced      Pace    // last report of a jitter buffer, and counts of all sessions
	stats      RPCStats
}

// newRequest returns a request to bind with descriptions of the fields with the given numbers.
func (b *binding) newRequest(describe []int) ([]byte, error) {
	r := message.BindRequest{
		RPC: uint8(b.number), Name: b.schema.RPC(), Fingerprint: b.schema.Fingerprint(), Fields: message.FieldHashes(b.schema),
		RateHz: b.schema.RateHz(), Ring: b.cfg.Tuning.Ring, Codec: b.cfg.Tuning.Codec.String(), Reliable: b.reliable, Frames: b.maxFrames(),
		PerTick: b.schema.PerTick(),
	}
	if b.combines() {
		batch, deadline := b.delay.FramesAt(b.schema.RateHz())
		r.Batch = batch
		if b.delay.Repair {
			r.Deadline = min(deadline, rpcdelta.MaxRepairAge)
		}
	}
	if p := b.cfg.prior(); p != nil {
		r.Prior = p.Hash()
	}
	for _, i := range describe {
		if i < 0 || i >= len(b.schema.Fields()) {
			return nil, fmt.Errorf("the server asks for field %d of %d", i, len(b.schema.Fields()))
		}
		r.Described = append(r.Described, message.Described{Field: i, Description: b.schema.Fields()[i].String()})
	}
	request, err := r.Append(nil)
	if err == nil && len(request) > transport.MaxPayload {
		err = fmt.Errorf("the request to bind, with the descriptions of %d fields that the server does not know, has %d bytes, at most %d fit into a datagram",
			len(describe), len(request), transport.MaxPayload)
	}
	return request, err
}

// sameAs reports whether the requests of two bindings are equal, so that an answer to one also
// answers the other.
func (b *binding) sameAs(other *binding) bool {
	return b.schema.Fingerprint() == other.schema.Fingerprint() && b.schema.RateHz() == other.schema.RateHz() &&
		b.reliable == other.reliable && b.delay == other.delay
}

// wait waits for the outcome of the first request to bind. After an error the game does not use the
// binding.
func (b *binding) wait(ctx context.Context) error {
	err := b.await(ctx)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.over, b.failed = err, true
	}
	return err
}

func (b *binding) await(ctx context.Context) error {
	start := time.Now()
	b.ask(start)
	ctx, cancel := b.cfg.withBindTimeout(ctx)
	defer cancel()
	select {
	case err := <-b.answer:
		return err
	case <-b.closed:
		return b.wrap(net.ErrClosed)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w %s within %v: %w", ErrBindTimeout, b.schema.RPC(), time.Since(start).Round(time.Millisecond), context.Cause(ctx))
		}
		return b.wrap(context.Cause(ctx))
	}
}

// ask requests the current server to bind the RPC.
func (b *binding) ask(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at != nil {
		b.at.tick(now)
	}
}

// answered passes the outcome of a request to Bind. Outcomes after the first are dropped.
func (b *binding) answered(outcome error) {
	select {
	case b.answer <- outcome:
	default: // Bind has returned: the RPC was bound at another server
	}
}

func (b *binding) wrap(err error) error {
	return &opError{"bind " + b.schema.RPC(), err}
}

// hasFailed reports whether Bind returned an error.
func (b *binding) hasFailed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// agreed returns the prior that an answer selects: the client's own, or the built-in one as a
// fallback.
func (b *binding) agreed(a *message.BindAnswer) (p *prior.Prior, fallback bool, err error) {
	if err := bindError(b.schema, b.cfg.Tuning.Codec, a); err != nil || a.Reason == message.ReasonDescribe {
		return nil, false, err
	}
	p = b.cfg.prior()
	if p == nil || a.Prior == p.Hash() {
		return p, false, nil
	}
	generic := prior.Generic()
	if a.Prior != generic.Hash() {
		return nil, false, b.wrap(fmt.Errorf("the server's built-in prior is %s, this one's %v: both ends need the same version of uplink", prior.Name(a.Prior), generic))
	}
	return generic, true, nil
}

// refuse makes every later Send return err.
func (b *binding) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = err
}

// use makes next the current sender, nil while the client reconnects. The frames that the previous
// sender holds are sent first. If a reliable frame cannot be sent yet, the previous link's tick
// retries it, unless that server is dead.
func (b *binding) use(next *sender, dead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.at; before != nil && (next == nil || !before.leave() && dead) {
		before.stop() // otherwise the link's tick calls leave again
	}
	if b.at = next; next != nil {
		next.start()
	}
}

// send sends a frame of the schema, or holds it back. It returns the frame's sequence number. The
// caller holds b.mu.
func (b *binding) send(f *schema.Frame) (seq uint64, err error) {
	s, err := b.ready()
	if err != nil {
		if errors.Is(err, ErrReconnecting) {
			b.stats.Reconnecting++
		}
		return 0, err
	}
	return s.send(f)
}

// ready returns the sender, or the reason why no frame can be sent now. The caller holds b.mu.
func (b *binding) ready() (*sender, error) {
	s := b.at
	switch {
	case isClosed(b.closed):
		return nil, errClosed
	case b.over != nil:
		return nil, b.over
	case s == nil:
		return nil, ErrReconnecting
	case s.refused != nil:
		return nil, s.refused
	case s.enc == nil:
		return nil, ErrReconnecting
	case s.queued:
		return s, s.transmit()
	}
	return s, nil
}

// ended returns the error of a call on a link that has ended.
func (b *binding) ended() error {
	if isClosed(b.closed) {
		return errClosed
	}
	return ErrReconnecting
}

// combines reports whether frames can share a payload.
func (b *binding) combines() bool { return !b.reliable && b.cfg.Tuning.Codec == rpcdelta.Adaptive }

// batch returns the number of later frames that a frame may wait for.
func (b *binding) batch() int {
	batch, _ := b.delay.FramesAt(b.schema.RateHz())
	return batch
}

// framesPerPayload returns the number of frames that are currently sent in one payload. The caller
// holds b.mu.
func (b *binding) framesPerPayload() int {
	if !b.combines() {
		return 1
	}
	n := b.batch() + 1
	if b.limits.every > 1 {
		n = max(n, min(int(math.Ceil(b.limits.every+b.owed)), b.maxFrames()))
	}
	return n
}

// maxFrames returns the maximum number of new frames in a datagram. The request to bind contains
// it.
func (b *binding) maxFrames() int {
	switch {
	case b.reliable:
		return 1
	case b.cfg.coalesces():
		return rpcdelta.MaxHeld
	case b.combines():
		return max(maxEvery, b.batch()+1)
	}
	return 1
}

// forgiven is subtracted from the batching debt (binding.owed) for each frame sent. Without it, the
// debt could not shrink while limits.every equals the maximum number of frames in a payload.
const forgiven = 1. / 8

// countFrames updates the batching debt after a payload of n frames. The caller holds b.mu.
func (b *binding) countFrames(n int) {
	b.owed += b.limits.every - float64(n)
	if b.owed > 0 {
		b.owed = min(max(0, b.owed-forgiven*float64(n)), maxEvery)
	}
	b.owed = max(b.owed, -1)
}

// countUnsent counts a frame that was not encoded because of err. The caller holds b.mu.
func (b *binding) countUnsent(err error) {
	switch {
	case errors.Is(err, rpcdelta.ErrTooLarge):
		b.stats.TooLarge++
	case errors.As(err, new(*schema.RangeError)):
		b.stats.OutOfRange++
	default:
		b.stats.Unencodable++
	}
}

// flush implements [Stream.Flush].
func (b *binding) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.ready()
	if err != nil {
		return err
	}
	return s.sendHeld()
}

// setLimits applies the limits of a budget.
func (b *binding) setLimits(l limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l
	if b.at != nil && b.at.enc != nil {
		b.at.enc.LimitRedundancy(l.redundancy)
	}
}

func (b *binding) setRedundancy(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.redundancy = n
	if b.at != nil && b.at.enc != nil {
		_ = b.at.enc.SetRedundancy(n) // n is valid
	}
}

// snapshot returns the counts so far, and reports whether Bind returned an error.
func (b *binding) snapshot() (st RPCStats, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st = b.stats
	st.Pace = b.pace(time.Now())
	if s := b.at; s != nil && s.enc != nil {
		delivery := s.enc.DeliveryStats()
		st.Delivery.Add(&delivery)
		if !b.reliable {
			st.Redundancy = s.enc.Redundancy()
			st.Loss, st.Burst = s.enc.Loss()
		}
	}
	return st, b.failed
}

// counts implements [Stream.Stats].
func (b *binding) counts() RPCStats {
	st, _ := b.snapshot()
	return st
}

// paceAt implements [Stream.Pace].
func (b *binding) paceAt(now time.Time) Pace {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace(now)
}

// pace is paceAt with b.mu held.
func (b *binding) pace(now time.Time) Pace {
	p := b.paced
	p.Rate = 1
	if b.at != nil {
		p.Rate = b.at.pace.rate(now)
	}
	return p
}

// processed implements [Stream.Processed].
func (b *binding) processed(p Processed) (next uint64, ok bool) {
	_, next, ok = b.processedIn(p)
	return next, ok
}

// processedIn is processed, but also returns the sender of the current session. It is nil while the
// client is reconnecting.
func (b *binding) processedIn(p Processed) (session *sender, next uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.at
	if s == nil || s.enc == nil {
		return nil, 0, false
	}
	next, ok = p.Of(uint8(b.number), s.enc.Next())
	return s, next, ok
}
