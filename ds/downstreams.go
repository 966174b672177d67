package ds

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
)

// downstreams are those of one player, by number.
type downstreams struct {
	mu     sync.Mutex
	list   [control.MaxDown]*downstream
	next   int // number to try first: what is on its way of an old one must not be taken for a new one
	closed bool
	acks   atomic.Int64 // a thousand seconds, that may come
}

// allow lets the client send so many acks a second more.
func (all *downstreams) allow(hz float64) { all.acks.Add(int64(1000 * hz)) }

// hz is how many acks a second may come.
func (all *downstreams) hz() float64 {
	if all == nil {
		return 0
	}
	return float64(all.acks.Load()) / 1000
}

// isGone says that an error is the player's end.
func isGone(err error) bool { return errors.Is(err, net.ErrClosed) }

// downs gives the player's downstreams, which are made when they are first needed: players without cost nothing.
func (p *Player) downs() *downstreams {
	if d := p.down.Load(); d != nil {
		return d
	}
	p.down.CompareAndSwap(nil, &downstreams{})
	return p.down.Load()
}

// offer offers a source to the player, by a codec.
func (p *Player) offer(c *downSource, w way) (*downstream, error) {
	if p.server != c.server {
		return nil, fmt.Errorf("ds: offer %s: the player is another server's", c.name)
	}
	all := p.downs()
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		return nil, fmt.Errorf("ds: offer %s to player %d: %w", c.name, p.ID(), net.ErrClosed)
	}
	if d := c.of(p); d != nil {
		if had, want := d.way.terms().offer.Codec, w.terms().offer.Codec; had != want {
			return nil, fmt.Errorf("ds: offer %s to player %d: it is offered by codec %q already: Stop that before %q", c.name, p.ID(), had, want)
		}
		return d, nil
	}
	n, ok := all.free()
	if !ok {
		return nil, fmt.Errorf("ds: offer %s to player %d: it gets %d worlds already", c.name, p.ID(), control.MaxDown)
	}
	o := w.terms().offer
	o.Number = uint8(n)
	b, err := o.Append(nil)
	if err == nil {
		err = p.conn.SendReliable(b)
	}
	if err != nil {
		return nil, fmt.Errorf("ds: offer %s to player %d: %w", o.Name, p.ID(), err)
	}
	d := &downstream{player: p, link: p.conn, number: o.Number, source: c, way: w}
	all.list[n], all.next = d, n+1
	c.join(d)
	return d, nil
}

// free gives a number that is not in use.
func (all *downstreams) free() (int, bool) {
	for i := range all.list {
		n := (all.next + i) % len(all.list)
		if d := all.list[n]; d == nil || d.over() {
			return n, true
		}
	}
	return 0, false
}

func (d *downstream) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.phase == stopped
}

// at gives a downstream by its number, or nil.
func (p *Player) downAt(n uint8) *downstream {
	all := p.down.Load()
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.list[n]
}

// stopDowns ends all when the player leaves.
func (p *Player) stopDowns() {
	all := p.down.Load()
	if all == nil {
		return
	}
	all.mu.Lock()
	all.closed = true
	list := all.list
	all.mu.Unlock()
	for _, d := range list {
		if d != nil {
			d.stop()
		}
	}
}

// receiveReply takes a client's answer to an offer.
func (p *Player) receiveReply(b []byte, a *arrival) {
	n, answer, err := control.ParseReply(b)
	var d *downstream
	if err == nil {
		d = p.downAt(n)
	}
	if d == nil {
		p.reject(a, Malformed, "reply to no offer")
		return
	}
	switch answer {
	case control.Refused:
		d.pause()
	case control.Send:
		if d.feed() && !d.listed { // it may be listed since an earlier request
			d.listed = true
			p.shard.feeding = append(p.shard.feeding, d)
		}
	case control.Ready:
		d.begin()
	}
}

// receiveDownAck takes an ack of a downstream's messages.
func (p *Player) receiveDownAck(b []byte, at time.Time) {
	n, body, err := control.ParseNumber(b)
	var d *downstream
	if err == nil && len(body) <= control.MaxDownAck {
		d = p.downAt(n)
	}
	switch {
	case d == nil:
		p.drop(at, Malformed)
	case d.ack(body) != nil:
		d.refuse()
		p.drop(at, InvalidAck)
	}
}
