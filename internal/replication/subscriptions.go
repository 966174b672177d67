package replication

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
)

// Subscriptions are a client's subscriptions. The methods are safe for concurrent use. The zero
// value is ready.
type Subscriptions struct {
	// Refused, if set, is called when the client refuses an offer, with a lock held.
	Refused func(world string, err error)

	mu       sync.Mutex
	list     []*Subscription
	offers   [MaxStreams]*linkOffer    // by number
	byNumber [MaxStreams]*Subscription // by the number of the offer
	past     []Stats                   // of those that ended
	acks     acks
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
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.list {
		if o.name == world {
			return nil, errSubscribed
		}
	}
	all.list = append(all.list, s)
	for _, o := range all.offers {
		if o != nil && o.offer.Name == world {
			all.accept(s, o, now)
		}
	}
	return s, nil
}

// accept passes an offer to its subscription.
func (all *Subscriptions) accept(s *Subscription, o *linkOffer, now time.Time) {
	if s.link != nil {
		all.byNumber[s.offer.Number] = nil // a world has one number at a time
	}
	all.byNumber[o.offer.Number] = s
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
	if s.link == nil {
		return
	}
	all.byNumber[s.offer.Number] = nil
	if s.phase != refusing {
		s.phase = refusing
		s.reply(now)
	}
	s.link = nil
	all.acks.restart(&s.ack, nil, 0)
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
	for _, o := range all.offers {
		if o != nil {
			names = append(names, o.offer.Name)
		}
	}
	return names
}

// Reset withdraws what the server offered over a link that was lost.
func (all *Subscriptions) Reset(link Link) {
	all.mu.Lock()
	for n, o := range all.offers {
		if o != nil && o.link == link {
			all.withdraw(uint8(n))
		}
	}
	all.deliverGame()
}

// deliverGame passes on the messages of the game that are due. It unlocks the mutex.
func (all *Subscriptions) deliverGame() {
	for i := 0; i < len(all.list); {
		s := all.list[i]
		tick, message, ok := s.game.Take()
		if !ok {
			i++
			continue
		}
		all.mu.Unlock()
		s.receiver.Game(tick, message)
		all.mu.Lock()
	}
	all.mu.Unlock()
}

func (all *Subscriptions) withdraw(n uint8) {
	if s := all.byNumber[n]; s != nil {
		s.withdraw()
	}
	all.byNumber[n], all.offers[n] = nil, nil
}

// HandleMessage handles a message of the reliable channel: an offer, a piece of an initial state, a
// message of the game, or a stop. It returns an error that wraps control.ErrMalformed if no server
// sends the message.
func (all *Subscriptions) HandleMessage(link Link, t control.Type, b []byte, now time.Time) error {
	all.mu.Lock()
	defer all.deliverGame()
	if t == control.Offer {
		return all.handleOffer(link, b, now)
	}
	n, rest, err := parseNumber(b)
	if err != nil {
		return err
	}
	if t == control.Stop {
		all.withdraw(n)
		return nil
	}
	s := all.byNumber[n]
	switch {
	case s == nil: // unsubscribed in the meantime
		return nil
	case t == control.GameMessage:
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
	all.withdraw(o.Number)
	all.offers[o.Number] = &linkOffer{link: link, offer: o}
	for _, s := range all.list {
		if s.name == o.Name {
			all.accept(s, all.offers[o.Number], now)
		}
	}
	return nil
}

// HandleDatagram handles a message of a world, or a fragment. It returns an error if the server has
// not offered the world.
func (all *Subscriptions) HandleDatagram(t control.Type, b []byte, at time.Time) error {
	n := Number(b)
	all.mu.Lock()
	s := all.byNumber[n]
	if s == nil || s.phase != subscribed {
		defer all.mu.Unlock()
		if all.offers[n] != nil {
			return nil // sent before the client unsubscribed
		}
		return fmt.Errorf("%w: a message of a world that was not offered", control.ErrMalformed)
	}
	s.stats.Datagrams++
	var err error
	if t == control.Down {
		err = s.receive(b[1:], at)
	} else {
		s.stats.Fragments++
		err = s.receiveFragment(b[1:], at)
	}
	all.deliverGame()
	if err == nil {
		s.receiver.Deliver()
	}
	return nil
}

// Tick sends replies and acks that are due. It wakes the link at the time of the next call.
func (all *Subscriptions) Tick(now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		s.tick(now)
	}
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
