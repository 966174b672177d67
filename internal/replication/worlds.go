package replication

import (
	"fmt"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/transport"
)

// Worlds contains the worlds that one server offers to a client. The receivers of the subscribed
// worlds hold decoded messages until Show. The methods are safe for concurrent use.
type Worlds struct {
	all  *Subscriptions
	link Link
	acks acks

	// Guarded by Subscriptions.mu:
	offers [MaxReplicas]*Offer // by number
	feeds  [MaxReplicas]*feed  // by the number of the offer
	ended  bool                // the session has ended
}

// Show makes the server the current one. From then on its messages are passed on to the views,
// after the due messages of the former server. Show calls methods of views, on the goroutine that
// receives.
func (w *Worlds) Show(now time.Time) {
	all := w.all
	all.locked(func() {
		if all.current != nil && all.current != w {
			all.current.end()
		}
		if !w.ended {
			all.current = w
		}
	})
	all.deliverGame() // messages of the former server
	var shown []View
	all.locked(func() {
		if all.current != w {
			return
		}
		for _, s := range all.list {
			if f := w.feed(s); f != nil {
				f.show()
				shown = append(shown, s.view)
			} else {
				w.acceptFor(s, now)
			}
		}
	})
	all.deliverGame()
	for _, v := range shown {
		v.Deliver()
	}
}

// End withdraws the offers of the server, because the session has ended.
func (w *Worlds) End() {
	all := w.all
	all.locked(w.end)
	all.deliverGame()
}

func (w *Worlds) end() {
	for n := range w.offers {
		w.withdraw(uint8(n))
	}
	w.ended = true
	w.all.open = slices.DeleteFunc(w.all.open, func(o *Worlds) bool { return o == w })
	if w.all.current == w {
		w.all.current = nil
	}
}

// feed returns the feed of a subscription, or nil.
func (w *Worlds) feed(s *Subscription) *feed {
	for _, f := range w.feeds {
		if f != nil && f.sub == s {
			return f
		}
	}
	return nil
}

// acceptFor accepts the offer of the subscription's world, if there is one.
func (w *Worlds) acceptFor(s *Subscription, now time.Time) {
	for _, o := range w.offers {
		if o != nil && o.Name == s.name {
			w.accept(s, o, now)
		}
	}
}

// accept accepts an offer. It ends the feed of an earlier offer of the world.
func (w *Worlds) accept(s *Subscription, o *Offer, now time.Time) {
	if f := w.feed(s); f != nil {
		w.drop(f) // a world has one number at a time
	}
	f := newFeed(w, s, o, now)
	w.feeds[o.Number] = f
	if f.isCurrent() {
		s.use(f)
	}
	f.accept(now)
}

// drop removes and ends a feed.
func (w *Worlds) drop(f *feed) {
	w.feeds[f.offer.Number] = nil
	f.end()
}

// withdraw removes an offer and ends its feed.
func (w *Worlds) withdraw(n uint8) {
	if f := w.feeds[n]; f != nil {
		w.drop(f)
	}
	w.offers[n] = nil
}

// leave informs the server that the client no longer receives a world.
func (w *Worlds) leave(s *Subscription, now time.Time) {
	f := w.feed(s)
	if f == nil {
		return
	}
	refused := f.phase == refusing
	w.drop(f)
	if !refused {
		f.phase = refusing
		f.reply(now)
	}
}

// Progress is the progress of receiving the worlds of another server.
type Progress uint8

const (
	Absent   Progress = iota // nothing has arrived of one of them
	Arriving                 // objects of the view of one of them are missing
	Complete
)

// Prepared returns the progress of the world that has arrived least. It considers the worlds that
// the client receives from the current server. A world that was refused, or that has not become
// complete in time, counts as complete.
func (w *Worlds) Prepared(now time.Time) Progress {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	least := Complete
	for _, s := range w.all.list {
		if s.feed.is(subscribed) {
			least = min(least, w.feed(s).progress(now))
		}
	}
	return least
}

// Reached reports whether a message of this tick or a later one was received of the world with this
// number. It also returns true if the world no longer exists.
func (w *Worlds) Reached(number uint8, tick uint64) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	f := w.feeds[number]
	return !f.is(subscribed) || f.newest >= tick
}

