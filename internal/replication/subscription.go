package replication

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
)

// Link is a client's session with a server.
type Link interface {
	Send(b []byte) error
	// SendReliable returns transport.ErrBacklog if too much is unacknowledged.
	SendReliable(b []byte) error
	// Wake requests a call of [Subscriptions.Tick] at that time.
	Wake(at time.Time)
	RTT() time.Duration
	// Overhead returns the size of all headers of a datagram, down to IP, in bytes.
	Overhead() uint64
}

// View passes a world on to the program, whichever server sends it.
type View interface {
	// NewReceiver returns a receiver for an offer of the world. The methods of receivers are called
	// one at a time, with the lock of Subscriptions held.
	NewReceiver() Receiver
	// Deliver passes on the message that the shown receiver decoded last, and before it the
	// messages that the receiver held until Show. It is called without the lock, on the goroutine
	// that receives.
	Deliver()
	// Game delivers a game message that takes effect at a tick. It is called before Deliver passes
	// on that tick or a later one, in the same way as Deliver.
	Game(tick uint64, message []byte)
}

// Receiver decodes the stream of a world from one server, from the offer to the end of the stream.
type Receiver interface {
	// Check returns the fields that only one end has; the server is the asking end. It returns an
	// error if the objects of the offer cannot be converted.
	Check(o *Offer) (message.Differences, error)
	// Show makes the receiver the shown one of the view, because its server is the current one. It
	// is called after Check, and before or after Begin.
	Show()
	// Knows reports whether the client has the initial state with this hash.
	Knows(hash uint64) bool
	// Begin prepares the first message of a stream. initial is the encoded initial state, or nil if
	// it is known.
	Begin(o *Offer, initial []byte) error
	// Receive decodes a message that arrived at a time. It returns the message's tick, and whether
	// the message shows all objects of the client's view. If held is set, an incomplete message is
	// not passed on: the client continues to show an earlier stream. Before Show, Receive holds the
	// decoded messages. It counts errors by reason in st. processed is valid during the call.
	Receive(message []byte, processed Processed, at time.Time, held bool, st *Stats) (tick uint64, complete bool, err error)
	// End is called when the stream has ended. The objects that it has shown remain visible.
	End()
	// AppendAck appends an ack of all messages received.
	AppendAck(dst []byte) []byte
}

// Subscription is a client's subscription to a world, whichever server sends it. Its fields are
// guarded by the mutex of its Subscriptions.
type Subscription struct {
	all     *Subscriptions
	name    string // name of the world
	view    View
	ackHz   float64    // maximum rate of datagrams that contain only acks
	outcome chan error // receives the outcome of the first offer

	feed *feed // newest feed of a current server, or nil
	// unoffered is the time since which the client waits for an offer, or zero: see
	// Worlds.Unoffered.
	unoffered time.Time
	told      bool         // Unoffered has returned the world since then
	shown     bool         // a message was passed on
	game      GameMessages // due game messages of feeds that have ended
	stats     Stats        // counts of feeds that have ended
}

// use makes f, a feed of the current server, the feed of the subscription.
func (s *Subscription) use(f *feed) {
	s.feed, s.unoffered, s.told = f, time.Time{}, false
}

// settle reports the outcome of the first offer. Further calls have no effect.
func (s *Subscription) settle(err error) {
	select {
	case s.outcome <- err:
	default: // the outcome is already reported
	}
}

func (s *Subscription) counted() Stats {
	st := s.stats
	if f := s.feed; f != nil {
		if !f.over {
			now := f.counted()
			st.Add(&now)
		}
		st.Rate = f.clock.Rate()
	}
	st.Name = s.name
	return st
}

// Outcome returns a channel that receives the outcome of the first offer: nil, or the reason why
// the client refused it.
func (s *Subscription) Outcome() <-chan error { return s.outcome }

// Err returns why the client refused the server's current offer, or nil.
func (s *Subscription) Err() (err error) {
	s.Locked(func() {
		if s.feed != nil {
			err = s.feed.refused
		}
	})
	return err
}

// Stats returns the counts of the subscription.
func (s *Subscription) Stats() (st Stats) {
	s.Locked(func() { st = s.counted() })
	return st
}

// Tick returns the server's tick at now, the number of ticks per second, and their measured rate
// relative to it. oneWay is the shortest one-way delay from the server. Tick returns false before
// the first message of a session.
func (s *Subscription) Tick(now time.Time, oneWay time.Duration) (tick, hz, rate float64, ok bool) {
	s.Locked(func() {
		if f := s.feed; f.is(subscribed) {
			var at time.Duration
			at, ok = f.clock.Server(now.Sub(f.start), oneWay)
			hz, rate = f.offer.TickHz, f.clock.Rate()
			tick = at.Seconds() * hz
		}
	})
	return tick, hz, rate, ok
}

// Locked calls f with the lock held, so that no method of a receiver runs at the same time.
func (s *Subscription) Locked(f func()) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	f()
}

// Interval returns the time between two events at a rate in Hz, at most the longest Duration.
func Interval(hz float64) time.Duration { return duration(1 / hz) }

// TickTime returns the time of a tick since tick 0, at most the longest Duration.
func TickTime(tick uint64, tickHz float64) time.Duration { return duration(float64(tick) / tickHz) }

// TickAt returns the last tick up to MaxTick whose TickTime is not after t. It returns 0 if t is
// negative.
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
