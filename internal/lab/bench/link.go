package bench

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

// datagram is a message on its way, with the number that its direction gave it.
type datagram struct {
	number  uint64
	message []byte
}

// way is one direction of the link. A datagram that too many newer ones overtook is dropped, as the transport does.
type way struct {
	queue  *simnet.Queue[datagram]
	sent   uint64
	seen   window
	frames uint64 // that a datagram brings at most
}

func newWay(cfg simnet.Config, frames int) (*way, error) {
	link, err := simnet.NewLink(cfg)
	if err != nil {
		return nil, err
	}
	return &way{queue: simnet.NewQueue[datagram](link), frames: uint64(frames)}, nil
}

// send sends a message and gives how many copies of it will arrive. size is that of the datagram with its headers.
func (w *way) send(now time.Duration, message []byte, size int) int {
	w.sent++
	return w.queue.Push(now, datagram{w.sent, message}, size)
}

// receive takes the next message that has arrived by now. It says false for one that the transport drops.
func (w *way) receive(now time.Duration) ([]byte, bool) {
	d, _, ok := w.queue.Pop(now)
	if d.number < w.seen.newest && (w.seen.newest-d.number+1)*w.frames > span {
		return nil, false
	}
	return d.message, ok && w.seen.mark(d.number) == fresh
}

// never is later than everything.
const never = time.Duration(math.MaxInt64)

func (w *way) next() time.Duration {
	if at, ok := w.queue.Next(); ok {
		return at
	}
	return never
}

// overLink lets frames leave at the trace's rate and cross the link, and the acks cross it back, until nothing is on
// its way any more. Of what happens at one time, arrivals come before the server's tick, and that before the client's
// next frame.
func (p *pair) overLink() error {
	up, err := newWay(p.cfg.Link.Up(), p.perPayload())
	if err != nil {
		return err
	}
	down, err := newWay(p.cfg.Link.Down(), 1)
	if err != nil {
		return err
	}
	n, tick := 0, never
	for {
		leave := never
		if n < p.frames {
			leave = p.leaves(n)
		}
		now := min(up.next(), tick, down.next(), leave)
		switch now {
		case never:
			return nil
		case up.next():
			p.arrive(up, now)
			if tick == never && p.dec.AckDue() {
				tick = p.nextTick(now)
			}
		case tick:
			ack := p.makeAck()
			down.send(now, ack, len(ack)+messageType+p.cfg.around())
			tick = never
		case down.next():
			if message, ok := down.receive(now); ok {
				if err := p.takeAck(message, n); err != nil {
					return err
				}
			}
		default:
			if err := p.leave(up, now, n); err != nil {
				return err
			}
			n++
		}
	}
}

// leaves is when frame n leaves.
func (p *pair) leaves(n int) time.Duration {
	return time.Duration(math.Round(float64(n) * 1e9 / p.trace.Schema.RateHz()))
}

func (p *pair) leave(up *way, now time.Duration, n int) error {
	message, err := p.encode(n)
	if err != nil || message == nil {
		return err
	}
	if up.send(now, message, len(message)+p.cfg.around()) == 0 {
		p.tally.lost++
	}
	return nil
}

func (p *pair) arrive(up *way, now time.Duration) {
	message, ok := up.receive(now)
	if !ok {
		p.tally.late++
		return
	}
	p.decode(message)
}

// nextTick is the server's first tick from now on. Its clock runs a little slower than the client's, by one interval
// over the whole trace, so that its ticks meet the frames in every phase alike: otherwise a mean would say more about
// one phase than about the ack rate. A microsecond makes no difference: times are rounded.
func (p *pair) nextTick(now time.Duration) time.Duration {
	interval := 1e9 / p.cfg.AckHz
	interval += interval * interval / float64(p.leaves(p.frames))
	k := math.Ceil((float64(now) - 1e3) / interval)
	return max(now, time.Duration(math.Round(k*interval)))
}
