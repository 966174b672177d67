package replication

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// Player is a server's connection to one player.
type Player interface {
	ID() uint64
	RTT() time.Duration
	// Returned returns when the client was last heard after a silence, or the zero time.
	Returned() time.Time
	// Overhead returns the size of all headers of a datagram, down to IP, in bytes.
	Overhead() uint64
	// Send sends a datagram, or queues it for the function of [World.FlushBy]. An error means that
	// the session has ended.
	Send(b []byte) error
	// SendReliable sends a message over the reliable channel. The error is session.ErrBacklog if
	// too much is unacknowledged.
	SendReliable(b []byte) error
	// AppendProcessed appends the [Processed] of the player, nothing if no RPC is reported in it.
	AppendProcessed(dst []byte) []byte
	// Unacked returns the number of unacknowledged segments of the reliable channel.
	Unacked() int
}

// mode is how a world is sent: by which codec, and from which state.
type mode struct {
	offer   Offer  // without the number
	initial []byte // encoded initial state
}

// sender encodes the messages of one stream. Its methods are called one at a time, but those of
// different senders of a world at the same time. After stop only start may be called.
type sender interface {
	// start prepares the first message to a client that has just subscribed.
	start(now time.Time)
	// stop frees what only an active stream needs.
	stop()
	// message returns the next message, at most limit bytes. It is in own, which may grow, or in
	// memory of the world that is valid until the next tick is prepared. message returns errNothing
	// if there is none now.
	message(own *[]byte, limit int, now time.Time) ([]byte, error)
	// ack applies an ack of the client. It returns the number of messages acked for the first time,
	// and the tick of the newest acked one, which is 0 if it is not known. An error means that no
	// client sends the ack.
	ack(b []byte, now time.Time) (acked int, tick uint64, err error)
	// received appends the numbers of the messages that the client shows, as far as is known from
	// acks, ascending; or nothing if what it shows is not a snapshot.
	received(dst []uint64) []uint64
	// count adds the last message to the counts of the stream, and sets BaselineAge, which is 0 for
	// a message without a baseline, Objects and Waiting.
	count(st *Stats)
}

var errNothing = errors.New("replication: nothing to send")

// ErrNotReady is returned while the client has not subscribed, or the initial state is being sent.
var ErrNotReady = errors.New("replication: the client is not ready")

// Stream is a replication stream: a world as one player receives it. Its methods are safe for
// concurrent use, except Send.
type Stream struct {
	player Player
	number uint8
	mode   *mode
	hub    *hub
	ackHz  *atomic.Int64 // of the player, as in Streams
	aead   uint64        // overhead per datagram, in bytes
	tells  bool          // messages begin with what was processed

	// Of the goroutine that sends initial states:
	queued bool             // is in a SendQueue
	pieces ratelimit.Bucket // bytes of initial states

	mu          sync.Mutex
	phase       phase
	sentInitial int // bytes
	sender      sender
	splitter    fragment.Splitter
	processed   []byte // in front of the message
	own         []byte // buffer of the sender
	message     []byte // in the buffer, or memory of the world
	waiting     bool   // release sends the message
	heard       uint64 // tick in which the client last acked a message
	sent, acked uint64 // the newest ticks since the client subscribed; 0: none
	pace        pacer
	stats       Stats
}

type phase uint8

const (
	offered phase = iota
	initial       // the initial state is being sent
	ready
	stopped
)

