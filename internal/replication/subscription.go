package replication

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/serverclock"
	"github.com/uplink-rpc/uplink/session"
)

// Link is a client's session with a server.
type Link interface {
	Send(b []byte) error
	// SendReliable returns session.ErrBacklog if too much is unacknowledged.
	SendReliable(b []byte) error
	// Wake requests a call of [Subscriptions.Tick] at that time.
	Wake(at time.Time)
	RTT() time.Duration
	// Overhead returns the size of all headers of a datagram, down to IP, in bytes.
	Overhead() uint64
}

// Receiver decodes the messages of a world at a client. Its methods are called one at a time, with
// the lock of Subscriptions held, except Deliver.
type Receiver interface {
	// Check returns what only one end has, the server asking, or an error if the objects of the
	// offer cannot be converted.
	Check(o *Offer) (message.Differences, error)
	// Knows reports whether the client has the initial state with that hash.
	Knows(hash uint64) bool
	// Begin prepares the first message of a stream. initial is the encoded initial state, or nil if
	// it is known.
	Begin(o *Offer, initial []byte) error
	// Receive decodes a message that arrived at that time. It returns its tick and whether it shows
	// all objects of the client's view. If held is set, a message that does not is not passed on:
	// the client continues to show what it was shown of an earlier stream. Receive counts errors by
	// reason. processed is valid during the call.
	Receive(message []byte, processed Processed, at time.Time, held bool, st *Stats) (tick uint64, complete bool, err error)
	// End is called when the stream has ended. What it has shown stays.
	End()
	// AppendAck appends an ack of all messages received.
	AppendAck(dst []byte) []byte
	// Deliver passes on the message that Receive decoded last. It is called without the lock, on
	// the goroutine that receives.
	Deliver()
	// Game passes on a message of the game that counts from a tick on, before Deliver passes on
	// that tick or a later one. It is called like Deliver.
	Game(tick uint64, message []byte)
}

// Subscription is a client's subscription to a world, across sessions. Its fields are guarded by
// the mutex of its Subscriptions.
type Subscription struct {
	all      *Subscriptions
	name     string // of the world
	receiver Receiver
	ackHz    float64    // maximum rate of datagrams of acks alone
	outcome  chan error // of the first offer

	spare *Subscription // of the world at the standby; nil if that has not offered it

	link       Link // of the offer, or nil
	offer      Offer
	phase      subscriptionPhase
	differ     message.Differences // from the offer
	refused    error
	unoffered  time.Time // since when it waits for an offer, zero if it does not; see Unoffered
	told       bool      // the program was told that there is none
	initial    []byte    // what was received of the initial state
	replyDue   bool      // there was no room for the reply
	assembler  *fragment.Assembler
	incomplete uint64 // messages that the assembler has discarded, as counted
	newest     uint64 // tick that was passed on
	clock      serverclock.Monitor
	start      time.Time // of the clock's times
	rateNews   bool      // clock.Off is not reported
	arrived    time.Time // when the first datagram of the stream arrived, or zero
	shown      bool      // a message of any stream was passed on
	settled    bool      // a message of this stream was
	partial    bool      // PartialNews has not reported that the view was shown before it was complete
	game       GameMessages
	buf        []byte
	ack        ack
	stats      Stats
}

type subscriptionPhase uint8

const (
	unoffered subscriptionPhase = iota
	refusing
	requesting // the initial state
	subscribed
)

func (p subscriptionPhase) answer() Answer {
	switch p {
	case requesting:
		return Request
	case subscribed:
		return Ready
	default:
		return Refused
	}
}

// replyInterval is the time between two attempts to send a reply.
const replyInterval = endpoint.DefaultTick

func (s *Subscription) accept(link Link, o Offer, now time.Time) {
	s.link, s.offer, s.start, s.clock = link, o, now, serverclock.Monitor{Clock: serverclock.New(serverclock.Remote(Interval(o.RateHz)))}
	s.unoffered, s.told, s.arrived, s.settled = time.Time{}, false, time.Time{}, false
	var err error
	switch s.differ, err = s.receiver.Check(&o); {
	case err != nil:
		s.begun(err)
	case o.Initial == 0 || s.receiver.Knows(o.Hash):
		s.begun(s.receiver.Begin(&o, nil))
	default:
		s.initial = s.initial[:0]
		s.stats.Initial += uint64(o.Initial)
		s.setPhase(requesting)
	}
	s.reply(now)
}

