package client

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/transport"
)

// link holds the state of the client at one server: the transport connection, RPCs, worlds,
// streams, and the measurements of the path. After it has opened, it is Conn.next while the switch
// to the server is prepared, then Conn.current, and after a switch to another server an element of
// Conn.old.
//
// Methods that implement [endpoint.Handler] hold Conn.receiving and may read the fields that it
// guards.
type link struct {
	*Conn
	own    *endpoint.Conn // nil until Opened
	addr   string         // address as dialed
	tag    int            // size of the AEAD tags in bytes
	opened time.Time

	// Guarded by Conn.mu:
	senders    []*sender // by RPC number; elements of a slice that was read never change
	requests   requests
	streamBits uint64 // bits of streams until the last window
	loss       recentLoss
	leaving    bool  // the server is about to shut down
	lost       error // why the session ended; nil while it continues
	cause      error // why the client ended the session itself

	worlds  *replication.Worlds // worlds that the server sends
	streams *streams.Mux
	out     outbox

	// Guarded by Conn.receiving:
	used       bool // the client has switched to the server
	silence    silence
	nextFlush  time.Time
	calls      []*incoming   // RPCs that the server has bound, by number
	callsAcked time.Duration // time from Conn.start to the last acks of calls
	offer      offered       // handover that the server has begun
	held       [][]byte      // reliable messages that arrived before the switch
	heldSize   int
	parting    parting // state of an old link

	onAnswer func() // called when the server answers during the handshake; may be nil
}

func newLink(c *Conn, addr string) *link {
	l := &link{Conn: c, addr: addr}
	l.out.bundle = message.NewBundler(transport.MaxPayload)
	return l
}

// Answered is called when the server answers during the handshake.
func (l *link) Answered() {
	if l.onAnswer != nil {
		l.onAnswer()
	}
}

// Opened implements endpoint.Handler.
func (l *link) Opened(own *endpoint.Conn) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	l.own, l.tag, l.opened = own, own.Suite().Overhead(), time.Now()
	l.worlds = l.subscriptions.Open(own)
	l.out.worlds = l.worlds
	l.streams = streams.New((*streamOwner)(l))
	rate := l.cfg.Transport.StreamRate
	if l.cfg.Bandwidth != 0 {
		rate = min(rate, l.cfg.Bandwidth/8/2)
	}
	own.SetBulk(rate, l.streams.Next, func(b []byte, at time.Time) {
		l.receiving.Lock()
		defer l.receiving.Unlock()
		if err := l.streams.Deliver(at, b); err != nil {
			l.count(&l.stats.Malformed, 1)
			l.violated(err)
		}
	})
}

// Closed ends the server's streams, worlds and handovers. If the link is the current one, the
// client switches to the next link or reconnects.
func (l *link) Closed(_ *endpoint.Conn, err error) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	defer l.report()
	l.endHandover(l, err)
	err = l.ending(err)
	l.guard(l.worlds.End)
	l.streams.End(err)
	l.end(l, err)
}

// ending returns the reason for the end of the session, given the transport's reason err.
func (l *link) ending(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		err = l.cause
	}
	if l.used && l.current != l {
		err = fmt.Errorf("%w: %w", transport.ErrHandedOver, err)
	}
	return err
}

// Panicked ends the session after a panic of a decoder of the server's data, or of a callback of
// the game. The transport calls it.
func (l *link) Panicked(_ *endpoint.Conn, v any, stack []byte) {
	_ = l.panicked(l, v, stack) // the error becomes the reason of the end
}

// guard calls f, a callback of the game, and ends the session if it panics. The caller holds no
// lock.
func (l *link) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			_ = l.panicked(l, v, debug.Stack())
		}
	}()
	f()
}

// Tick repeats requests, sends held frames and messages, and schedules the next Tick.
func (l *link) Tick(now time.Time) {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	switch {
	case !l.used:
		l.tickSenders(now)
		l.worlds.Tick(now)
	case l.isCurrent():
		l.deliverHeld(now)
		l.tick(now)
	default:
		l.part(l, now)
	}
	l.ackCalls(now)
	l.trySwitch(now)
}

// tick does the work of Tick for the current link only.
func (l *link) tick(now time.Time) {
	quality, measured := l.regulate(now)
	for _, world := range l.worlds.Unoffered(now) {
		l.mismatches.add(&MismatchError{World: world, notOffered: true, waited: replication.OfferWait, offered: l.subscriptions.Offered()})
	}
	l.noteMismatches()
	if measured {
		l.noteTickRates()
		l.notePartialViews()
	}
	l.report()
	if measured && l.cfg.OnQuality != nil {
		l.cfg.OnQuality(quality)
	}
	l.tickSenders(now)
	l.flushDue(now)
	l.worlds.Tick(now)
	l.continueLeaving(now)
	l.silence.listen(l, now)
}

