package replication

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/serverclock"
	"github.com/uplink-rpc/uplink/transport"
)

// feed is the stream of a world from one server, from the offer on. The client has subscribed to
// the world. The mutex of Subscriptions guards the fields.
type feed struct {
	*Worlds
	sub      *Subscription
	receiver Receiver

	offer      Offer
	phase      subscriptionPhase
	differ     message.Differences // differences between the offer and the client's fields
	refused    error               // reason why the client refuses the offer, or nil
	over       bool                // the server has withdrawn the offer, or the client has unsubscribed
	initial    []byte              // received part of the initial state
	replyDue   bool                // the reply must be sent again, because of a full backlog
	assembler  *fragment.Assembler
	incomplete uint64 // number of incomplete messages that stats contains
	newest     uint64 // newest tick that was passed on
	clock      serverclock.Monitor
	start      time.Time // time 0 of the clock
	rateNews   bool      // RateNews has not reported the last change of clock.Off
	arrived    time.Time // arrival of the first datagram, or zero
	settled    bool      // messages are delivered at once, and no longer held
	// partial is true if the view was shown before it was complete and PartialNews has not reported
	// it.
	partial bool
	game    GameMessages
	buf     []byte
	ack     ack
	stats   Stats
}

type subscriptionPhase uint8

const (
	unoffered  subscriptionPhase = iota
	refusing                     // the client refuses the offer
	requesting                   // waits for the initial state
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

// is reports whether f is not nil and is in phase p.
func (f *feed) is(p subscriptionPhase) bool { return f != nil && f.phase == p }

// isCurrent reports whether the feed's server is the current one.
func (f *feed) isCurrent() bool { return f.all.current == f.Worlds }

// accept checks the offer and replies to it. It requests the initial state if the client needs it.
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
		f.link.Wake(f.start) // the client handles the report in its next tick
	}
	if f.isCurrent() {
		f.sub.settle(err)
	}
}

// show makes f the feed of its subscription, after its server has become the current one.
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

// end ends the feed, because the session has ended, the server has withdrawn the offer, or the
// client has unsubscribed.
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
	if f.replyDue = errors.Is(err, transport.ErrBacklog); f.replyDue {
		f.link.Wake(now.Add(replyInterval))
	}
}

// appendReply returns the reply to the offer. The reply explains a refusal, and describes
// differences between the ends.
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

// errPiece is returned for an unexpected piece, which may belong to an earlier request.
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

// receiveFragment adds a fragment, and decodes the message if the fragment completes it.
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
	// Even after an error: an ack also reports missing messages.
	f.buf = f.receiver.AppendAck(append(f.buf[:0], byte(message.DownAck), f.offer.Number))
	f.acks.put(&f.ack, f.buf, len(msg), at)
	return err
}

var errHeld = errors.New("client: the view is not complete yet")

// fillMessages is the approximate number of messages in which all objects of a view arrive. 4,096
// objects of 8 bytes take about 60 messages of the default size.
const fillMessages = 100

// minFill and maxFill limit the time that fillMessages messages are assumed to take.
const minFill, maxFill = 3 * time.Second, 20 * time.Second

// filled reports whether the objects of the view have had enough time to arrive since the first
// datagram. Then the view is shown even if it is not complete.
func (f *feed) filled(now time.Time) bool {
	fill := min(max(fillMessages/f.offer.RateHz, minFill.Seconds()), maxFill.Seconds())
	return !f.arrived.IsZero() && now.Sub(f.arrived).Seconds() >= fill
}

// holds reports whether messages are held, because the client still shows an earlier feed.
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

// handleDatagram handles a message or a fragment.
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

// progress returns the progress of the view from a server that is not the current one.
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

// tick sends the reply and the ack if they are due.
func (f *feed) tick(now time.Time) {
	if f.replyDue {
		f.reply(now)
	}
	f.acks.tick(&f.ack, now)
}

func (f *feed) counted() Stats {
	st := f.stats
	f.acks.addTo(&st, &f.ack)
	return st
}
