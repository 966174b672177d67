package replication

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
)

// Subscriptions are a client's subscriptions. The methods are safe for concurrent use. The zero
// value is ready.
type Subscriptions struct {
	// Report, if set, is called when the client refuses an offer because of an error, or accepts
	// one although the ends differ, the server asking; with a lock held.
	Report func(world string, d message.Differences, err error)

	mu      sync.Mutex
	list    []*Subscription
	current side
	standby *side   // of another server, nil if there is none
	past    []Stats // of those that ended
	acks    acks
}

// side is what a server offers.
type side struct {
	link     Link                      // of the standby; nil for the current side
	offers   [MaxStreams]*linkOffer    // by number
	byNumber [MaxStreams]*Subscription // by the number of the offer
}

type linkOffer struct {
	link  Link
	offer Offer
}

var errSubscribed = errors.New("it is subscribed already: close the other view first")

// Subscribe subscribes to a world, at once if the server has offered it, or when it does. Acks are
// sent alone at most ackHz times a second.
func (all *Subscriptions) Subscribe(world string, r Receiver, ackHz float64, now time.Time) (*Subscription, error) {
	s := &Subscription{all: all, name: world, receiver: r, ackHz: ackHz, outcome: make(chan error, 1)}
	s.unoffered = now
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.list {
		if o.name == world {
			return nil, errSubscribed
		}
	}
	for _, o := range all.current.offers {
		if o != nil && o.offer.Name == world {
			all.current.accept(s, o, now)
		}
	}
	if all.standby != nil {
		for _, o := range all.standby.offers {
			if o != nil && o.offer.Name == world {
				all.prepare(s, o, now)
			}
		}
	}
	all.list = append(all.list, s)
	return s, nil
}

// accept passes an offer to its subscription.
func (d *side) accept(s *Subscription, o *linkOffer, now time.Time) {
	if s.link != nil {
		d.byNumber[s.offer.Number] = nil // a world has one number at a time
	}
	d.byNumber[o.offer.Number] = s
	s.accept(o.link, o.offer, now)
}

// Unsubscribe ends a subscription and tells the server.
func (all *Subscriptions) Unsubscribe(s *Subscription, now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	i := slices.Index(all.list, s)
	if i < 0 {
		return
	}
	all.list = slices.Delete(all.list, i, i+1)
	st := s.counted()
	all.past = AddStats(all.past, &st)
	if s.spare != nil {
		all.standby.end(s.spare, now)
		s.spare = nil
	}
	all.current.end(s, now)
}

// end tells the server that the client does not receive a world any more.
func (d *side) end(s *Subscription, now time.Time) {
	if s.link == nil {
		return
	}
	d.byNumber[s.offer.Number] = nil
	if s.phase != refusing {
		s.phase = refusing
		s.reply(now)
	}
	s.link = nil
	s.all.acks.restart(&s.ack, nil, 0)
}

// Received returns how many bytes of the requested initial state were received, and its size. The
// size is 0 if the subscription does not wait for an initial state.
func (all *Subscriptions) Received(s *Subscription) (n, size int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.phase != requesting {
		return 0, 0
	}
	return len(s.initial), s.offer.Initial
}

// Offered returns the names of the worlds that the server offers.
func (all *Subscriptions) Offered() (names []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.current.offers {
		if o != nil {
			names = append(names, o.offer.Name)
		}
	}
	return names
}

// Reset withdraws what the server offered over a link that was lost.
func (all *Subscriptions) Reset(link Link) {
	all.locked(func() {
		if all.standby != nil && all.standby.link == link {
			all.abandon()
		}
		for n, o := range all.current.offers {
			if o != nil && o.link == link {
				all.current.withdraw(uint8(n))
			}
		}
	})
	all.deliverGame()
}

// locked calls f with the lock held, also if f panics: decoders run in it.
func (all *Subscriptions) locked(f func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f()
}

// deliverGame passes on the messages of the game that are due. The caller does not hold the lock.
func (all *Subscriptions) deliverGame() {
	for {
		r, tick, message := all.takeGame()
		if r == nil {
			return
		}
		r.Game(tick, message)
	}
}

// takeGame returns the next message of the game that is due and its receiver, or nil.
func (all *Subscriptions) takeGame() (r Receiver, tick uint64, message []byte) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if tick, message, ok := s.game.Take(); ok {
			return s.receiver, tick, message
		}
	}
	return nil, 0, nil
}

func (d *side) withdraw(n uint8) {
	if s := d.byNumber[n]; s != nil {
		s.withdraw()
	}
	d.byNumber[n], d.offers[n] = nil, nil
}

