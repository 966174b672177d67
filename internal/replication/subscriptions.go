package replication

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/session"
)

// Subscriptions are a client's subscriptions, and the worlds of the servers to which it is
// connected. The methods are safe for concurrent use. The zero value is ready.
type Subscriptions struct {
	// Report, if set, is called when the client refuses an offer because of an error, or accepts
	// one although the ends differ, the server asking; with a lock held.
	Report func(world string, d message.Differences, err error)

	mu      sync.Mutex
	list    []*Subscription
	open    []*Worlds                  // of all servers with which there is a session
	current *Worlds                    // of the server whose worlds are shown, or nil
	past    []session.ReplicationStats // of those that ended
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

// Subscribe subscribes to a world, at once if the server has offered it, or when it does. Acks are
// sent alone at most ackHz times a second.
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

// Unsubscribe ends a subscription and tells the servers.
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

// Received returns how many bytes of the requested initial state were received, and its size. The
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
	Off   bool // it is not within 1 ± 0.05
}

// RateNews returns the worlds whose rate of ticks has left 1 ± 0.05, or returned, since the last
// call.
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

// PartialNews returns the worlds whose views were shown before they were complete since the last
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

// locked calls f with the lock held, also if f panics: decoders run in it.
func (all *Subscriptions) locked(f func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f()
}

// deliverGame passes on the messages of the game that are due. The caller does not hold the lock.
func (all *Subscriptions) deliverGame() {
	for {
		v, tick, message := all.takeGame()
		if v == nil {
			return
		}
		v.Game(tick, message)
	}
}

// takeGame returns the next message of the game that is due and its view, or nil.
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
func (all *Subscriptions) Stats() []session.ReplicationStats {
	all.mu.Lock()
	defer all.mu.Unlock()
	out := slices.Clone(all.past)
	for _, s := range all.list {
		st := s.counted()
		out = AddStats(out, &st)
	}
	return out
}
