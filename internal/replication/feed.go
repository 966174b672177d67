package replication

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/serverclock"
	"github.com/uplink-rpc/uplink/session"
)

// feed is what one server sends of a world to which a client has subscribed, from an offer on. Its
// fields are guarded by the mutex of Subscriptions.
type feed struct {
	*Worlds
	sub      *Subscription
	receiver Receiver

	offer      Offer
	phase      subscriptionPhase
	differ     message.Differences // from the offer
	refused    error
	over       bool   // the server has withdrawn the offer, or the client has unsubscribed
	initial    []byte // what was received of the initial state
	replyDue   bool   // there was no room for the reply
	assembler  *fragment.Assembler
	incomplete uint64 // messages that the assembler has discarded, as counted
	newest     uint64 // tick that was passed on
	clock      serverclock.Monitor
	start      time.Time // of the clock's times
	rateNews   bool      // clock.Off is not reported
	arrived    time.Time // when the first datagram arrived, or zero
	settled    bool      // a message was passed on
	partial    bool      // PartialNews has not reported that the view was shown before it was complete
	game       GameMessages
	buf        []byte
	ack        ack
	stats      session.ReplicationStats
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

func newFeed(w *Worlds, s *Subscription, o *Offer, now time.Time) *feed {
	f := &feed{
		Worlds: w, sub: s, receiver: s.view.NewReceiver(), offer: *o, start: now,
		clock: serverclock.Monitor{Clock: serverclock.New(serverclock.Remote(Interval(o.RateHz)))},
	}
	f.ack.interval = Interval(min(s.ackHz, o.RateHz))
	return f
}

// is reports whether there is a feed in a phase.
func (f *feed) is(p subscriptionPhase) bool { return f != nil && f.phase == p }

// isCurrent reports whether the feed is that of the current server.
func (f *feed) isCurrent() bool { return f.all.current == f.Worlds }

// accept replies to the offer.
func (f *feed) accept(now time.Time) {
	var err error
	f.differ, err = f.receiver.Check(&f.offer)
	if err == nil && f.isCurrent() {
		f.receiver.Show()
	}
	switch {
	case err != nil:
		f.begun(err)
	case f.offer.Initial == 0 || f.receiver.Knows(f.offer.Hash):
		f.begun(f.receiver.Begin(&f.offer, nil))
	default:
		f.stats.Initial += uint64(f.offer.Initial)
		f.phase = requesting
	}
	f.reply(now)
}

// begun starts the stream, or refuses the offer because of an error, and reports the outcome.
func (f *feed) begun(err error) {
	f.phase = subscribed
	if err != nil {
		f.phase, f.refused = refusing, err
	}
	if f.all.Report != nil && (err != nil || f.differ.Any()) {
		f.all.Report(f.sub.name, f.differ, err)
		f.link.Wake(f.start) // Tick passes it on
	}
	if f.isCurrent() {
		f.sub.settle(err)
	}
}

// show makes the feed that of the current server.
func (f *feed) show() {
	s := f.sub
	s.use(f)
	s.shown = s.shown || f.settled
	if f.phase == subscribed || f.phase == refusing {
		s.settle(f.refused)
	}
	if f.refused == nil {
		f.receiver.Show()
	}
}

// end ends the feed: the session has ended, the server has withdrawn the offer, or the client has
// unsubscribed.
func (f *feed) end() {
	f.over = true
	if f.phase == subscribed || f.phase == requesting {
		f.phase = unoffered
	}
	f.acks.forget(&f.ack)
	f.receiver.End()
	if !f.isCurrent() {
		return
	}
	if f.assembler != nil {
		f.assembler.Reset()
		f.countIncomplete()
	}
	st := f.counted()
	f.sub.stats.Add(&st)
	f.game.Reach(MaxTick)
	f.sub.game.due = append(f.sub.game.due, f.game.due...)
	f.game = GameMessages{}
}

func (f *feed) reply(now time.Time) {
	err := f.link.SendReliable(f.appendReply())
	if f.replyDue = errors.Is(err, session.ErrBacklog); f.replyDue {
		f.link.Wake(now.Add(replyInterval))
	}
}

// appendReply returns the reply to the offer. It explains why the client refuses it, and how the
// ends differ.
func (f *feed) appendReply() []byte {
	var why *message.BindAnswer
	if f.phase == subscribed || f.refused != nil {
		why = explain(f.differ, f.refused)
	}
	if why != nil {
		if reply, err := AppendExplained(nil, f.offer.Number, f.phase.answer(), why); err == nil {
			return reply
		}
	}
	return AppendReply(nil, f.offer.Number, f.phase.answer())
}

// errPiece reports a piece that cannot be used, perhaps of a state that was requested earlier.
var errPiece = errors.New("replication: unexpected piece of an initial state")

func (f *feed) receivePiece(b []byte, now time.Time) error {
	if f.phase != requesting {
		return fmt.Errorf("%w: it was not requested", errPiece)
	}
	if len(b) == 0 || len(f.initial)+len(b) > f.offer.Initial {
		return fmt.Errorf("%w: %d bytes of %d, after %d", errPiece, len(b), f.offer.Initial, len(f.initial))
	}
	f.initial = append(f.initial, b...)
	f.stats.InitialBytes += uint64(len(b))
	if len(f.initial) < f.offer.Initial {
		return nil
	}
	err := f.receiver.Begin(&f.offer, f.initial)
	if f.initial = nil; err != nil {
		err = fmt.Errorf("replication: world %s: %w", f.sub.name, err)
	}
	f.begun(err)
	f.reply(now)
	return err
}

// receiveFragment adds a fragment, and decodes its message if that is complete.
func (f *feed) receiveFragment(b []byte, at time.Time) error {
	if f.assembler == nil {
		f.assembler = fragment.NewAssembler(MaxFragment, fragment.MaxCount)
	}
	m, err := f.assembler.Add(b)
	f.countIncomplete()
	switch {
	case errors.Is(err, fragment.ErrMalformed):
		f.stats.BadFragments++
		return err
	case err != nil:
		f.stats.Late++
		return err
	case m == nil:
		return errIncomplete
	}
	return f.receive(m, at)
}

var errIncomplete = errors.New("replication: incomplete message")

func (f *feed) countIncomplete() {
	n := f.assembler.Incomplete()
	f.stats.Incomplete += n - f.incomplete
	f.incomplete = n
}

func (f *feed) receive(msg []byte, at time.Time) error {
	f.stats.Bytes += uint64(len(msg))
	var processed Processed
	var tick uint64
	var err error
	if f.offer.Processed {
		processed, msg, err = parseProcessed(msg)
	}
	held, complete := f.holds(at), false
	if err == nil {
		tick, complete, err = f.receiver.Receive(msg, processed, at, held, &f.stats)
	} else {
		CountError(&f.stats, err)
	}
	if err == nil {
		f.stats.Messages++
		if f.clock.Watch(at.Sub(f.start), TickTime(tick, f.offer.TickHz)) {
			f.rateNews = !f.rateNews
		}
		if held && !complete {
			err = errHeld
		} else {
			f.newest = max(f.newest, tick)
			f.settled = true
			f.sub.shown = f.sub.shown || f.isCurrent()
			f.game.Reach(f.newest)
		}
	}
	// Even after an error: an ack also reports what is missing.
	f.buf = f.receiver.AppendAck(append(f.buf[:0], byte(message.DownAck), f.offer.Number))
	f.acks.put(&f.ack, f.buf, len(msg), at)
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
func (f *feed) filled(now time.Time) bool {
	fill := min(max(fillMessages/f.offer.RateHz, minFill.Seconds()), maxFill.Seconds())
	return !f.arrived.IsZero() && now.Sub(f.arrived).Seconds() >= fill
}

// holds reports whether the client still shows an earlier feed.
func (f *feed) holds(now time.Time) bool {
	switch {
	case f.settled || f.isCurrent() && !f.sub.shown:
		return false
	case !f.filled(now):
		return true
	}
	f.settled, f.partial = true, true
	f.stats.Partial++
	return false
}

// handleDatagram adds a message or a fragment.
func (f *feed) handleDatagram(t message.Type, b []byte, at time.Time) error {
	if f.stats.Datagrams++; f.arrived.IsZero() {
		f.arrived = at
	}
	if t == message.Down {
		return f.receive(b, at)
	}
	f.stats.Fragments++
	return f.receiveFragment(b, at)
}

// progress returns how far the view of another server has arrived.
func (f *feed) progress(now time.Time) Progress {
	switch {
	case f == nil:
		return Absent
	case f.settled || f.phase == refusing || f.filled(now):
		return Complete
	case f.phase == requesting || !f.arrived.IsZero():
		return Arriving
	default:
		return Absent
	}
}

// tick sends a reply and an ack that are due.
func (f *feed) tick(now time.Time) {
	if f.replyDue {
		f.reply(now)
	}
	f.acks.tick(&f.ack, now)
}

func (f *feed) counted() session.ReplicationStats {
	st := f.stats
	f.acks.addTo(&st, &f.ack)
	return st
}
