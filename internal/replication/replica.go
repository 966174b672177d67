package replication

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/transport"
)

// Player is a server's connection to one player.
type Player interface {
	ID() uint64
	RTT() time.Duration
	// Returned returns when a datagram of the client last arrived after a silence, or the zero
	// time.
	Returned() time.Time
	// Overhead returns the size of all headers of a datagram, down to IP, in bytes.
	Overhead() uint64
	// Send sends a datagram, or queues it for the function of [World.FlushBy]. An error means that
	// the session has ended.
	Send(b []byte) error
	// SendReliable sends a message over the reliable channel. The error is transport.ErrBacklog if
	// too much is unacknowledged.
	SendReliable(b []byte) error
	// AppendProcessed appends the [Processed] of the player. It appends nothing if it has no RPC to
	// report.
	AppendProcessed(dst []byte) []byte
	// MayWorlds reports whether the path has room for a message of a world now.
	MayWorlds(now time.Time) bool
	// WorldSlowed reports that the path carries only a share of the messages of a world at the rate
	// of the offer, or 1 if it carries all of them again.
	WorldSlowed(world string, share float64)
	// Rate returns the rate in bits/s that the path carries, as far as is known.
	Rate() float64
	// Unacked returns the number of unacknowledged segments of the reliable channel.
	Unacked() int
}

// mode is a way to send a world: the offer names the codec.
type mode struct {
	offer   Offer  // offer without the stream's number
	initial []byte // encoded initial state
}

// sender encodes the messages of one replica. Calls of one sender do not overlap; calls of
// different senders of a world may. After stop, only start may be called.
type sender interface {
	// start prepares the first message to a client that has just subscribed.
	start(now time.Time)
	// stop frees memory that only an active replica needs.
	stop()
	// message returns the next message, at most limit bytes. The message is in own, which may grow,
	// or in memory of the world that is valid until the next tick is prepared. If there is no
	// message now, the error is errNothing.
	message(own *[]byte, limit int, now time.Time) ([]byte, error)
	// ack applies an ack of the client. It returns the number of messages acked for the first time,
	// and the tick of the newest acked message, or 0 if the tick is unknown. An error means that
	// the ack is invalid.
	ack(b []byte, now time.Time) (acked int, tick uint64, err error)
	// received appends the numbers of the snapshots that the client may show according to its acks,
	// ascending. It appends nothing if the client does not show snapshots.
	received(dst []uint64) []uint64
	// count adds the last message to the counts of the replica. It sets BaselineAge, which is 0 for
	// a message without a baseline, Objects and Waiting.
	count(st *Stats)
}

var errNothing = errors.New("replication: nothing to send")

// ErrNotReady is returned while the client has not subscribed, or the initial state is being sent.
var ErrNotReady = errors.New("replication: the client is not ready")

// Replica is a replication stream: a world as one player receives it. Its methods are safe for
// concurrent use, except Send.
type Replica struct {
	player Player
	number uint8
	mode   *mode
	hub    *hub
	ackHz  *atomic.Int64 // Replicas.ackHz of the player
	aead   uint64        // AEAD overhead per datagram, in bytes
	tells  bool          // messages begin with a Processed

	// Fields of the goroutine that sends initial states:
	queued bool             // is in a SendQueue
	pieces ratelimit.Bucket // rate limit of initial states, in bytes

	mu          sync.Mutex
	phase       phase
	sentInitial int // sent bytes of the initial state
	sender      sender
	splitter    fragment.Splitter
	processed   []byte // Processed that precedes the message
	own         []byte // buffer of the sender
	message     []byte // message in own, or in memory of the world
	waiting     bool   // the message waits for release
	heard       uint64 // newest tick when the client last acked a message
	sent, acked uint64 // newest ticks sent and acked since the client subscribed, or 0
	pace        pacer
	watch       paceWatch
	stats       Stats
}

// paceWatch notices when a path carries fewer messages than a world has.
type paceWatch struct {
	since      time.Time // start of the current period
	sent, held int       // in the period
	slow       bool
}

const (
	watchPeriod = 5 * time.Second
	slowShare   = 0.9  // share of sent messages below which a period is slow
	steadyShare = 0.98 // share from which a slow world is no longer slow
)

