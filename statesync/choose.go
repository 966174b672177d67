package statesync

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

const (
	// patience is how many objects that do not fit are passed over in a row, and how many are tried alone.
	patience = 12
	// tries is how often a packet is coded to fill its budget.
	tries = 8
	// enough is the share of the budget, in 32ths, that need not be used.
	enough = 1
	// nag is after how many packets it is said again that an object is gone.
	nag = 4
	// goneBits is what that takes, about.
	goneBits = 12
)

// candidate is an object that may be updated.
type candidate struct {
	object snapshot.Object
	at     int // in the set, or -1: it is gone
	bits   int // what its update takes, or took; 0 where none was made
	with   int // 1 if it has a baseline
	alone  bool
	picked bool
}

// chooser fills packets: it codes those of the first candidates that may fit, measures, and codes again where too many
// or too few were taken.
type chooser struct {
	typical  [2]int // bits of an update, without and with a baseline
	overhead int    // bits of the last packet beside its updates
	list     []candidate
	jobs     []job // of the best packet
	trial    packet
	best     packet
	buf, out []byte
}

func (c *chooser) init(p *plan) {
	c.typical = [2]int{p.ints * 12, p.ints * 6}
	c.trial.state, c.best.state = p.newState(), p.newState()
}

// choose makes the best packet and gives its bytes.
func (s *Sender) choose(tick int64, set *snapshot.Set) ([]byte, error) {
	c, least := &s.chooser, MaxPacket+1
	for _, room := range [...]int{s.cfg.Budget / 2, -1} { // of inputs
		c.trial.from, c.trial.to = s.inputs.next, s.inputs.next
		if room >= 0 {
			c.trial.from = s.inputs.due(s.cfg.Ticks, room)
		}
		from, to := c.trial.from, c.trial.to
		size, ok := s.fill(tick, set)
		if ok {
			return c.out, nil
		}
		least = size
		if from == to {
			break
		}
	}
	return nil, fmt.Errorf("%w: %d bytes, the smallest update tried takes a packet of %d", ErrBudget, s.cfg.Budget, least)
}

// fill makes the best packet with given inputs. Where none fits it gives the size of the smallest.
func (s *Sender) fill(tick int64, set *snapshot.Set) (least int, ok bool) {
	c, budget := &s.chooser, s.cfg.Budget*8
	s.list(set)
	least = MaxPacket + 1
	room, alone, count := budget-c.overhead, 0, -1
	from, to := c.trial.from, c.trial.to
	for try := 0; try < tries; try++ {
		n := s.pick(room, set)
		if ok && n <= count {
			return 0, true
		}
		if n == 0 && alone > 0 {
			return least, false
		}
		c.trial.from, c.trial.to = from, to
		size, sum := s.code(tick, set)
		switch {
		case size*8 <= budget:
			if !ok || n > count {
				s.keep()
			}
			ok, count = true, n
			c.overhead = size*8 - sum
			room = budget - c.overhead
			if left := room - sum; left < budget*enough/32 || try >= 2 {
				return 0, true
			}
		case ok || n == 0:
			return min(least, size), ok
		case n == 1:
			least = min(least, size)
			s.exclude()
			if alone++; alone >= patience {
				return least, false
			}
			try--
		default:
			c.overhead = size*8 - sum
			room = min(budget-c.overhead, sum-1)
			if try >= tries/2 {
				room /= 2
			}
			if try == tries-2 {
				room = 0
			}
		}
	}
	return least, ok
}

// list starts the list of candidates: the first in line, which so is always sent if it fits, then those that are gone, in
// about half of the room, so that others go on when many vanish at once.
func (s *Sender) list(set *snapshot.Set) {
	c := &s.chooser
	c.list = c.list[:0]
	s.waiting.Start()
	s.more(set)
	at, kept, gone := 0, s.live[:0], 1+min(MaxUpdates, s.cfg.Budget*8/goneBits)/2
	for _, o := range s.live {
		for at < set.Len() && set.Object(at).ID < o.ID {
			at++
		}
		if at < set.Len() && set.Object(at).ID == o.ID {
			kept = append(kept, o)
			continue
		}
		if s.told(o.ID) {
			s.waiting.Remove(o.ID)
			continue
		}
		kept = append(kept, o)
		if sent := s.objects.at(o.ID).goneSent; gone > 0 && (sent == 0 || s.next+1-sent >= nag) {
			c.list = append(c.list, candidate{object: o, at: -1, bits: goneBits})
			gone--
		}
	}
	s.live = kept
}