// begun starts the stream, or refuses the offer because of an error, and reports the outcome.
func (s *Subscription) begun(err error) {
	s.setPhase(subscribed)
	if err != nil {
		s.phase, s.refused = refusing, err
	}
	if s.all.Report != nil && (err != nil || s.differ.Any()) {
		s.all.Report(s.name, s.differ, err)
		s.link.Wake(s.start) // Tick passes it on
	}
	select {
	case s.outcome <- err:
	default: // of the first offer only
	}
}

func (s *Subscription) setPhase(p subscriptionPhase) {
	s.phase, s.refused = p, nil
	s.all.acks.restart(&s.ack, s.link, Interval(min(s.ackHz, s.offer.RateHz)))
	if s.assembler != nil {
		s.assembler.Reset()
	}
}

func (s *Subscription) reply(now time.Time) {
	err := s.link.SendReliable(s.appendReply())
	if s.replyDue = errors.Is(err, session.ErrBacklog); s.replyDue {
		s.link.Wake(now.Add(replyInterval))
	}
}

// appendReply returns the reply to the offer. It explains why the client refuses it, and how the
// ends differ.
func (s *Subscription) appendReply() []byte {
	var why *message.BindAnswer
	if s.phase == subscribed || s.refused != nil {
		why = explain(s.differ, s.refused)
	}
	if why != nil {
		if reply, err := AppendExplained(nil, s.offer.Number, s.phase.answer(), why); err == nil {
			return reply
		}
	}
	return AppendReply(nil, s.offer.Number, s.phase.answer())
}

// errPiece reports a piece that cannot be used, perhaps of a state that was requested earlier.
var errPiece = errors.New("replication: unexpected piece of an initial state")

func (s *Subscription) receivePiece(b []byte, now time.Time) error {
	if s.phase != requesting {
		return fmt.Errorf("%w: it was not requested", errPiece)
	}
	if len(b) == 0 || len(s.initial)+len(b) > s.offer.Initial {
		return fmt.Errorf("%w: %d bytes of %d, after %d", errPiece, len(b), s.offer.Initial, len(s.initial))
	}
	s.initial = append(s.initial, b...)
	s.stats.InitialBytes += uint64(len(b))
	if len(s.initial) < s.offer.Initial {
		return nil
	}
	err := s.receiver.Begin(&s.offer, s.initial)
	if s.initial = nil; err != nil {
		err = fmt.Errorf("replication: world %s: %w", s.name, err)
	}
	s.begun(err)
	s.reply(now)
	return err
}

// withdraw forgets the server's offer: the session has ended, or the server stopped the stream.
func (s *Subscription) withdraw() {
	if s.phase == subscribed || s.phase == requesting {
		s.phase = unoffered
	}
	s.link, s.replyDue = nil, false
	s.unoffered, s.told = time.Time{}, false
	s.all.acks.restart(&s.ack, nil, 0)
	s.newest = 0
	s.receiver.End()
	s.game.Reach(MaxTick)
	if s.assembler != nil {
		s.assembler.Reset()
		s.countIncomplete()
	}
}

// receiveFragment adds a fragment, and decodes its message if that is complete.
func (s *Subscription) receiveFragment(b []byte, at time.Time) error {
	if s.assembler == nil {
		s.assembler = fragment.NewAssembler(MaxPart, fragment.MaxCount)
	}
	m, err := s.assembler.Add(b)
	s.countIncomplete()
	switch {
	case errors.Is(err, fragment.ErrMalformed):
		s.stats.BadFragments++
		return err
	case err != nil:
		s.stats.Late++
		return err
	case m == nil:
		return errIncomplete
	}
	return s.receive(m, at)
}

var errIncomplete = errors.New("replication: incomplete message")

func (s *Subscription) countIncomplete() {
	n := s.assembler.Incomplete()
	s.stats.Incomplete += n - s.incomplete
	s.incomplete = n
}

func (s *Subscription) receive(msg []byte, at time.Time) error {
	s.stats.Bytes += uint64(len(msg))
	var processed Processed
	var tick uint64
	var err error
	if s.offer.Processed {
		processed, msg, err = parseProcessed(msg)
	}
	held, complete := s.holds(at), false
	if err == nil {
		tick, complete, err = s.receiver.Receive(msg, processed, at, held, &s.stats)
	} else {
		s.stats.CountError(err)
	}
	if err == nil {
		s.stats.Messages++
		if s.clock.Watch(at.Sub(s.start), TickTime(tick, s.offer.TickHz)) {
			s.rateNews = !s.rateNews
		}
		if held && !complete {
			err = errHeld
		} else {
			s.newest = max(s.newest, tick)
			s.shown, s.settled = true, true
			s.game.Reach(s.newest)
		}
	}
	// Even after an error: an ack also reports what is missing.
	s.buf = s.receiver.AppendAck(append(s.buf[:0], byte(message.DownAck), s.offer.Number))
	s.all.acks.put(&s.ack, s.buf, len(msg), at)
	return err
}