// attempt counts a message that was due. It returns the share of the messages of the period that
// were sent, or 1 if the world is no longer slow, and whether that changed.
func (w *paceWatch) attempt(now time.Time, sent bool) (share float64, changed bool) {
	if w.since.IsZero() || now.Sub(w.since) >= 2*watchPeriod {
		w.since, w.sent, w.held = now, 0, 0
	}
	if sent {
		w.sent++
	} else {
		w.held++
	}
	if now.Sub(w.since) < watchPeriod {
		return 0, false
	}
	share = float64(w.sent) / float64(w.sent+w.held)
	w.since, w.sent, w.held = now, 0, 0
	switch {
	case !w.slow && share < slowShare:
		w.slow = true
		return share, true
	case w.slow && share >= steadyShare:
		w.slow = false
		return 1, true
	}
	return 0, false
}

type phase uint8

const (
	offered phase = iota
	initial       // the initial state is being sent
	ready
	stopped
)

// Send sends the newest tick. It does nothing if the tick was sent before, or if the world's
// message rate or the bandwidth does not permit a message yet. It returns ErrNotReady if the client
// has not subscribed, the encoder's error, or an error that wraps the player's.
func (s *Replica) Send(now time.Time) error {
	s.mu.Lock()
	isReady, due := s.phase == ready, s.pace.due(s.hub.tick.Load())
	s.mu.Unlock()
	switch {
	case !isReady:
		return ErrNotReady
	case !due:
		return nil
	}
	s.hub.prepareAll(now)
	_, err := s.send(now, false)
	return err
}

// send encodes the newest tick and reports whether there was a message. If wait is set, release
// sends the message later, and now is the time of its departure. send first transmits a message
// that still waits.
func (s *Replica) send(now time.Time, wait bool) (sent bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return false, ErrNotReady
	}
	if s.waiting {
		_ = s.transmit() // the error is ignored as in release
	}
	tick := s.hub.tick.Load()
	if !s.pace.due(tick) {
		return false, nil
	}
	may := s.player.MayWorlds(now)
	if share, changed := s.watch.attempt(now, may); changed {
		s.player.WorldSlowed(s.mode.offer.Name, share)
	}
	if !may {
		s.stats.Held++
		return false, nil
	}
	message, err := s.sender.message(&s.own, maxCoded, now)
	switch {
	case errors.Is(err, errNothing):
		return false, nil
	case err != nil:
		s.stats.Unsent++
		return false, fmt.Errorf("replication: %s to player %d: %w", s.mode.offer.Name, s.player.ID(), err)
	}
	s.pace.take(tick, s.hub.interval)
	s.sent = tick
	if s.message, s.waiting = message, true; s.tells {
		s.processed = s.player.AppendProcessed(s.processed[:0])
	}
	if wait {
		return true, nil
	}
	err = s.transmit()
	return err == nil, err
}

// release sends the waiting message, if there is one. It ignores the error of a session that has
// ended.
func (s *Replica) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting {
		_ = s.transmit()
	}
}

// datagrams are buffers for one datagram each.
var datagrams = sync.Pool{New: func() any {
	b := make([]byte, 0, transport.MaxPayload)
	return &b
}}

// maxOwn is the maximum size of the buffer that a replica keeps between messages, in bytes.
const maxOwn = 1 << 10

// transmit sends the message, in fragments if it exceeds a datagram.
func (s *Replica) transmit() (err error) {
	s.waiting = false
	buf := datagrams.Get().(*[]byte)
	size := len(s.processed) + len(s.message)
	if size < transport.MaxPayload {
		*buf = append(append(append((*buf)[:0], byte(message.Down)|s.number), s.processed...), s.message...)
		err = s.sendDatagram(*buf)
	} else {
		err = s.sendFragments(buf)
	}
	datagrams.Put(buf)
	s.stats.Messages++
	s.stats.Bytes += uint64(1 + size)
	if s.sender.count(&s.stats); s.stats.BaselineAge == 0 {
		s.stats.Keyframes++
	}
	if s.message = nil; cap(s.own) > maxOwn {
		s.own = nil
	}
	return err
}

