package client

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// minRequestWait and maxRequestWait bound the wait before a request to bind is repeated.
	minRequestWait = 100 * time.Millisecond
	maxRequestWait = 250 * time.Millisecond
	// maxUnackedCalls is the number of unacknowledged reliable messages above which no reliable
	// call is sent: the server would receive all of them at once, and limits the rate of calls.
	maxUnackedCalls = 256
	// queuedRetry is the interval between two attempts to send a reliable payload for which the
	// link has no room.
	queuedRetry = endpoint.DefaultTick
)

// requestWait returns the wait before a request to bind is repeated. rtt is the round-trip time of
// the path, 0 if unknown. The wait grows by half with each unanswered request.
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

// sender is a binding at one server: the request to bind the RPC there, its encoder, and the
// payloads that are not sent yet. Its methods are called with binding.mu held, unless stated
// otherwise.
type sender struct {
	*binding
	link *link

	request   []byte // request to bind
	described []int  // fields that the request describes
	asked     time.Time
	pending   int  // unanswered requests
	granted   bool // the server has bound the number, or reported that it is in use
	refused   error
	left      bool              // the client has switched to another server
	enc       *rpcdelta.Encoder // nil until the server has bound the RPC, and after stop

	buf       []byte
	repairs   []byte    // payload to repeat in the datagram of buf
	queued    bool      // buf is a reliable payload for which the link had no room
	heldSince time.Time // time at which the encoder began to hold frames
	pace      pace
}

func newSender(b *binding, l *link) *sender {
	return &sender{binding: b, link: l, request: b.request}
}

// reusable reports whether another binding can use the number: the server has not bound it, and no
// pending answer could be mistaken for the answer to another binding. The caller does not hold
// binding.mu.
func (s *sender) reusable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending == 0 && !s.granted
}

// tick sends payloads that could not be sent before, and repeats an unanswered request. Until the
// round-trip time of the link is known, it uses that of the current link.
func (s *sender) tick(now time.Time) {
	s.retry(now)
	if s.settled() {
		return
	}
	rtt := s.link.own.RTT()
	if rtt == 0 && s.at != nil {
		rtt = s.at.link.own.RTT()
	}
	wait := requestWait(rtt, s.pending)
	if now.Sub(s.asked) >= wait {
		s.asked = now
		s.pending++
		_ = s.link.own.Send(s.request) // the next tick repeats it
	}
	s.wakeAt(s.asked.Add(wait))
}

// handleAnswer handles an answer to a request. The caller does not hold binding.mu.
func (s *sender) handleAnswer(a *message.BindAnswer) {
	start, fallback, err := s.agreed(a)
	done, err := s.settle(a, start, fallback, err)
	if !done {
		return
	}
	if fallback {
		s.cfg.Logger.Warn("prior not known to the server, using the built-in one",
			"rpc", s.schema.RPC(), "prior", s.cfg.prior().String(), "used", start.String())
	}
	if err != nil {
		s.cfg.Logger.Warn("rpc not bound", "rpc", s.schema.RPC(), "error", err)
	} else if d := a.Differences(); d.Any() {
		s.mismatches.add(&MismatchError{RPC: s.schema.RPC(), Here: d.Asking, There: d.Answering})
	}
}

// settle creates the encoder, or refuses the RPC because of err. done reports whether this answer
// determined the outcome of the request; further answers have no effect. The caller does not hold
// binding.mu.
func (s *sender) settle(a *message.BindAnswer, start *prior.Prior, fallback bool, err error) (done bool, outcome error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = max(s.pending-1, 0)
	if err == nil && a.Reason == message.ReasonDescribe {
		if err = s.describe(a.Ask); err == nil {
			return false, nil
		}
	}
	s.granted = s.granted || a.Reason == message.ReasonNone || a.Reason == message.ReasonNumber
	if s.settled() {
		return false, nil // answered before
	}
	if err == nil {
		if s.enc, err = rpcdelta.NewEncoder(s.schema, s.encoder(a.Ring, start)); err != nil {
			err = s.wrap(err)
		}
	}
	if fallback {
		s.stats.PriorFallbacks++
	}
	if s.refused = err; s.at == s {
		s.start()
	}
	return true, err
}

// settled reports whether all requests are answered.
func (s *sender) settled() bool {
	return s.enc != nil || s.refused != nil || s.over != nil || s.left
}

// prepared reports whether the server has bound or refused the RPC, so that the client can switch
// to it. The caller does not hold binding.mu.
func (s *sender) prepared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled()
}

// idle reports whether no reliable payload waits. The caller does not hold binding.mu.
func (s *sender) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.queued
}

