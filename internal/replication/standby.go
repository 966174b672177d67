package replication

import "time"

// Standby is a [Receiver] that can prepare a world of another server while it receives one.
type Standby interface {
	Receiver
	// Spare returns a receiver for the same world of another server. It keeps what it receives
	// until Adopt; its Deliver and Game are not called.
	Spare() Receiver
	// Adopt continues with the server of a receiver that Spare returned. Deliver, which follows,
	// passes on what that has kept.
	Adopt(spare Receiver)
}

// Prepare prepares for another server: what it offers over link is received beside the current
// worlds, until Switch or Abandon.
func (all *Subscriptions) Prepare(link Link) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.abandon()
	all.standby = &side{link: link}
}

// prepare accepts an offer of the standby. A world whose receiver is no Standby begins with Switch.
func (all *Subscriptions) prepare(s *Subscription, o *linkOffer, now time.Time) {
	r, ok := s.receiver.(Standby)
	if !ok {
		return
	}
	if s.spare == nil {
		s.spare = &Subscription{all: all, name: s.name, receiver: r.Spare(), ackHz: s.ackHz, outcome: make(chan error, 1), shown: true}
	}
	all.standby.accept(s.spare, o, now)
}

// Abandon forgets the standby.
func (all *Subscriptions) Abandon() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.abandon()
}

func (all *Subscriptions) abandon() {
	for _, s := range all.list {
		if s.spare != nil {
			all.acks.restart(&s.spare.ack, nil, 0)
			s.spare = nil
		}
	}
	all.standby = nil
}

// Progress is how far the worlds of a standby have arrived.
type Progress uint8

const (
	Absent   Progress = iota // nothing has arrived of one of them
	Arriving                 // objects of the view of one of them are missing
	Complete
)

// Prepared returns how far those worlds have arrived from the standby that are received from the
// current server: the least of them counts. A world that was refused, or that has not become
// complete in time, counts as complete.
func (all *Subscriptions) Prepared(now time.Time) Progress {
	all.mu.Lock()
	defer all.mu.Unlock()
	least := Complete
	for _, s := range all.list {
		if s.phase == subscribed {
			least = min(least, s.spare.progress(now))
		}
	}
	return least
}

func (s *Subscription) progress(now time.Time) Progress {
	switch {
	case s == nil || s.link == nil:
		return Absent
	case s.settled || s.phase == refusing || s.filled(now):
		return Complete
	case s.phase == requesting || !s.arrived.IsZero():
		return Arriving
	default:
		return Absent
	}
}

// Reached reports whether a message of a tick or a later one was received of the world with that
// number, or there is no such world any more.
func (all *Subscriptions) Reached(number uint8, tick uint64) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.current.byNumber[number]
	return s == nil || s.phase != subscribed || s.newest >= tick
}

// Switch continues with the standby, if there is one. It calls methods of receivers, on the
// goroutine that receives.
func (all *Subscriptions) Switch(now time.Time) {
	var next *side
	all.locked(func() {
		if next = all.standby; next != nil {
			for n := range all.current.offers {
				all.current.withdraw(uint8(n))
			}
		}
	})
	if next == nil {
		return
	}
	all.deliverGame() // of the previous server
	var adopted []Receiver
	all.locked(func() {
		all.current, all.standby = side{offers: next.offers}, nil
		for _, s := range all.list {
			if spare := s.spare; spare != nil {
				s.spare = nil
				all.adopt(s, spare)
				adopted = append(adopted, s.receiver)
			}
		}
		for _, o := range all.current.offers {
			for _, s := range all.list {
				if o != nil && s.name == o.offer.Name && s.link == nil {
					all.current.accept(s, o, now)
				}
			}
		}
	})
	all.deliverGame()
	for _, r := range adopted {
		r.Deliver()
	}
}

// adopt continues a subscription with what its spare has received.
func (all *Subscriptions) adopt(s, spare *Subscription) {
	all.acks.restart(&spare.ack, nil, 0)
	if spare.link == nil { // withdrawn
		return
	}
	s.link, s.offer, s.phase, s.refused, s.initial, s.replyDue = spare.link, spare.offer, spare.phase, spare.refused, spare.initial, spare.replyDue
	s.assembler, s.incomplete, s.newest, s.clock, s.start = spare.assembler, spare.incomplete, spare.newest, spare.clock, spare.start
	s.arrived = spare.arrived
	s.settled, s.shown, s.partial = spare.settled, s.shown || spare.settled, s.partial || spare.partial
	s.game.due = append(s.game.due, spare.game.due...)
	s.game.held = append(s.game.held, spare.game.held...)
	s.game.size += spare.game.size
	st := spare.counted()
	s.stats.Add(&st)
	all.current.byNumber[s.offer.Number] = s
	all.acks.restart(&s.ack, s.link, Interval(min(s.ackHz, s.offer.RateHz)))
	s.receiver.(Standby).Adopt(spare.receiver)
}