var errHeld = errors.New("client: the view is not complete yet")

// The objects of a view enter it in about so many messages. 4,096 objects of 8 bytes take about 60
// messages of the default size.
const fillMessages = 100

// minFill and maxFill bound the time of these messages.
const minFill, maxFill = 3 * time.Second, 20 * time.Second

// filled reports whether a view is shown even if it is not complete, because its objects have had
// the time of fillMessages to arrive.
func (s *Subscription) filled(now time.Time) bool {
	fill := min(max(fillMessages/s.offer.RateHz, minFill.Seconds()), maxFill.Seconds())
	return !s.arrived.IsZero() && now.Sub(s.arrived).Seconds() >= fill
}

// holds reports whether the client still shows an earlier stream.
func (s *Subscription) holds(now time.Time) bool {
	switch {
	case s.settled || !s.shown:
		return false
	case !s.filled(now):
		return true
	}
	s.settled, s.partial = true, true
	s.stats.Partial++
	return false
}

// PartialNews returns the worlds whose views were shown before they were complete since the last
// call.
func (all *Subscriptions) PartialNews() (worlds []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if s.partial {
			s.partial = false
			worlds = append(worlds, s.name)
		}
	}
	return worlds
}

func (s *Subscription) tick(now time.Time) {
	if s.link == nil {
		return
	}
	if s.replyDue {
		s.reply(now)
	}
	s.all.acks.tick(&s.ack, now)
}

func (s *Subscription) counted() Stats {
	st := s.stats
	st.Name, st.Rate = s.name, s.clock.Rate()
	s.all.acks.addTo(&st, &s.ack)
	return st
}

// Outcome returns a channel that receives the outcome of the first offer: nil, or the reason why
// the client refused it.
func (s *Subscription) Outcome() <-chan error { return s.outcome }

// Err returns why the client refused the server's current offer, or nil.
func (s *Subscription) Err() (err error) {
	s.Locked(func() { err = s.refused })
	return err
}

// Stats returns the counts of the subscription.
func (s *Subscription) Stats() (st Stats) {
	s.Locked(func() { st = s.counted() })
	return st
}

// Tick returns the server's tick at now, the number of ticks per second and their measured rate, if
// the shortest one-way delay from the server is known. It reports false before the first message of
// a session.
func (s *Subscription) Tick(now time.Time, oneWay time.Duration) (tick, hz, rate float64, ok bool) {
	s.Locked(func() {
		if s.phase == subscribed {
			var at time.Duration
			at, ok = s.clock.Server(now.Sub(s.start), oneWay)
			hz, rate = s.offer.TickHz, s.clock.Rate()
			tick = at.Seconds() * hz
		}
	})
	return tick, hz, rate, ok
}

// TickRate is the measured rate of the ticks of a world.
type TickRate struct {
	World string
	Rate  float64
	Off   bool // it is not within 1 ± 0.05
}

// RateNews returns the worlds whose rate of ticks has left 1 ± 0.05, or returned, since the last
// call.
func (all *Subscriptions) RateNews() (news []TickRate) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if s.rateNews {
			s.rateNews = false
			news = append(news, TickRate{s.name, s.clock.Rate(), s.clock.Off})
		}
	}
	return news
}

// Locked calls f while no method of the receiver runs, except Deliver.
func (s *Subscription) Locked(f func()) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	f()
}

// Interval returns the time between two events at a rate in Hz, at most the longest Duration.
func Interval(hz float64) time.Duration { return duration(1 / hz) }

// TickTime returns the time of a tick since tick 0, at most the longest Duration.
func TickTime(tick uint64, tickHz float64) time.Duration { return duration(float64(tick) / tickHz) }

// TickAt returns the last tick up to MaxTick whose TickTime is not after t; 0 if that is negative.
func TickAt(t time.Duration, tickHz float64) uint64 {
	if t == math.MaxInt64 {
		return MaxTick
	}
	tick := uint64(min(max(t.Seconds()*tickHz, 0), MaxTick))
	for tick < MaxTick && TickTime(tick+1, tickHz) <= t {
		tick++
	}
	for tick > 0 && TickTime(tick, tickHz) > t {
		tick--
	}
	return tick
}

// duration converts seconds, 0 or more, to a Duration, at most the longest one.
func duration(seconds float64) time.Duration {
	if d := seconds * float64(time.Second); d < math.MaxInt64 {
		return time.Duration(d)
	}
	return math.MaxInt64
}