// side returns what the server of a link offers. The caller holds all.mu.
func (all *Subscriptions) side(link Link) *side {
	if all.standby != nil && all.standby.link == link {
		return all.standby
	}
	return &all.current
}

// HandleMessage handles a message of the reliable channel: an offer, a piece of an initial state, a
// message of the game, or a stop. It returns an error that wraps message.ErrMalformed if no server
// sends the message.
func (all *Subscriptions) HandleMessage(link Link, t message.Type, b []byte, now time.Time) error {
	err := all.handleMessage(link, t, b, now)
	all.deliverGame()
	return err
}

func (all *Subscriptions) handleMessage(link Link, t message.Type, b []byte, now time.Time) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if t == message.Offer {
		return all.handleOffer(link, b, now)
	}
	n, rest, err := parseNumber(b)
	if err != nil {
		return err
	}
	d := all.side(link)
	if t == message.Stop {
		d.withdraw(n)
		return nil
	}
	s := d.byNumber[n]
	switch {
	case s == nil: // unsubscribed in the meantime
		return nil
	case t == message.GameMessage:
		err = s.game.parse(rest)
		s.game.Reach(s.newest)
		return err
	}
	return s.receivePiece(rest, now)
}

func (all *Subscriptions) handleOffer(link Link, b []byte, now time.Time) error {
	o, err := ParseOffer(b)
	if err != nil {
		return err
	}
	d := all.side(link)
	d.withdraw(o.Number)
	d.offers[o.Number] = &linkOffer{link: link, offer: o}
	for _, s := range all.list {
		switch {
		case s.name != o.Name:
		case d == all.standby:
			all.prepare(s, d.offers[o.Number], now)
		default:
			d.accept(s, d.offers[o.Number], now)
		}
	}
	return nil
}

// HandleDatagram handles a message of a world, or a fragment. It returns an error if the server has
// not offered the world.
func (all *Subscriptions) HandleDatagram(link Link, t message.Type, b []byte, at time.Time) error {
	decoded, err := all.handleDatagram(link, t, b, at)
	all.deliverGame()
	if decoded != nil {
		decoded.Deliver()
	}
	return err
}

// handleDatagram returns the receiver that has decoded a message, unless it is a standby's, or nil.
func (all *Subscriptions) handleDatagram(link Link, t message.Type, b []byte, at time.Time) (decoded Receiver, err error) {
	n := Number(b)
	all.mu.Lock()
	defer all.mu.Unlock()
	d := all.side(link)
	s := d.byNumber[n]
	if s == nil || s.phase != subscribed {
		if d.offers[n] != nil {
			return nil, nil // sent before the client unsubscribed
		}
		return nil, fmt.Errorf("%w: a message of a world that was not offered", message.ErrMalformed)
	}
	if s.stats.Datagrams++; s.arrived.IsZero() {
		s.arrived = at
	}
	if t == message.Down {
		err = s.receive(b[1:], at)
	} else {
		s.stats.Fragments++
		err = s.receiveFragment(b[1:], at)
	}
	if err != nil || d == all.standby {
		return nil, nil // the subscription has counted the error
	}
	return s.receiver, nil
}

// Tick sends replies and acks that are due. It wakes the link at the time of the next call.
func (all *Subscriptions) Tick(now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		s.tick(now)
		if s.spare != nil {
			s.spare.tick(now)
		}
	}
}

// Unoffered returns the names of the worlds to which the client has subscribed, and that the server
// has not offered within [OfferWait] of the subscription, or of the first call in a session: each
// once, until it is offered. It tells the server, and wakes the link at the time of the next call.
func (all *Subscriptions) Unoffered(link Link, now time.Time) (worlds []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if s.link != nil || s.told {
			continue
		}
		if s.unoffered.IsZero() {
			s.unoffered = now
		}
		if at := s.unoffered.Add(OfferWait); now.Before(at) {
			link.Wake(at)
			continue
		}
		s.told = true
		worlds = append(worlds, s.name)
		why := message.BindAnswer{Reason: message.ReasonUnknown, Theirs: s.name}
		if b, err := AppendExplained(nil, NoOffer, Refused, &why); err == nil {
			_ = link.SendReliable(b) // what the program learns is not less without it
		}
	}
	return worlds
}

// Stats returns the counts of each world, past subscriptions included.
func (all *Subscriptions) Stats() []Stats {
	all.mu.Lock()
	defer all.mu.Unlock()
	out := slices.Clone(all.past)
	for _, s := range all.list {
		st := s.counted()
		out = AddStats(out, &st)
	}
	return out
}