// Send sends the newest tick, unless it was sent before, or the rate of messages of the world or
// the bandwidth has no room for it yet. It returns ErrNotReady if the client has not subscribed,
// the encoder's error, or an error that wraps the player's.
func (s *Stream) Send(now time.Time) error {
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

// send is Send. It reports whether there was a message. If wait is set, release sends it, at the
// time that is the argument now. A message that still waits is sent before.
func (s *Stream) send(now time.Time, wait bool) (sent bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return false, ErrNotReady
	}
	if s.waiting {
		_ = s.transmit() // as release
	}
	tick := s.hub.tick.Load()
	if !s.pace.due(tick) {
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

// release sends the message that waits, if there is one. That the session has ended is no error.
func (s *Stream) release() {
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

// maxOwn is the size up to which a stream keeps its buffer.
const maxOwn = 1 << 10

// transmit sends the message.
func (s *Stream) transmit() (err error) {
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

func (s *Stream) sendFragments(buf *[]byte) error {
	f, err := s.splitter.Split(s.processed, s.message, MaxPart)
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

func (s *Stream) sendDatagram(b []byte) error {
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

// ErrInvalidAck is returned for an ack that no client sends.
var ErrInvalidAck = errors.New("replication: invalid ack")

func (s *Stream) handleAck(b []byte, now time.Time) error {
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
	if tick <= s.sent { // else it is of a message that is too old to be known
		s.acked = max(s.acked, tick)
	}
	if s.stats.Acked += uint64(n); n > 0 {
		s.heard = s.hub.tick.Load()
	}
	return nil
}

// setPhase also starts or stops the sender, and grants or revokes the ack rate of the stream.
func (s *Stream) setPhase(p phase, now time.Time) {
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

func (s *Stream) subscribe(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == offered || s.phase == initial {
		s.setPhase(ready, now)
	}
}

// pause stops the stream at the client's request. The client may resubscribe.
func (s *Stream) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != stopped {
		s.setPhase(offered, time.Time{})
	}
}

// close stops the stream and frees its buffers.
func (s *Stream) close() {
	s.mu.Lock()
	before := s.phase
	s.setPhase(stopped, time.Time{})
	s.own, s.message, s.processed = nil, nil, nil
	s.mu.Unlock()
	if before != stopped {
		s.hub.remove(s)
	}
}

// Stop closes the stream and tells the client. The world may be offered again.
func (s *Stream) Stop() {
	s.close()
	_ = s.player.SendReliable([]byte{byte(message.Stop), s.number}) // else the session has ended
}

func (s *Stream) is(p phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == p
}

// Ready reports whether the client has subscribed and has the initial state.
func (s *Stream) Ready() bool { return s.is(ready) }

// RTT returns the player's round-trip time.
func (s *Stream) RTT() time.Duration { return s.player.RTT() }

// Newest returns the newest ticks that were sent to the client and that it acked since it
// subscribed. 0 means none.
func (s *Stream) Newest() (sent, acked uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.acked
}

// Shown appends the times of the ticks that the client shows, ascending: of the last snapshots,
// those that it has acked, and those that were sent after them.
func (s *Stream) Shown(dst []time.Duration) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready {
		return dst
	}
	var numbers [snapshot.Ring]uint64
	of := s.sender.received(numbers[:0])
	for _, n := range of {
		tick := s.hub.ticks[n%snapshot.Ring].Load()
		if tick <= s.sent { // otherwise it is that of a newer snapshot, which was not sent to the client
			dst = append(dst, TickTime(tick, s.mode.offer.TickHz))
		}
	}
	return dst
}

// TickHz returns the number of ticks per second of the world.
func (s *Stream) TickHz() float64 { return s.mode.offer.TickHz }

// Stats returns the counts of the stream.
func (s *Stream) Stats() Stats {
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

var errUnknown = errors.New("replication: a message of no stream")

// Streams are the replication streams of one player, by number. The methods are safe for concurrent
// use. A nil Streams has no streams.
type Streams struct {
	player Player
	ackHz  atomic.Int64 // permitted ack rate, in acks per 1,000 s

	mu   sync.Mutex
	list [MaxStreams]*Stream
	next int // number of the next stream, since late messages may refer to the lowest free number
}

// NewStreams returns the streams of a player.
func NewStreams(p Player) *Streams { return &Streams{player: p} }

// Stats returns the counts of the streams that are not closed, in the order of their numbers.
func (all *Streams) Stats() (out []Stats) {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	list := all.list
	all.mu.Unlock()
	for _, s := range list {
		if s != nil && !s.is(stopped) {
			out = append(out, s.Stats())
		}
	}
	return out
}

// Find returns the number of the stream of a world to which the client has subscribed: of the only
// one if no world is named.
func (all *Streams) Find(world string) (number uint8, err error) {
	var found []*Stream
	if all != nil {
		all.mu.Lock()
		for _, s := range all.list {
			if s != nil && s.is(ready) && (world == "" || s.mode.offer.Name == world) {
				found = append(found, s)
			}
		}
		all.mu.Unlock()
	}
	switch {
	case len(found) == 1:
		return found[0].number, nil
	case world != "":
		return 0, fmt.Errorf("the client has not subscribed to a world %s", world)
	}
	return 0, fmt.Errorf("the client has subscribed to %d worlds: name the one of the tick", len(found))
}

// AckHz returns the number of acks per second that the client may send.
func (all *Streams) AckHz() float64 {
	if all == nil {
		return 0
	}
	return float64(all.ackHz.Load()) / 1000
}

func (all *Streams) offer(h *hub, m *mode, snd sender) (*Stream, error) {
	o, p := m.offer, all.player
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := h.streamOf(p); s != nil {
		if codec := s.mode.offer.Codec; codec != o.Codec {
			return nil, fmt.Errorf("replication: offer %s to player %d: it is offered by codec %q already: Stop that before %q", o.Name, p.ID(), codec, o.Codec)
		}
		return s, nil
	}
	n, ok := all.free()
	if !ok {
		return nil, fmt.Errorf("replication: offer %s to player %d: it has %d worlds already", o.Name, p.ID(), MaxStreams)
	}
	o.Number, o.Processed = uint8(n), len(p.AppendProcessed(nil)) > 0
	b, err := o.Append(nil)
	if err == nil {
		err = p.SendReliable(b)
	}
	if err != nil {
		return nil, fmt.Errorf("replication: offer %s to player %d: %w", o.Name, p.ID(), err)
	}
	s := &Stream{player: p, number: o.Number, mode: m, hub: h, ackHz: &all.ackHz, tells: o.Processed, sender: snd}
	s.aead = p.Overhead() - endpoint.IPSize - endpoint.HeaderSize
	all.list[n], all.next = s, n+1
	h.add(s)
	return s, nil
}

func (all *Streams) free() (int, bool) {
	for i := range all.list {
		n := (all.next + i) % len(all.list)
		if s := all.list[n]; s == nil || s.is(stopped) {
			return n, true
		}
	}
	return 0, false
}

// find parses the number of a stream and returns the stream and the rest of b.
func (all *Streams) find(b []byte) (*Stream, []byte, error) {
	n, rest, err := parseNumber(b)
	if err != nil || all == nil {
		return nil, nil, cmp.Or(err, errUnknown)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.list[n] == nil {
		return nil, nil, errUnknown
	}
	return all.list[n], rest, nil
}

// Close closes all streams. The player's session must have ended, so that no offer can follow.
func (all *Streams) Close() {
	if all == nil {
		return
	}
	all.mu.Lock()
	list := all.list
	all.mu.Unlock()
	for _, s := range list {
		if s != nil {
			s.close()
		}
	}
}

// HandleReply handles the client's reply to an offer. If it requests the initial state, q sends it.
// An error means that no client sends the reply.
func (all *Streams) HandleReply(b []byte, q *SendQueue, now time.Time) error {
	_, answer, _, err := parseReply(b)
	if err != nil {
		return err
	}
	s, _, err := all.find(b)
	if err != nil {
		return err
	}
	switch answer {
	case Request:
		q.add(s)
	case Ready:
		s.subscribe(now)
	default:
		s.pause()
	}
	return nil
}

// Explained returns what a reply explains, and the name of the world. why is nil if it explains
// nothing. The reply may be about a world that was not offered, which is none for HandleReply:
// offered is then false.
func (all *Streams) Explained(b []byte) (world string, why *message.BindAnswer, offered bool, err error) {
	number, _, why, err := parseReply(b)
	switch {
	case err != nil:
		return "", nil, false, err
	case number == NoOffer:
		return why.Theirs, why, false, nil
	case why == nil:
		return "", nil, true, nil
	}
	s, _, err := all.find(b)
	if err != nil {
		return "", nil, true, err
	}
	return s.mode.offer.Name, why, true, nil
}

// Offered returns the names of the worlds that are offered to the player.
func (all *Streams) Offered() (names []string) {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if s != nil && !s.is(stopped) {
			names = append(names, s.mode.offer.Name)
		}
	}
	return names
}

// HandleAck handles an ack of a stream's messages. The error is ErrInvalidAck or another one if no
// client sends the ack.
func (all *Streams) HandleAck(b []byte, now time.Time) error {
	s, ack, err := all.find(b)
	if err != nil {
		return err
	}
	return s.handleAck(ack, now)
}