// describe adds the descriptions that the server asks for to the request, and sends the request.
func (s *sender) describe(ask []int) error {
	if s.settled() {
		return nil // a repeated answer
	}
	described := addDescribed(s.described, ask)
	if len(described) == len(s.described) {
		return nil // a repeated request for descriptions
	}
	request, err := s.newRequest(described)
	if err != nil {
		return s.wrap(err)
	}
	s.request, s.described, s.asked = request, described, time.Time{}
	s.wakeAt(time.Now())
	return nil
}

// addDescribed returns the union of the described fields and the fields that a server asks for, in
// ascending order. A request is sent again only if the union is larger, so a server can cause at
// most one request per field.
func addDescribed(fields, ask []int) []int {
	all := append(slices.Clone(fields), ask...)
	slices.Sort(all)
	return slices.Compact(all)
}

// start begins the use of the sender by the game, if the server has answered.
func (s *sender) start() {
	if s.enc != nil {
		s.enc.LimitRedundancy(s.limits.redundancy)
		_ = s.enc.SetRedundancy(s.redundancy) // it is valid
	}
	if s.enc != nil || s.refused != nil {
		s.answered(s.refused)
	}
}

// leave sends the held frames and ends the use of the link. It returns false if a reliable payload
// still waits for room in the queue. The caller then calls it again later.
func (s *sender) leave() bool {
	s.left = true
	if s.queued {
		if _ = s.transmit(); s.queued {
			return false
		}
	}
	if s.enc != nil {
		_ = s.sendHeld() // may be lost like any datagram
	}
	s.stop()
	return true
}

// stop ends the use of the link.
func (s *sender) stop() {
	s.left = true
	if s.enc != nil {
		s.stats.Reconnecting += uint64(s.enc.Held())
		delivery := s.enc.DeliveryStats()
		s.stats.Delivery.Add(&delivery)
	}
	s.enc, s.queued = nil, false
}

// ack processes an ack. The caller does not hold binding.mu.
func (s *sender) ack(a rpcdelta.Ack) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == nil {
		return nil
	}
	return s.enc.Ack(a)
}

// report handles a report about the RPC's jitter buffer. The caller does not hold binding.mu.
func (s *sender) report(now time.Time, r *message.Buffered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == s {
		s.pace.report(now, r, &s.paced)
	}
}

// inUse returns the current redundancy. The caller does not hold binding.mu.
func (s *sender) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == nil {
		return 0
	}
	return s.enc.Redundancy()
}

// send sends a frame of the schema, or holds it back. It returns the frame's sequence number.
func (s *sender) send(f *schema.Frame) (seq uint64, err error) {
	seq = s.enc.Next()
	if n := s.framesPerPayload(); n > 1 || s.enc.Held() > 0 {
		err = s.hold(f, n)
	} else {
		err = s.sendAlone(f)
	}
	return seq, err
}

// due reports whether the held frames are sent now, where n is the intended number of frames per
// payload. If the limits permit fewer payloads than urgent frames need, urgent frames are sent
// first and later frames wait longer.
func (s *sender) due(n int) bool {
	if s.limits.every == 1 && s.batch() > 0 {
		return s.enc.Due()
	}
	return s.enc.Held() >= n || s.owed <= 0 && s.enc.Urgent()
}

// hold holds f back. If n frames are held then, it sends them.
func (s *sender) hold(f *schema.Frame, n int) error {
	err := s.enc.Hold(f)
	switch {
	case errors.Is(err, rpcdelta.ErrTooLarge): // a delta may still fit
		if err := s.sendHeld(); err != nil {
			return err
		}
		return s.sendAlone(f)
	case err != nil:
		s.countUnsent(err)
		return err
	case s.due(n):
		return s.sendHeld()
	case s.enc.Held() == 1:
		s.heldSince = time.Now()
		s.wakeAt(s.heldUntil())
	}
	return nil
}

// heldUntil returns when the held frames are sent even if no more frames follow.
func (s *sender) heldUntil() time.Time {
	interval := time.Duration(float64(time.Second) / s.schema.RateHz())
	wait := time.Duration(s.framesPerPayload()-1) * interval
	return s.heldSince.Add(wait + cmp.Or(s.delay.Tolerance, interval))
}

// sendHeld sends the held frames, and the repeated payload in the datagram of the last of them.
func (s *sender) sendHeld() error {
	for s.enc.Held() > 0 {
		var info rpcdelta.Info
		s.buf, info = s.enc.AppendHeld(s.buf[:0])
		s.repairs = s.repairs[:0]
		if s.enc.Held() == 0 {
			s.repairs = s.enc.AppendRepair(s.repairs)
		}
		if err := s.post(&info); err != nil {
			return err
		}
	}
	return nil
}

