package client

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/fragment"
	"github.com/uplink-rpc/uplink/transport"
)

// inlet is a codec's end of a downstream: what it makes of what comes. A second codec is another inlet. Its methods are
// called one at a time, with the downstream's lock held.
type inlet interface {
	// check says how what the server offers differs from what this end takes.
	check(o *control.DownOffer) error
	// knows says whether this end has the initial state of that hash.
	knows(hash uint64) bool
	// begin starts anew, with the initial state as coded, or nil where it is known.
	begin(o *control.DownOffer, initial []byte) error
	// take takes a message that came at that time. It counts errors by reason in st.
	take(message []byte, at time.Time, st *ReplicationStats) error
	// appendAck appends the ack of all that came.
	appendAck(dst []byte) []byte
	// deliver hands out what take took last. It is called without the lock, from the goroutine that receives.
	deliver()
}

// downstream is what the connection gets of one of the server's worlds. Its fields are guarded by downstreams.mu.
type downstream struct {
	conn   *Conn
	name   string
	inlet  inlet
	ackHz  float64
	answer chan error // gets the first outcome

	link      carrier // over which it is offered, or nil
	offer     control.DownOffer
	phase     downPhase
	refused   error
	initial   []byte // that came so far
	reply     bool   // is to be sent once more: there was no room for it
	assembler *fragment.Assembler
	given     uint64 // messages that the assembler gave up and that are in stats
	due       bool   // something is to be acked
	acked     time.Time
	buf       []byte
	stats     ReplicationStats
}

// carrier is what sends to the server: a [transport.Conn], but in tests.
type carrier interface {
	Send(b []byte) error
	SendReliable(b []byte) error
	Wake(at time.Time)
}

// downPhase is how far a downstream is.
type downPhase uint8

const (
	unoffered downPhase = iota
	refusing
	awaiting // the initial state
	taking
)

// reply is what the server is told in each phase.
func (p downPhase) reply() control.Answer {
	switch p {
	case awaiting:
		return control.Send
	case taking:
		return control.Ready
	default:
		return control.Refused
	}
}

// offered takes the server's offer.
func (d *downstream) offered(link carrier, o control.DownOffer) {
	d.link, d.offer = link, o
	err := d.inlet.check(&o)
	if err == nil && (o.Initial == 0 || d.inlet.knows(o.Hash)) {
		err = d.inlet.begin(&o, nil)
		d.become(taking)
	} else if err == nil {
		d.initial = d.initial[:0]
		d.stats.Initial += uint64(o.Initial)
		d.become(awaiting)
	}
	if err != nil {
		d.fail(err)
	} else if d.phase == taking {
		d.tell(nil)
	}
	d.send()
}

func (d *downstream) become(p downPhase) {
	d.phase, d.refused, d.due, d.acked = p, nil, false, time.Time{}
	if d.assembler != nil {
		d.assembler.Reset()
	}
}

// fail refuses the offer.
func (d *downstream) fail(err error) {
	d.conn.cfg.Logger.Warn("world not taken", "world", d.name, "error", err)
	d.phase, d.refused = refusing, err
	d.tell(err)
}

// tell gives the first outcome to who waits for it.
func (d *downstream) tell(err error) {
	select {
	case d.answer <- err:
	default:
	}
}

// send answers the offer.
func (d *downstream) send() {
	err := d.link.SendReliable(control.AppendReply(nil, d.offer.Number, d.phase.reply()))
	if d.reply = errors.Is(err, transport.ErrBacklog); d.reply {
		d.link.Wake(time.Now().Add(queuedWait))
	}
}

// errPiece means that a piece of an initial state cannot be used. The client may have asked for another one since the
// server sent it.
var errPiece = errors.New("client: unexpected piece of an initial state")

// piece takes more of the initial state.
func (d *downstream) piece(b []byte) error {
	if d.phase != awaiting {
		return fmt.Errorf("%w: it was not asked for", errPiece)
	}
	if len(b) == 0 || len(d.initial)+len(b) > d.offer.Initial {
		return fmt.Errorf("%w: %d bytes of %d, after %d", errPiece, len(b), d.offer.Initial, len(d.initial))
	}
	d.initial = append(d.initial, b...)
	d.stats.InitialBytes += uint64(len(b))
	if len(d.initial) < d.offer.Initial {
		return nil
	}
	err := d.inlet.begin(&d.offer, d.initial)
	d.initial = nil
	if err != nil {
		d.fail(fmt.Errorf("client: world %s: %w", d.name, err))
	} else {
		d.become(taking)
		d.tell(nil)
	}
	d.send()
	return err
}

// lose forgets the server's offer, as the connection is lost or the server says so.
func (d *downstream) lose() {
	if d.phase == taking || d.phase == awaiting {
		d.phase = unoffered
	}
	d.link, d.reply, d.due = nil, false, false
	if d.assembler != nil {
		d.assembler.Reset()
		d.countIncomplete()
	}
}

// fragment takes a fragment.
func (d *downstream) fragment(b []byte, at time.Time) error {
	if d.assembler == nil {
		d.assembler = fragment.NewAssembler(control.MaxPart, fragment.MaxCount)
	}
	m, err := d.assembler.Add(b)
	d.countIncomplete()
	switch {
	case errors.Is(err, fragment.ErrMalformed):
		d.stats.BadFragments++
		return err
	case err != nil:
		d.stats.Late++
		return err
	case m == nil:
		return errIncomplete
	}
	return d.take(m, at)
}

// errIncomplete says that a fragment is not the last one of its message to come.
var errIncomplete = errors.New("client: more fragments to come")

func (d *downstream) countIncomplete() {
	n := d.assembler.Incomplete()
	d.stats.Incomplete += n - d.given
	d.given = n
}

// take takes a whole message.
func (d *downstream) take(m []byte, at time.Time) error {
	d.stats.Bytes += uint64(len(m))
	err := d.inlet.take(m, at, &d.stats)
	if err == nil {
		d.stats.Messages++
	}
	d.due = true // an ack also says what is missing
	d.ack(at)
	return err
}

// tick sends what is due, and says when to do so next; zero: not before something else happens.
func (d *downstream) tick(now time.Time) (next time.Time) {
	if d.link == nil {
		return next
	}
	if d.reply {
		if d.send(); d.reply {
			next = now.Add(queuedWait)
		}
	}
	return sooner(next, d.ack(now))
}

// interval is the time between two events at a rate in Hz. A rate of the server's may be so low that no Duration can
// hold it: then it is the longest Duration.
func interval(hz float64) time.Duration { return duration(1 / hz) }

// duration converts seconds, 0 or more, to a Duration, at most the longest one.
func duration(seconds float64) time.Duration {
	if d := seconds * float64(time.Second); d < math.MaxInt64 {
		return time.Duration(d)
	}
	return math.MaxInt64
}

// ack sends an ack if one is due and the last was long enough ago, and says when to do so next.
func (d *downstream) ack(now time.Time) time.Time {
	if !d.due {
		return time.Time{}
	}
	if next := d.acked.Add(interval(min(d.ackHz, d.offer.RateHz))); now.Before(next) {
		d.link.Wake(next)
		return next
	}
	d.due, d.acked = false, now
	d.buf = d.inlet.appendAck(append(d.buf[:0], byte(control.DownAck), d.offer.Number))
	_ = d.link.Send(d.buf) // it may be lost, too
	d.stats.Acks++
	d.stats.AckBytes += uint64(len(d.buf))
	return time.Time{}
}
