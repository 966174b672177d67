package client

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

// maxUnackedCalls is the number of unacknowledged reliable messages above which no reliable call is
// sent: the server would receive all of them at once, and limits the rate of calls.
const maxUnackedCalls = 256

// queuedRetry is the time until a reliable message is sent again for which the link had no room.
const queuedRetry = transport.DefaultTick

// sender encodes the frames of one RPC and sends the payloads. mu guards the fields below it; the
// methods in lower case are called with it held, unless stated otherwise.
type sender struct {
	cfg      *Config
	out      *outbox
	closed   <-chan struct{} // closed by Conn.Close
	number   int
	schema   *schema.Schema
	reliable bool
	delay    DelayPolicy

	mu         sync.Mutex
	link       *transport.Conn   // nil while reconnecting
	enc        *rpcdelta.Encoder // nil until bound over link
	refused    error             // the server's answer over link, or the end of the connection
	frame      *schema.Frame     // scratch of Stream.Send
	buf        []byte
	repairs    []byte    // payload to repeat in the datagram of buf
	queued     bool      // buf is a reliable payload for which the link had no room
	heldSince  time.Time // of the frames that the encoder holds
	limits     limits
	owed       float64 // frames by which recent payloads had fewer than limits.every on average
	departures departures
	redundancy int // Config.Redundancy, or the value of SetRedundancy
	stats      RPCStats
}

// send sends a frame of the schema, or holds it back. It returns the frame's sequence number.
func (s *sender) send(f *schema.Frame) (seq uint64, err error) {
	if err := s.ready(); err != nil {
		if errors.Is(err, ErrReconnecting) {
			s.stats.Reconnecting++
		}
		return 0, err
	}
	seq = s.enc.Next()
	if n := s.framesPerPayload(); n > 1 || s.enc.Held() > 0 {
		err = s.hold(f, n)
	} else {
		err = s.sendAlone(f)
	}
	return seq, err
}

// ready returns the reason why no frame can be sent now.
func (s *sender) ready() error {
	switch {
	case isClosed(s.closed):
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

// combines reports whether frames can share a payload.
func (s *sender) combines() bool { return !s.reliable && s.cfg.Codec == rpcdelta.Adaptive }

// framesPerPayload returns the number of frames that are currently sent in one payload.
func (s *sender) framesPerPayload() int {
	if !s.combines() {
		return 1
	}
	n := s.batch() + 1
	if s.limits.every > 1 {
		n = max(n, min(int(math.Ceil(s.limits.every+s.owed)), s.maxFrames()))
	}
	return n
}

// batch returns the number of later frames that a frame may wait for.
func (s *sender) batch() int {
	batch, _ := s.delay.FramesAt(s.schema.RateHz())
	return batch
}

// due reports whether the held frames are sent now, if a payload is to have n frames. If the limits
// permit fewer payloads than urgent frames need, these leave first, and later ones wait longer.
func (s *sender) due(n int) bool {
	if s.limits.every == 1 && s.batch() > 0 {
		return s.enc.Due()
	}
	return s.enc.Held() >= n || s.owed <= 0 && s.enc.Urgent()
}

// forgiven is the part of a frame by which sender.owed falls with each frame. Otherwise it would
// never fall while limits.every is as high as the number of frames that a payload can have.
const forgiven = 1. / 8

// countFrames counts the frames of a payload for limits.every.
func (s *sender) countFrames(n int) {
	s.owed += s.limits.every - float64(n)
	if s.owed > 0 {
		s.owed = min(max(0, s.owed-forgiven*float64(n)), maxEvery)
	}
	s.owed = max(s.owed, -1)
}

// maxFrames returns the maximum number of new frames in a datagram, which the server is told.
func (s *sender) maxFrames() int {
	switch {
	case s.reliable:
		return 1
	case s.cfg.coalesces():
		return rpcdelta.MaxHeld
	case s.combines():
		return max(maxEvery, s.batch()+1)
	}
	return 1
}

// hold holds f back. If n frames are held then, it sends them.
func (s *sender) hold(f *schema.Frame, n int) error {
	err := s.enc.Hold(f)
	switch {
	case errors.Is(err, rpcdelta.ErrTooLarge): // it may fit as a delta
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

// sendHeld sends the frames that are held back, and with the last of them the payloads that are
// repeated.
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
		_, extra, err := s.out.add(s.link, s.number, s.repairs, 0)
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
		shared, extra, err = s.out.add(s.link, s.number, s.buf, info.Held+1)
		if err == nil {
			err = s.repair()
		}
		if err == nil && !s.cfg.coalesces() {
			err = s.out.flush(s.link)
		}
		err = s.linkError(err)
	default:
		err = s.linkError(s.out.post(s.link, s.buf))
	}
	if err != nil && !s.queued {
		if errors.Is(err, ErrReconnecting) {
			s.stats.Reconnecting += uint64(info.Held + 1)
		}
		return err
	}
	if !s.reliable {
		s.departures.put(info.Seq, time.Now())
	}
	s.countFrames(info.Held + 1)
	s.stats.Count(info)
	s.stats.Messages++
	s.stats.Bytes += uint64(len(s.buf))
	if shared {
		s.stats.Coalesced++
		s.stats.CoalescedBytes += uint64(extra)
	} else {
		s.stats.AEADBytes += uint64(s.link.Suite().Overhead())
	}
	return nil
}

// transmit sends the payload in buf over the reliable channel. The next delta depends on it: if the
// link has no room, the payload is queued, and the next frame has to wait for it.
func (s *sender) transmit() error {
	var err error
	if n := s.link.Unacked(); n >= maxUnackedCalls {
		err = fmt.Errorf("%w: %d reliable messages are not acknowledged", session.ErrBacklog, n)
	} else {
		err = s.link.SendReliable(s.buf)
	}
	queued := errors.Is(err, session.ErrBacklog)
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
		return s.ended() // suspend follows
	case err != nil:
		return fmt.Errorf("client: send %s: %w", s.schema.RPC(), err)
	}
	return nil
}

// ended returns the reason why there is no link.
func (s *sender) ended() error {
	if isClosed(s.closed) {
		return errClosed
	}
	return ErrReconnecting
}

// countUnsent counts a frame that was not encoded because of err.
func (s *sender) countUnsent(err error) {
	switch {
	case errors.Is(err, rpcdelta.ErrTooLarge):
		s.stats.TooLarge++
	case errors.As(err, new(*schema.RangeError)):
		s.stats.OutOfRange++
	default:
		s.stats.Unencodable++
	}
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
	if s.link != nil {
		s.link.Wake(at)
	}
}

// stop ends the use of the link.
func (s *sender) stop() {
	if s.enc != nil {
		s.stats.Reconnecting += uint64(s.enc.Held())
		delivery := s.enc.DeliveryStats()
		s.stats.Delivery.Add(&delivery)
	}
	s.departures.reset()
	s.enc, s.link, s.queued = nil, nil, false
}

// Flush sends the frames that are held back because of a delay policy, Config.Bandwidth or
// congestion. If payloads share datagrams (Config.Tick), they wait for [Conn.Flush]. Errors are
// those of Send.
func (s *sender) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	return s.sendHeld()
}

