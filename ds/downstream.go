package ds

import (
	"errors"
	"fmt"
	"sync"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/fragment"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/transport"
)

// source is what goes down to every player that takes part in it: a world.
type source interface {
	// common is what this file keeps for it, the same each time.
	common() *downSource
}

// way is how a source goes down to one player: by a codec.
type way interface {
	// terms are what is offered, the same each time.
	terms() *terms
	// outlet makes what codes the player's part, each time that its client begins to take part.
	outlet() outlet
}

// terms are what a codec of a source is offered by.
type terms struct {
	offer   control.DownOffer // but for the number
	initial []byte            // state, as coded
}

// outlet codes what one player gets. Its methods are called one at a time, but for different players at the same time.
type outlet interface {
	// append appends the next message, of at most limit bytes. errNothing says that there is none now.
	append(dst []byte, limit int) ([]byte, error)
	// ack takes what the client's inlet wrote, and says how many messages it acks that were not acked before. An error
	// says that no honest client writes it.
	ack(b []byte) (acked int, err error)
	// note adds what the last message was to the player's counts.
	note(st *ReplicationStats)
}

var (
	errNothing = errors.New("ds: nothing to send")
	// ErrNotReady says that the player does not take part yet, or not any more: its client has not asked for it, or the
	// initial state is on its way.
	ErrNotReady = errors.New("ds: the client is not ready")
)

// downstream is what one player gets of a source.
type downstream struct {
	player *Player
	link   carrier
	number uint8
	source *downSource
	way    way

	listed bool             // is in the shard's list feeding; of the shard's goroutine
	pieces ratelimit.Bucket // bytes of initial states, likewise

	mu     sync.Mutex
	phase  phase
	fed    int // bytes of the initial state that were sent
	outlet outlet
	split  fragment.Splitter
	buf    []byte // of messages, type included
	part   []byte // of fragments
	stats  ReplicationStats
}

// carrier is what sends to the player: its [transport.Conn], but in tests.
type carrier interface {
	Send(b []byte) error
	SendReliable(b []byte) error
	Unacked() int
}

// phase is how far a downstream is.
type phase uint8

const (
	offered phase = iota
	feeding       // the initial state is sent
	ready
	stopped
)

// send codes and sends the next message.
func (d *downstream) send() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != ready {
		return ErrNotReady
	}
	buf, err := d.outlet.append(append(d.buf[:0], byte(control.Down)|d.number), control.MaxDownMessage)
	if err != nil {
		if !errors.Is(err, errNothing) {
			d.stats.Unsent++
			err = fmt.Errorf("ds: %s to player %d: %w", d.source.name, d.player.ID(), err)
		}
		return err
	}
	d.buf = buf
	if len(buf) <= transport.MaxPayload {
		err = d.carry(buf)
	} else {
		err = d.fragment(buf[1:])
	}
	d.stats.Messages++
	d.stats.Bytes += uint64(len(buf))
	d.outlet.note(&d.stats)
	return err
}

// fragment sends a message in several datagrams.
func (d *downstream) fragment(message []byte) error {
	f, err := d.split.Split(message, control.MaxPart)
	if err != nil {
		return err
	}
	d.stats.Fragmented++
	d.stats.Bytes += uint64(f.Count()-1) + uint64(f.Count()*fragment.HeaderSize)
	for {
		part, ok := f.Next(append(d.part[:0], byte(control.DownFragment)|d.number))
		if !ok {
			return nil
		}
		d.part = part
		if err := d.carry(part); err != nil {
			return err
		}
	}
}

// carry sends a datagram.
func (d *downstream) carry(b []byte) error {
	d.stats.Datagrams++
	d.stats.AEADBytes += uint64(d.player.overhead)
	if err := d.link.Send(b); err != nil {
		return fmt.Errorf("ds: send to player %d: %w", d.player.ID(), err)
	}
	return nil
}

// ack takes the client's ack. An error says that no honest client sends it.
func (d *downstream) ack(b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != ready {
		return nil // it was on its way
	}
	d.stats.AckBytes += uint64(2 + len(b))
	n, err := d.outlet.ack(b)
	d.stats.Acked += uint64(n)
	return err
}

// begin has messages sent from now on.
func (d *downstream) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase == offered || d.phase == feeding {
		d.become(ready)
		d.outlet = d.way.outlet()
	}
}

// become changes the phase. Who gets messages may ack each.
func (d *downstream) become(p phase) {
	if acks := d.way.terms().offer.RateHz; p == ready {
		d.player.downs().allow(acks)
	} else if d.phase == ready {
		d.player.downs().allow(-acks)
	}
	d.phase, d.outlet, d.fed = p, nil, 0
}

// pause is the client's end of it. It can take part again.
func (d *downstream) pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != stopped {
		d.become(offered)
	}
}

// stop ends it, and lets go of what sending takes.
func (d *downstream) stop() {
	d.mu.Lock()
	was := d.phase
	d.become(stopped)
	d.buf, d.part = nil, nil
	d.mu.Unlock()
	if was != stopped {
		d.source.leave(d)
	}
}

// quit is stop, and tells the client.
func (d *downstream) quit() {
	d.stop()
	_ = d.link.SendReliable([]byte{byte(control.Stop), d.number}) // it is told, or gone
}