// told says that the receiver knows that an object is gone.
func (s *Sender) told(id uint16) bool {
	i, ok := s.book.find(id)
	if !ok {
		return false
	}
	k := s.book.known[i]
	seq, ok := k.latest(&s.walk.view)
	if !ok || k.in&s.walk.view.slots == 0 {
		return ok && k.gone
	}
	p := s.book.get(seq)
	i, _ = p.find(id)
	return p.updates[i].gone
}

// more adds the next candidate to the list.
func (s *Sender) more(set *snapshot.Set) bool {
	for {
		id, ok := s.waiting.Next()
		if !ok {
			return false
		}
		at, ok := set.Index(id)
		if !ok {
			s.waiting.Remove(id)
			continue
		}
		c := candidate{object: set.Object(at), at: at}
		if _, has := s.walk.find(id); has && !s.walk.root {
			c.with = 1
		}
		c.bits = int(s.objects.at(id).bits[c.with])
		s.chooser.list = append(s.chooser.list, c)
		return true
	}
}

// pick marks as many candidates as may fit, by turns, and the first anyway. It gives their number.
func (s *Sender) pick(room int, set *snapshot.Set) (n int) {
	c, sum, passed := &s.chooser, 0, 0
	for i := range c.list {
		c.list[i].picked = false
	}
	for i := 0; n < MaxUpdates && passed < patience; i++ {
		if i == len(c.list) && !s.more(set) {
			break
		}
		x := &c.list[i]
		need := x.bits
		if need == 0 {
			need = c.typical[x.with]
		}
		switch {
		case x.alone:
		case n > 0 && sum+need > room:
			passed++
		default:
			x.picked = true
			sum += need
			passed = 0
			n++
		}
	}
	return n
}

// exclude takes the one that is picked out: it does not fit even alone.
func (s *Sender) exclude() {
	for i := range s.chooser.list {
		if x := &s.chooser.list[i]; x.picked {
			x.alone = true
		}
	}
}

// code makes the trial packet of what is picked. It gives its size in bytes, and the bits of its updates.
func (s *Sender) code(tick int64, set *snapshot.Set) (size, sum int) {
	c, w := &s.chooser, &s.walk
	w.jobs = w.jobs[:0]
	for i := range c.list {
		x := &c.list[i]
		if !x.picked {
			continue
		}
		j := job{update: update{object: x.object, gone: x.at < 0}, from: i}
		if x.at >= 0 {
			j.row = set.Row(x.at)
		}
		w.jobs = append(w.jobs, j)
	}
	slices.SortFunc(w.jobs, func(a, b job) int { return int(a.object.ID) - int(b.object.ID) })
	c.trial.seq, c.trial.tick = s.next, tick
	w.out = &c.trial
	w.begin(s.prior)
	h := header{seq: s.next, epoch: s.epoch, tick: tick}
	if !w.root {
		h.distance = s.next - s.last
	}
	w.enc.Reset(h.append(c.buf[:0]), 0)
	if !w.root {
		w.recent(s.recent())
	}
	w.tick()
	w.agree()
	w.rest(s.viewer, s.sees, &s.inputs)
	c.buf = w.enc.Finish()
	for i := range w.jobs {
		j := &w.jobs[i]
		sum += j.bits
		x := &c.list[j.from]
		x.bits = j.bits
		if !j.gone {
			s.objects.at(j.object.ID).bits[x.with] = uint16(min(j.bits, 1<<16-1))
			c.typical[x.with] = max(1, c.typical[x.with]+(j.bits-c.typical[x.with])/8)
		}
	}
	return len(c.buf), sum
}

// keep makes the trial packet the best.
func (s *Sender) keep() {
	c := &s.chooser
	c.trial, c.best = c.best, c.trial
	c.buf, c.out = c.out, c.buf
	c.jobs, s.walk.jobs = s.walk.jobs, c.jobs
}