// setLimits applies the limits of a budget. The caller does not hold s.mu.
func (s *sender) setLimits(l limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
	if s.enc != nil {
		s.enc.LimitRedundancy(l.redundancy)
	}
}

func (s *sender) setRedundancy(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redundancy = n
	if s.enc != nil {
		_ = s.enc.SetRedundancy(n) // n is valid
	}
}

// addDelivery adds the payloads that were sent so far to total, and returns the current redundancy.
// The caller does not hold s.mu.
func (s *sender) addDelivery(total *rpcdelta.DeliveryStats) (redundancy int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total.Add(&s.stats.Delivery)
	if s.enc == nil {
		return 0
	}
	delivery := s.enc.DeliveryStats()
	total.Add(&delivery)
	return s.enc.Redundancy()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
		Codec: cfg.Codec, RPC: s.number, Ring: cfg.Ring, PeerRing: peerRing, Prior: p,
		Redundancy: s.redundancy, Delivery: cmp.Or(s.delay.Delivery, cfg.Delivery), RedundancyBytes: cfg.RedundancyBytes,
		MaxBatchDelay: batch, Deadline: deadline, UrgentLoss: s.delay.UrgentLoss, Repair: s.delay.Repair, Reliable: s.reliable, MaxPayload: maxPayload,
	}
}

// outbox collects the payloads that share a datagram. It is safe for concurrent use.
type outbox struct {
	mu     sync.Mutex
	link   *transport.Conn // for which payloads are collected
	bundle message.Bundler
	frames [rpcdelta.MaxRPC + 1]int // new frames of each RPC in the bundle

	worlds *replication.Subscriptions // whose acks precede payloads
	sent   atomic.Uint64              // datagrams with payloads
}

// post sends a payload or bundle in a datagram, in front of it acks of worlds.
func (o *outbox) post(link *transport.Conn, message []byte) error {
	o.sent.Add(1)
	return o.worlds.SendWithAcks(link, message, time.Now())
}

// add adds a payload of an RPC with that number of new frames. If it does not fit, the collected
// payloads are sent first. It reports whether the payload follows another one in its datagram, and
// how many bytes it takes there besides its own.
func (o *outbox) add(link *transport.Conn, rpc int, payload []byte, frames int) (shared bool, extra int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != link {
		if o.link != nil {
			_ = o.send() // what was collected for another server
		}
		o.link = link
	}
	if o.frames[rpc]+frames > rpcdelta.MaxHeld { // limit of BindRequest.Frames
		if err := o.send(); err != nil {
			return false, 0, err
		}
	}
	shared = o.bundle.Len() > 0
	extra, ok := o.bundle.Add(payload)
	if !ok {
		if err := o.send(); err != nil {
			return false, 0, err
		}
		if extra, ok = o.bundle.Add(payload); !ok {
			return false, 0, transport.ErrTooLarge
		}
		shared = false
	}
	o.frames[rpc] += frames
	return shared, extra, nil
}

// waiting reports whether payloads were collected.
func (o *outbox) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bundle.Len() > 0
}

// flush sends the payloads that were collected for the link.
func (o *outbox) flush(link *transport.Conn) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != link {
		return nil
	}
	return o.send()
}

// send sends the collected payloads. The caller holds o.mu.
func (o *outbox) send() error {
	message := o.bundle.Take()
	clear(o.frames[:])
	if message == nil {
		return nil
	}
	return o.post(o.link, message)
}