// repair adds the repeated payloads to the datagram of the payload that was collected last.
func (s *sender) repair() error {
	for len(s.repairs) > 0 {
		_, extra, err := s.link.out.add(s.number, s.repairs, 0)
		if err != nil {
			return err
		}
		s.stats.Messages++
		s.stats.Repeated++
		s.stats.Coalesced++
		s.stats.Bytes += uint64(len(s.repairs))
		s.stats.CoalescedBytes += uint64(extra)
		s.repairs = s.enc.AppendRepair(s.repairs[:0])
	}
	return nil
}

func (s *sender) sendAlone(f *schema.Frame) error {
	buf, info, err := s.enc.AppendFrame(s.buf[:0], f)
	if err != nil {
		s.countUnsent(err)
		return err
	}
	s.buf = buf
	return s.post(&info)
}

// post sends the payload in buf, and counts its frames.
func (s *sender) post(info *rpcdelta.Info) error {
	var shared bool
	var extra int
	var err error
	switch {
	case s.reliable:
		err = s.transmit()
	case s.cfg.coalesces() || len(s.repairs) > 0:
		shared, extra, err = s.link.out.add(s.number, s.buf, info.Held+1)
		if err == nil {
			err = s.repair()
		}
		if err == nil && !s.cfg.coalesces() {
			err = s.link.out.flush()
		}
		err = s.linkError(err)
	default:
		err = s.linkError(s.link.out.post(s.buf))
	}
	if err != nil && !s.queued {
		if errors.Is(err, ErrReconnecting) {
			s.stats.Reconnecting += uint64(info.Held + 1)
		}
		return err
	}
	s.countFrames(info.Held + 1)
	s.stats.Count(info)
	s.stats.Messages++
	s.stats.Bytes += uint64(len(s.buf))
	if shared {
		s.stats.Coalesced++
		s.stats.CoalescedBytes += uint64(extra)
	} else {
		s.stats.AEADBytes += uint64(s.link.own.Suite().Overhead())
	}
	return nil
}

// transmit sends the payload in buf over the reliable channel. The next delta depends on it: if the
// link has no room, the payload is queued, and the next frame has to wait for it.
func (s *sender) transmit() error {
	var err error
	if n := s.link.own.Unacked(); n >= maxUnackedCalls {
		err = fmt.Errorf("%w: %d reliable messages are not acknowledged", transport.ErrBacklog, n)
	} else {
		err = s.link.own.SendReliable(s.buf)
	}
	queued := errors.Is(err, transport.ErrBacklog)
	if queued && !s.queued {
		s.wakeAt(time.Now().Add(queuedRetry))
	}
	s.queued = queued
	return s.linkError(err)
}

// linkError returns the error of Send for an error of the link.
func (s *sender) linkError(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return s.ended() // the client reconnects
	case err != nil:
		return fmt.Errorf("client: send %s: %w", s.schema.RPC(), err)
	}
	return nil
}

// retry sends the queued payload, and the frames that were held for long enough.
func (s *sender) retry(now time.Time) {
	if s.queued {
		_ = s.transmit() // the next retry repeats it
	}
	if s.enc != nil && s.enc.Held() > 0 {
		if due := s.heldUntil(); now.Before(due) {
			s.wakeAt(due)
		} else {
			_ = s.sendHeld() // the next Send returns the error
		}
	}
	if s.queued {
		s.wakeAt(now.Add(queuedRetry))
	}
}

func (s *sender) wakeAt(at time.Time) {
	s.link.own.Wake(at)
}

// encoder returns the settings of the encoder for a server's ring and a prior.
func (s *sender) encoder(peerRing int, p *prior.Prior) rpcdelta.EncoderConfig {
	cfg := s.cfg
	maxPayload := transport.MaxPayload
	if s.reliable {
		maxPayload = maxReliable
	}
	batch, deadline := s.delay.FramesAt(s.schema.RateHz())
	return rpcdelta.EncoderConfig{
		Codec: cfg.Tuning.Codec, RPC: s.number, Ring: cfg.Tuning.Ring, PeerRing: peerRing, Prior: p,
		Redundancy: s.redundancy, Delivery: cmp.Or(s.delay.Delivery, cfg.Tuning.Delivery), RedundancyBytes: cfg.Tuning.RedundancyBytes,
		MaxBatchDelay: batch, Deadline: deadline, UrgentLoss: s.delay.UrgentLoss, Repair: s.delay.Repair, Reliable: s.reliable, MaxPayload: maxPayload,
	}
}