// addSender adds a sender of an RPC. It replaces an earlier sender with the same number. The caller
// holds Conn.mu.
func (l *link) addSender(b *binding) *sender {
	all := slices.Clone(l.senders)
	if b.number == len(all) {
		all = append(all, nil)
	}
	s := newSender(b, l)
	all[b.number] = s
	l.senders = all
	return s
}

func (l *link) isCurrent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current == l
}

func (l *link) tickSenders(now time.Time) {
	for _, s := range l.allSenders() {
		s.mu.Lock()
		s.tick(now)
		s.mu.Unlock()
	}
}

func (l *link) allSenders() []*sender {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.senders
}

// sender returns the sender of an RPC number, or nil.
func (l *link) sender(n int) *sender {
	if all := l.allSenders(); n < len(all) {
		return all[n]
	}
	return nil
}

// leave ends the use of all senders. It reports whether none has a payload left to send.
func (l *link) leave() bool {
	left := true
	for _, s := range l.allSenders() {
		s.mu.Lock()
		left = s.leave() && left
		s.mu.Unlock()
	}
	return left
}

// flushDue sends the collected payloads once per Config.Tick.
func (l *link) flushDue(now time.Time) {
	every := l.cfg.Tick
	if every == 0 {
		return
	}
	if !now.Before(l.nextFlush) {
		l.nextFlush = l.nextFlush.Add(every)
		if !now.Before(l.nextFlush) {
			l.nextFlush = now.Add(every)
		}
		_ = l.Flush() // the next Send returns the error
	}
	l.own.Wake(l.nextFlush)
}

// regulate measures the bit rates and the quality of the path once per rateWindow, and applies the
// limits of the configuration and of the path. due reports whether the window was over.
func (l *link) regulate(now time.Time) (q Quality, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != l {
		return q, false
	}
	if due = now.Sub(l.meter.start) >= rateWindow; due {
		l.noteSilence(now)
		redundancy := 0
		for _, s := range l.senders {
			redundancy = max(redundancy, s.inUse())
		}
		own := l.own.Stats()
		q = Quality{RTT: own.RTT, PathSize: own.MaxDatagram, Rate: own.Rate, Queue: own.Queue, Loss: l.loss.step(own.Lost, own.DatagramsReceived-own.Dropped.Total())}
		t := endpoint.Sum(l.stats.Transport, own)
		elapsed, sent := l.meter.step(now, trafficOf(&t, l.own.Overhead()))
		l.budget.path = own.Rate
		streamed := 8 * own.StreamBytes
		if l.budget.limit() == l.budget.path { // streams yield to calls
			sent.without(streamed - l.streamBits)
		}
		l.streamBits = streamed
		if l.budget.step(elapsed, sent, redundancy) {
			for _, b := range l.bindings {
				b.setLimits(l.budget.limits())
			}
		}
	}
	l.own.Wake(l.meter.start.Add(rateWindow))
	return q, due
}

// noteSilence records whether the server answers. The caller holds Conn.mu.
func (l *link) noteSilence(now time.Time) {
	switch silent := l.own.Unanswered() || l.own.Silence(now) >= maxSilence && l.move != nil; {
	case silent && l.state == Connected:
		l.note(Event{State: Interrupted})
	case !silent && l.state == Interrupted:
		l.note(Event{State: Connected})
	}
}

// shutDown handles the server's announcement that it is about to shut down, or on an old link that
// it has nothing left to send. The client sends the held frames and nothing new. It waits for the
// acks of all reliable messages, the answers to its requests and the end of its streams. Then it
// ends the session, and reconnects as after a loss.
func (l *link) shutDown() {
	l.mu.Lock()
	announced := l.leaving
	l.leaving = true
	current := l.current == l
	l.mu.Unlock()
	if current && !announced {
		l.cfg.Logger.Info("the server shuts down", "server", l.addr)
	}
	l.own.Wake(time.Now())
}

// continueLeaving ends the session after shutDown once nothing is left to wait for.
func (l *link) continueLeaving(now time.Time) {
	l.mu.Lock()
	leaving := l.leaving && l.current == l
	l.mu.Unlock()
	if !leaving {
		return
	}
	left := l.leave()
	_ = l.out.flush() // nothing can be done about an error
	if !left || l.busy() {
		l.own.Wake(now.Add(endpoint.DefaultTick))
		return
	}
	l.own.CloseWith(transport.ErrShutdown, "")
}

// busy reports whether messages, requests or streams are in flight for which the end of the session
// must wait.
func (l *link) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests) > 0 || l.own.Unacked() > 0 || l.streams.Busy()
}

// violated ends the session because of a message that no server sends.
func (l *link) violated(err error) {
	if !errors.Is(err, transport.ErrProtocol) {
		err = fmt.Errorf("%w: %w", transport.ErrProtocol, err)
	}
	l.mu.Lock()
	if l.cause == nil {
		l.cause = err
	}
	l.mu.Unlock()
	l.own.CloseWith(transport.ErrProtocol, "malformed reliable message") // the client reconnects
}
