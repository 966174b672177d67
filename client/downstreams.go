package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
)

// downstreams are those of a connection.
type downstreams struct {
	mu     sync.Mutex
	taken  []*downstream                // by this end
	offers [control.MaxDown]*downOffer  // of the server, by number
	by     [control.MaxDown]*downstream // of those taken, by the offer's number
	past   []ReplicationStats           // of those that were closed
}

// downOffer is one of the server's, over one link.
type downOffer struct {
	link  carrier
	offer control.DownOffer
}

// ErrNotOffered says that the server offers no world of that name to this client, or did not in time.
var ErrNotOffered = errors.New("client: no such world is offered")

// take adds a downstream and waits until it can be used, or for why it cannot.
func (c *Conn) takeDown(ctx context.Context, d *downstream) error {
	if err := c.usable(); err != nil {
		return fmt.Errorf("client: world %s: %w", d.name, err)
	}
	all := &c.down
	all.mu.Lock()
	for _, o := range all.taken {
		if o.name == d.name {
			all.mu.Unlock()
			return fmt.Errorf("client: world %s is taken already: Close the other one first", d.name)
		}
	}
	all.taken = append(all.taken, d)
	for _, o := range all.offers {
		if o != nil && o.offer.Name == d.name {
			all.accept(d, o)
		}
	}
	all.mu.Unlock()
	err := d.await(ctx)
	if err != nil {
		c.dropDown(d)
	}
	return err
}

// usable says why nothing can be taken over the connection any more.
func (c *Conn) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return net.ErrClosed
	}
	return c.gone
}

func (d *downstream) await(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := d.conn.withBindTimeout(ctx)
	defer cancel()
	select {
	case err := <-d.answer:
		return err
	case <-d.conn.closed:
		return fmt.Errorf("client: world %s: %w", d.name, net.ErrClosed)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: %w", d.conn.down.notOffered(d, time.Since(began).Round(time.Millisecond)), context.Cause(ctx))
		}
		return fmt.Errorf("client: world %s: %w", d.name, context.Cause(ctx))
	}
}

// notOffered says why a downstream is not there in time.
func (all *downstreams) notOffered(d *downstream, timeout time.Duration) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if d.phase == awaiting {
		return fmt.Errorf("client: world %s: %d of %d bytes of its initial state came within %v", d.name, len(d.initial), d.offer.Initial, timeout)
	}
	var names []string
	for _, o := range all.offers {
		if o != nil {
			names = append(names, o.offer.Name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: %s within %v, nor any other", ErrNotOffered, d.name, timeout)
	}
	return fmt.Errorf("%w: %s within %v, but %s", ErrNotOffered, d.name, timeout, shown(strings.Join(names, ", ")))
}

// dropDown takes a downstream out, and tells the server.
func (c *Conn) dropDown(d *downstream) {
	all := &c.down
	all.mu.Lock()
	defer all.mu.Unlock()
	i := slices.Index(all.taken, d)
	if i < 0 {
		return
	}
	all.taken = slices.Delete(all.taken, i, i+1)
	st := d.counted()
	all.past = addReplication(all.past, &st)
	if d.link != nil {
		all.by[d.offer.Number] = nil
		if d.phase != refusing {
			d.phase = refusing
			d.send()
		}
		d.link = nil
	}
}

// accept has a downstream take an offer.
func (all *downstreams) accept(d *downstream, o *downOffer) {
	if d.link != nil {
		all.by[d.offer.Number] = nil // a world has one number at a time
	}
	all.by[o.offer.Number] = d
	d.offered(o.link, o.offer)
}

// reset forgets what the server offered over a link that is lost.
func (all *downstreams) reset(link carrier) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for n, o := range all.offers {
		if o != nil && o.link == link {
			all.forget(uint8(n))
		}
	}
}

func (all *downstreams) forget(n uint8) {
	if d := all.by[n]; d != nil {
		d.lose()
	}
	all.by[n], all.offers[n] = nil, nil
}

// message takes one of the reliable channel. An error says that no server sends it.
func (all *downstreams) message(link carrier, t control.Type, b []byte) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if t == control.Offer {
		return all.offered(link, b)
	}
	n, rest, err := control.ParseNumber(b)
	if err != nil {
		return err
	}
	if t == control.Stop {
		all.forget(n)
		return nil
	}
	d := all.by[n]
	if d == nil { // dropped in the meantime
		return nil
	}
	return d.piece(rest)
}

// offered takes an offer, whether or not it is of something that is to be taken.
func (all *downstreams) offered(link carrier, b []byte) error {
	o, err := control.ParseOffer(b)
	if err != nil {
		return err
	}
	all.forget(o.Number)
	all.offers[o.Number] = &downOffer{link: link, offer: o}
	for _, d := range all.taken {
		if d.name == o.Name {
			all.accept(d, all.offers[o.Number])
		}
	}
	return nil
}

// datagram takes a message or a fragment of one. An error says that there is no such downstream.
func (all *downstreams) datagram(t control.Type, b []byte, at time.Time) error {
	all.mu.Lock()
	d := all.by[control.DownNumber(b)]
	if d == nil || d.phase != taking {
		defer all.mu.Unlock()
		if all.offers[control.DownNumber(b)] != nil {
			return nil // it was on its way
		}
		return fmt.Errorf("%w: a message of a world that was not offered", control.ErrMalformed)
	}
	d.stats.Datagrams++
	var err error
	if t == control.Down {
		err = d.take(b[1:], at)
	} else {
		d.stats.Fragments++
		err = d.fragment(b[1:], at)
	}
	all.mu.Unlock()
	if err == nil {
		d.inlet.deliver()
	}
	return nil
}

// tick sends what is due, and says when to do so next.
func (all *downstreams) tick(now time.Time) (next time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, d := range all.taken {
		next = sooner(next, d.tick(now))
	}
	return next
}
