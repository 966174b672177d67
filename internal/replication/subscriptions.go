package replication

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
)

// Subscriptions contains a client's subscriptions, and the worlds of the servers to which it is
// connected. The methods are safe for concurrent use. The zero value is ready.
type Subscriptions struct {
	// Report, if set, is called with a lock held when the client refuses an offer because of an
	// error, or accepts an offer although the ends differ. In d, the server is the asking end.
	Report func(world string, d message.Differences, err error)

	mu      sync.Mutex
	list    []*Subscription
	open    []*Worlds // worlds of all servers with a session
	current *Worlds   // worlds of the server whose worlds are shown, or nil
	past    []Stats   // counts of subscriptions that have ended
}

// Open returns the worlds of a server with which a session begins.
func (all *Subscriptions) Open(link Link) *Worlds {
	w := &Worlds{all: all, link: link, acks: acks{link: link}}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open = append(all.open, w)
	return w
}

var errSubscribed = errors.New("it is subscribed already: close the other view first")

// Subscribe subscribes to a world: at once if a server has offered it, otherwise when a server
// offers it. ackHz is the maximum number of datagrams per second that contain only acks.
func (all *Subscriptions) Subscribe(world string, v View, ackHz float64, now time.Time) (*Subscription, error) {
	s := &Subscription{all: all, name: world, view: v, ackHz: ackHz, outcome: make(chan error, 1)}
	s.unoffered = now
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.list {
		if o.name == world {
			return nil, errSubscribed
		}
	}
	for _, w := range all.open {
		w.acceptFor(s, now)
	}
	all.list = append(all.list, s)
	return s, nil
}

// Unsubscribe ends a subscription and informs the servers.
func (all *Subscriptions) Unsubscribe(s *Subscription, now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	i := slices.Index(all.list, s)
	if i < 0 {
		return
	}
	for _, w := range all.open {
		w.leave(s, now)
	}
	all.list = slices.Delete(all.list, i, i+1)
	st := s.counted()
	all.past = AddStats(all.past, &st)
}

// Received returns the number of received bytes of the requested initial state, and its size. The
// size is 0 if the subscription does not wait for an initial state.
func (all *Subscriptions) Received(s *Subscription) (n, size int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !s.feed.is(requesting) {
		return 0, 0
	}
	return len(s.feed.initial), s.feed.offer.Initial
}

// Offered returns the names of the worlds that the current server offers.
func (all *Subscriptions) Offered() (names []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.current == nil {
		return nil
	}
	for _, o := range all.current.offers {
		if o != nil {
			names = append(names, o.Name)
		}
	}
	return names
}

// TickRate is the measured rate of the ticks of a world.
type TickRate struct {
	World string
	Rate  float64
	Off   bool // Rate is outside of 1 ± 0.05
}

// RateNews returns the worlds whose tick rate has left the range 1 ± 0.05, or returned to it, since
// the last call.
func (all *Subscriptions) RateNews() (news []TickRate) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if f := s.feed; f != nil && f.rateNews {
			f.rateNews = false
			news = append(news, TickRate{s.name, f.clock.Rate(), f.clock.Off})
		}
	}
	return news
}

// PartialNews returns the worlds whose views were shown before they were complete, since the last
// call.
func (all *Subscriptions) PartialNews() (worlds []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if f := s.feed; f != nil && f.partial {
			f.partial = false
			worlds = append(worlds, s.name)
		}
	}
	return worlds
}

// locked calls f with the lock held. It releases the lock even if f panics, because f runs
// decoders.
func (all *Subscriptions) locked(f func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f()
}

// deliverGame passes on the game messages that are due. The caller must not hold the lock.
func (all *Subscriptions) deliverGame() {
	for {
		v, tick, message := all.takeGame()
		if v == nil {
			return
		}
		v.Game(tick, message)
	}
}

// takeGame returns the next game message that is due and its view. v is nil if there is none.
func (all *Subscriptions) takeGame() (v View, tick uint64, message []byte) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if tick, message, ok := s.game.Take(); ok {
			return s.view, tick, message
		}
		if f := s.feed; f != nil {
			if tick, message, ok := f.game.Take(); ok {
				return s.view, tick, message
			}
		}
	}
	return nil, 0, nil
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