// HandleMessage handles a message of the reliable channel: an offer, a piece of an initial state, a
// game message, or a stop. The error of a message that no correct server sends wraps
// message.ErrMalformed.
func (w *Worlds) HandleMessage(t message.Type, b []byte, now time.Time) error {
	err := w.handleMessage(t, b, now)
	w.all.deliverGame()
	return err
}

func (w *Worlds) handleMessage(t message.Type, b []byte, now time.Time) error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.ended {
		return nil
	}
	if t == message.Offer {
		o, err := ParseOffer(b)
		if err != nil {
			return err
		}
		w.offer(&o, now)
		return nil
	}
	n, rest, err := parseNumber(b)
	if err != nil {
		return err
	}
	if t == message.Stop {
		w.withdraw(n)
		return nil
	}
	f := w.feeds[n]
	switch {
	case f == nil: // unsubscribed in the meantime
		return nil
	case t == message.GameMessage:
		err = f.game.parse(rest)
		f.game.Reach(f.newest)
		return err
	}
	return f.receivePiece(rest, now)
}

// offer handles an offer.
func (w *Worlds) offer(o *Offer, now time.Time) {
	w.withdraw(o.Number)
	w.offers[o.Number] = o
	for _, s := range w.all.list {
		if s.name == o.Name {
			w.accept(s, o, now)
		}
	}
}

// HandleDatagram handles a message of a world, or a fragment. It returns an error if the server has
// not offered the world.
func (w *Worlds) HandleDatagram(t message.Type, b []byte, at time.Time) error {
	v, err := w.handleDatagram(t, b, at)
	w.all.deliverGame()
	if v != nil {
		v.Deliver()
	}
	return err
}

// handleDatagram returns the view to which the decoded message is passed on, or nil.
func (w *Worlds) handleDatagram(t message.Type, b []byte, at time.Time) (View, error) {
	n := Number(b)
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	f := w.feeds[n]
	switch {
	case f.is(subscribed):
	case w.ended || w.offers[n] != nil: // sent before the client unsubscribed, or to an old link
		return nil, nil
	default:
		return nil, fmt.Errorf("%w: a message of a world that was not offered", message.ErrMalformed)
	}
	if err := f.handleDatagram(t, b[1:], at); err != nil || !f.isCurrent() {
		return nil, nil // the feed has counted the error
	}
	return f.sub.view, nil
}

// Tick sends replies and acks that are due, and wakes the link at the time of the next call.
func (w *Worlds) Tick(now time.Time) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	for _, f := range w.feeds {
		if f != nil {
			f.tick(now)
		}
	}
}

// Unoffered returns the names of worlds to which the client has subscribed, but that the server has
// not offered within [OfferWait]. That time begins with the subscription, or with the first call in
// a session. Unoffered returns each world once, until the server offers it. It also notifies the
// server, and wakes the link at the time of the next call.
func (w *Worlds) Unoffered(now time.Time) (worlds []string) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	for _, s := range w.all.list {
		if w.feed(s) != nil || s.told {
			continue
		}
		if s.unoffered.IsZero() {
			s.unoffered = now
		}
		if at := s.unoffered.Add(OfferWait); now.Before(at) {
			w.link.Wake(at)
			continue
		}
		s.told = true
		worlds = append(worlds, s.name)
		why := message.BindAnswer{Reason: message.ReasonUnknown, Theirs: s.name}
		if b, err := AppendExplained(nil, NoOffer, Refused, &why); err == nil {
			_ = w.link.SendReliable(b) // the program is notified even if this fails
		}
	}
	return worlds
}

// SendWithAcks sends a message of the client that does not belong to a world, at most
// transport.MaxPayload bytes. Due acks are piggybacked on it if there is room.
func (w *Worlds) SendWithAcks(msg []byte, now time.Time) error {
	q := &w.acks
	q.mu.Lock()
	defer q.mu.Unlock()
	room := transport.MaxPayload - len(msg)
	if room < message.MaxDownAck {
		return w.link.Send(msg)
	}
	q.carriers.Left(now, maxCarrierInterval)
	if len(q.due) == 0 {
		return w.link.Send(msg)
	}
	q.buf = append(q.take(q.buf[:0], room, now), msg...)
	return w.link.Send(q.buf)
}