func (s *Replica) sendFragments(buf *[]byte) error {
	f, err := s.splitter.Split(s.processed, s.message, MaxFragment)
	if err != nil {
		return err
	}
	s.stats.Fragmented++
	s.stats.Bytes += uint64(f.Count()-1) + uint64(f.Count()*fragment.HeaderSize)
	for {
		b, ok := f.Next(append((*buf)[:0], byte(message.DownFragment)|s.number))
		if !ok {
			return nil
		}
		*buf = b
		if err := s.sendDatagram(b); err != nil {
			return err
		}
	}
}

func (s *Replica) sendDatagram(b []byte) error {
	s.stats.Datagrams++
	s.stats.AEADBytes += s.aead
	if err := s.player.Send(b); err != nil {
		return sessionError{fmt.Errorf("replication: send to player %d: %w", s.player.ID(), err)}
	}
	return nil
}

type sessionError struct{ error }

func (e sessionError) Unwrap() error { return e.error }

func isSessionError(err error) bool {
	_, ok := errors.AsType[sessionError](err)
	return ok
}

// ErrInvalidAck is returned for an invalid ack.
var ErrInvalidAck = errors.New("replication: invalid ack")

func (s *Replica) handleAck(b []byte, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return nil // sent before the client unsubscribed
	}
	s.stats.AckBytes += uint64(2 + len(b))
	n, tick, err := s.sender.ack(b, now)
	if err != nil {
		s.stats.InvalidAcks++
		return fmt.Errorf("%w: %w", ErrInvalidAck, err)
	}
	// Otherwise the acked snapshot is too old: a newer one has replaced its tick.
	if tick <= s.sent {
		s.acked = max(s.acked, tick)
	}
	if s.stats.Acked += uint64(n); n > 0 {
		s.heard = s.hub.tick.Load()
	}
	return nil
}

// setPhase changes the phase. It also starts or stops the sender, and grants or revokes the ack
// rate of the replica.
func (s *Replica) setPhase(p phase, now time.Time) {
	if acks := int64(1000 * s.mode.offer.RateHz); p == ready {
		s.ackHz.Add(acks)
	} else if s.phase == ready {
		s.ackHz.Add(-acks)
	}
	s.sender.stop()
	s.waiting = false
	s.stats.BaselineAge, s.stats.Objects, s.stats.Waiting = 0, 0, 0
	if s.phase, s.sentInitial = p, 0; p == ready {
		s.heard = s.hub.tick.Load()
		s.sent, s.acked = 0, 0
		s.sender.start(now)
	}
}

func (s *Replica) subscribe(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == offered || s.phase == initial {
		s.setPhase(ready, now)
	}
}

// pause stops the replica at the client's request. The client may resubscribe.
func (s *Replica) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != stopped {
		s.setPhase(offered, time.Time{})
	}
}

// close stops the replica and frees its buffers.
func (s *Replica) close() {
	s.mu.Lock()
	before := s.phase
	s.setPhase(stopped, time.Time{})
	s.own, s.message, s.processed = nil, nil, nil
	s.mu.Unlock()
	if before != stopped {
		s.hub.remove(s)
	}
}

// Stop closes the replica and notifies the client. The world may be offered again.
func (s *Replica) Stop() {
	s.close()
	// An error means that the session has ended.
	_ = s.player.SendReliable([]byte{byte(message.Stop), s.number})
}

func (s *Replica) is(p phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == p
}

// Ready reports whether the client has subscribed and has the initial state.
func (s *Replica) Ready() bool { return s.is(ready) }

// RTT returns the player's round-trip time.
func (s *Replica) RTT() time.Duration { return s.player.RTT() }

// Newest returns the newest tick that was sent to the client and the newest tick that it acked,
// since it subscribed. 0 means none.
func (s *Replica) Newest() (sent, acked uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.acked
}

// Shown appends the times of the ticks that the client may show, ascending. Of the last snapshots,
// these are the acked ones and those sent after the newest acked one.
func (s *Replica) Shown(dst []time.Duration) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return dst
	}
	var numbers [snapshot.Ring]uint64
	of := s.sender.received(numbers[:0])
	for _, n := range of {
		tick := s.hub.ticks[n%snapshot.Ring].Load()
		// Otherwise the slot contains the tick of a newer snapshot, which was not sent to the
		// client.
		if tick <= s.sent {
			dst = append(dst, TickTime(tick, s.mode.offer.TickHz))
		}
	}
	return dst
}

