package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/transport"
)

// minRequestWait and maxRequestWait bound the wait before a request to bind is repeated.
const minRequestWait, maxRequestWait = 100 * time.Millisecond, 250 * time.Millisecond

// requestWait returns that wait over a path with that round-trip time, 0 if it is not known yet. It
// grows by half with each unanswered request.
func requestWait(rtt time.Duration, unanswered int) time.Duration {
	if rtt == 0 {
		return maxRequestWait
	}
	wait := max(rtt*3/2, minRequestWait)
	for range unanswered - 1 {
		wait = min(wait*3/2, maxRequestWait)
	}
	return min(wait, maxRequestWait)
}

// binding is one bound RPC: its sender, and the requests to bind it over each link. sender.mu
// guards all fields below answer.
type binding struct {
	sender
	answer     chan error // receives the first answer
	mismatches *mismatches

	failed    bool // Bind returned an error: the game does not use this binding
	request   []byte
	described []int // fields that the request describes
	asked     time.Time
	pending   int  // unanswered requests over link
	granted   bool // the server has bound the number over link, or reported that it is in use
	pace      pace
	next      *nextBinding // at the server to which the client may switch
}

// newRequest returns a request that describes some of the fields, by number.
func (b *binding) newRequest(describe []int) ([]byte, error) {
	r := message.BindRequest{
		RPC: uint8(b.number), Name: b.schema.RPC(), Fingerprint: b.schema.Fingerprint(), Fields: message.FieldHashes(b.schema),
		RateHz: b.schema.RateHz(), Ring: b.cfg.Ring, Codec: b.cfg.Codec.String(), Reliable: b.reliable, Frames: b.maxFrames(),
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

// attempt reports whether Bind has failed, so that the game does not use this binding, and whether
// any other binding can use its number: the server has not bound the number, and no answer is
// pending that could be mistaken for another's.
func (b *binding) attempt() (failed, reusable bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed, b.failed && b.pending == 0 && !b.granted
}

// sameAs reports whether another binding asks the server for the same, so that an answer to one is
// an answer to the other.
func (b *binding) sameAs(other *binding) bool {
	return b.schema.Fingerprint() == other.schema.Fingerprint() && b.schema.RateHz() == other.schema.RateHz() &&
		b.reliable == other.reliable && b.delay == other.delay
}

// wait returns the server's first answer. After an error the binding is unused.
func (b *binding) wait(ctx context.Context) error {
	err := b.await(ctx)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.enc, b.refused, b.failed = nil, err, true
	}
	return err
}

func (b *binding) await(ctx context.Context) error {
	start := time.Now()
	b.tick(start)
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

func (b *binding) wrap(err error) error {
	return &opError{"bind " + b.schema.RPC(), err}
}

// tick retries what could not be sent, and sends the request if it is unanswered.
func (b *binding) tick(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retry(now)
	if b.next != nil {
		b.next.tick(now, b.link)
	}
	if b.link == nil || b.enc != nil || b.refused != nil {
		return
	}
	wait := requestWait(b.link.RTT(), b.pending)
	if now.Sub(b.asked) >= wait {
		b.asked = now
		b.pending++
		_ = b.link.Send(b.request) // the next tick repeats it
	}
	b.wakeAt(b.asked.Add(wait))
}

func (b *binding) answered(a *message.BindAnswer) {
	start, fallback, err := b.agreed(a)
	done, err := b.settle(a, start, fallback, err)
	if !done {
		return
	}
	if fallback {
		b.warnFallback(start)
	}
	if err != nil {
		b.cfg.Logger.Warn("rpc not bound", "rpc", b.schema.RPC(), "error", err)
	} else {
		b.compare(a)
	}
	select {
	case b.answer <- err:
	default: // bound again after a reconnection: nobody waits
	}
}

// settle starts the encoder, or refuses the RPC because of err. It reports whether that is the
// outcome of the request: further answers to it have no effect.
func (b *binding) settle(a *message.BindAnswer, start *prior.Prior, fallback bool, err error) (done bool, outcome error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = max(b.pending-1, 0)
	if err == nil && a.Reason == message.ReasonDescribe {
		if err = b.describe(a.Ask); err == nil {
			return false, nil
		}
	}
	b.granted = b.granted || a.Reason == message.ReasonNone || a.Reason == message.ReasonNumber
	if b.enc != nil || b.refused != nil || b.link == nil {
		return false, nil // answered before
	}
	if err == nil {
		if b.enc, err = rpcdelta.NewEncoder(b.schema, b.encoder(a.Ring, start)); err != nil {
			err = b.wrap(err)
		} else {
			b.enc.LimitRedundancy(b.limits.redundancy)
		}
	}
	if fallback {
		b.stats.PriorFallbacks++
	}
	b.refused = err
	return true, err
}

// compare reports the fields that only one end has, which the answer names.
func (b *binding) compare(a *message.BindAnswer) {
	if d := a.Differences(); d.Any() {
		b.mismatches.add(&MismatchError{RPC: b.schema.RPC(), Here: d.Asking, There: d.Answering})
	}
}

func (b *binding) warnFallback(used *prior.Prior) {
	b.cfg.Logger.Warn("prior not known to the server, using the built-in one",
		"rpc", b.schema.RPC(), "prior", b.cfg.prior().String(), "used", used.String())
}

// describe changes the request such that it describes the fields for which the server asks, and
// sends it. The caller holds b.mu.
func (b *binding) describe(ask []int) error {
	if b.link == nil || b.enc != nil || b.refused != nil {
		return nil // a repeated answer
	}
	described := addDescribed(b.described, ask)
	if len(described) == len(b.described) {
		return nil // a repeated request for descriptions
	}
	request, err := b.newRequest(described)
	if err != nil {
		return b.wrap(err)
	}
	b.request, b.described, b.asked = request, described, time.Time{}
	b.wakeAt(time.Now())
	return nil
}

// addDescribed returns the ascending numbers of fields with those for which a server asks. A
// request is sent again only if there are more: a server can cause no more requests than there are
// fields.
func addDescribed(fields, ask []int) []int {
	all := append(slices.Clone(fields), ask...)
	slices.Sort(all)
	return slices.Compact(all)
}

// agreed returns the prior of an answer: the client's, or as a fallback the built-in one.
func (b *binding) agreed(a *message.BindAnswer) (p *prior.Prior, fallback bool, err error) {
	if err := bindError(b.schema, b.cfg.Codec, a); err != nil || a.Reason == message.ReasonDescribe {
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

// suspend stops sending until rebind.
func (b *binding) suspend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stop()
	b.next = nil
}

// leave sends the held frames and stops sending until rebind. It returns false if a payload is
// still queued for the reliable channel.
func (b *binding) leave() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queued {
		_ = b.transmit() // the next tick repeats it
		if b.queued {
			return false
		}
	}
	if b.enc != nil {
		_ = b.sendHeld() // may be lost as any datagram
	}
	b.stop()
	return true
}

// refuse makes every later Send return err.
func (b *binding) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = err
}

// rebind binds the RPC over another link, to a server whose answer may be a different one.
func (b *binding) rebind(link *transport.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.link, b.asked = link, time.Time{}
	b.pending, b.granted = 0, false
	b.pace.relink()
	if !b.failed {
		b.refused = nil
	}
}

// ack processes an ack that was received at a time. It returns the round-trip time of a payload, or
// 0 if the ack does not show one.
func (b *binding) ack(a rpcdelta.Ack, at time.Time) (rtt time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.enc == nil {
		return 0, nil
	}
	if err := b.enc.Ack(a); err != nil {
		return 0, err
	}
	return b.departures.take(&a, at), nil
}

func (b *binding) report(now time.Time, r *message.Buffered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pace.report(now, r)
}

// snapshot returns the counts so far, and whether Bind returned an error.
func (b *binding) snapshot() (st RPCStats, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st = b.stats
	st.Pace = b.pace.at(time.Now())
	if b.enc != nil {
		delivery := b.enc.DeliveryStats()
		st.Delivery.Add(&delivery)
	}
	if b.enc != nil && !b.reliable {
		st.Redundancy = b.enc.Redundancy()
		st.Loss, st.Burst = b.enc.Loss()
	}
	return st, b.failed
}

// Stats returns the counts of this RPC.
func (b *binding) Stats() RPCStats {
	st, _ := b.snapshot()
	return st
}

// Pace returns the rate at which the server's jitter buffer needs the calls. Call it each tick and
// start the next tick after Pace.Interval. Of several RPCs that are called in the same tick, one is
// enough. It does not allocate.
func (b *binding) Pace() Pace { return b.paceAt(time.Now()) }

func (b *binding) paceAt(now time.Time) Pace {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace.at(now)
}