// TickHz returns the number of ticks per second of the world.
func (s *Replica) TickHz() float64 { return s.mode.offer.TickHz }

// Stats returns the counts of the replica.
func (s *Replica) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Name, st.TickHz = s.mode.offer.Name, s.mode.offer.TickHz
	if s.phase != stopped {
		st.Players = 1
	}
	if s.phase == ready {
		st.Ready = 1
		st.AckAge = s.hub.tick.Load() - s.heard
	}
	return st
}

// See sets the areas that the player of a replica sees, by descending priority. It returns false if
// the world has no areas.
func (s *Replica) See(in []area.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	snd, ok := s.sender.(*areaSender)
	if ok {
		snd.see = append(snd.see[:0], in...)
		snd.view.See(snd.see)
	}
	return ok
}

// SendGameMessage sends a game message over the reliable channel. The client delivers it with the
// first message of the world that has this tick or a later one. It returns ErrNotReady if the
// client has not subscribed.
func (s *Replica) SendGameMessage(tick uint64, msg []byte) error {
	switch {
	case len(msg) > MaxGameMessage:
		return fmt.Errorf("replication: %s to player %d: a message of %d bytes, at most %d can be sent", s.mode.offer.Name, s.player.ID(), len(msg), MaxGameMessage)
	case s.mode.offer.CheckTick(tick) != nil:
		return s.mode.offer.CheckTick(tick)
	case !s.is(ready):
		return ErrNotReady
	}
	b := append(make([]byte, 0, 2+binary.MaxVarintLen64+len(msg)), byte(message.GameMessage), s.number)
	if err := s.player.SendReliable(append(binary.AppendUvarint(b, tick), msg...)); err != nil {
		return fmt.Errorf("replication: %s to player %d: %w", s.mode.offer.Name, s.player.ID(), err)
	}
	return nil
}

// sendInitialState sends pieces of the initial state, and reports whether nothing is left to send.
// buf is scratch memory.
func (s *Replica) sendInitialState(buf *[]byte, since time.Duration) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.mode.initial
	size := float64(len(state))
	rate := ratelimit.Rate{PerSecond: size / initialInterval.Seconds(), Burst: 2 * size}
	for s.phase == initial && s.sentInitial < len(state) {
		n := min(maxPiece, len(state)-s.sentInitial)
		if s.player.Unacked() >= maxUnacked || !s.pieces.Take(since, rate, float64(n)) {
			return false
		}
		*buf = append((*buf)[:0], byte(message.Piece), s.number)
		*buf = append(*buf, state[s.sentInitial:s.sentInitial+n]...)
		if err := s.player.SendReliable(*buf); err != nil {
			return !errors.Is(err, transport.ErrBacklog)
		}
		s.sentInitial += n
		s.stats.InitialBytes += uint64(n)
	}
	return true
}

// State calls f with the sender of a replica that uses StateCodec. It does nothing if the client
// has not subscribed.
func (s *Replica) State(f func(*statesync.Sender) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return nil
	}
	if err := f(s.sender.(*stateSender).sender); err != nil {
		return fmt.Errorf("replication: world %s: %w", s.mode.offer.Name, err)
	}
	return nil
}

// SetViewer sets the object relative to which the positions of other objects may be encoded. The
// replica must use StateCodec.
func (s *Replica) SetViewer(id uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snd := s.sender.(*stateSender)
	if snd.viewer, snd.hasViewer = id, true; s.phase == ready {
		snd.sender.SetViewer(id)
	}
}

// SetBandwidth changes the bandwidth limits of a replica that uses StateCodec, in bits per second.
func (s *Replica) SetBandwidth(bandwidth, minimum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snd := s.sender.(*stateSender)
	snd.cfg.Bandwidth, snd.cfg.MinBandwidth = bandwidth, minimum
}

// Bandwidth returns the bandwidth that a replica with StateCodec may use now, in bits per second.
func (s *Replica) Bandwidth() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.sender.(*stateSender).bandwidth())
}
