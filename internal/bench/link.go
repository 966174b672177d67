package bench

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type datagram struct {
	number   uint64
	payloads []payload // payloads of one frame stream, or an ack without sequence numbers
}

// direction is one direction of the link. Like the transport, it drops datagrams that arrive after
// too many newer ones.
type direction struct {
	queue  *simnet.Queue[datagram]
	sent   uint64
	newest uint64 // received; the link makes no duplicates
	frames uint64 // maximum number of new frames in a datagram
}

func newDirection(cfg simnet.Config, frames int) (*direction, error) {
	link, err := simnet.NewLink(cfg)
	if err != nil {
		return nil, err
	}
	return &direction{queue: simnet.NewQueue[datagram](link), frames: uint64(frames)}, nil
}

// send sends payloads in a datagram and returns the number of copies that will arrive. size
// includes the datagram's headers.
func (w *direction) send(now time.Duration, size int, payloads ...payload) int {
	w.sent++
	return w.queue.Push(now, datagram{w.sent, payloads}, size)
}

// receive returns the payloads of the next datagram that has arrived. It returns false for one that
// the transport drops.
func (w *direction) receive(now time.Duration) ([]payload, bool) {
	d, _, ok := w.queue.Pop(now)
	w.newest = max(w.newest, d.number)
	return d.payloads, ok && (w.newest-d.number+1)*w.frames <= seq.WindowSize
}

// never is later than any time.
const never = time.Duration(math.MaxInt64)

func (w *direction) next() time.Duration {
	if at, ok := w.queue.Next(); ok {
		return at
	}
	return never
}

// overLink sends frames at the trace's rate over the link, and acks back, until nothing is in
// flight. At equal times, arrivals precede the server's tick, which precedes the client's next
// frame.
func (p *pair) overLink() error {
	up, err := newDirection(p.cfg.Link.Up(), p.perPayload())
	if err != nil {
		return err
	}
	down, err := newDirection(p.cfg.Link.Down(), 1)
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
		p.now = now
		switch now {
		case never:
			return nil
		case up.next():
			payloads, ok := up.receive(now)
			for _, m := range payloads {
				if ok {
					p.decode(m)
				} else {
					p.reached(m)
				}
			}
			if tick == never && p.dec.AckDue() {
				tick = p.nextTick(now)
			}
		case tick:
			tick = never
			if p.acksMustPay() && !p.dec.AckPays(p.aroundAck(), p.ackDelay()) && n < p.frames {
				tick = p.nextTick(now + 1)
				break
			}
			p.acked = now
			ack := p.makeAck()
			down.send(now, len(ack)+messageType+p.cfg.around(), payload{message: ack})
		case down.next():
			if acks, ok := down.receive(now); ok {
				if err := p.takeAck(acks[0].message, n); err != nil {
					return err
				}
			}
		default:
			payloads, err := p.encode(n)
			if err != nil {
				return err
			}
			if len(payloads) > 0 {
				size := len(payloads[0].message) + p.repairSize() + p.cfg.around()
				if up.send(now, size, payloads...) == 0 && p.counts(payloads[0].newest) {
					p.tally.lost++
				}
			}
			n++
		}
	}
}

// ackDelay returns the number of frames from a payload to its ack.
func (p *pair) ackDelay() int {
	delay := p.cfg.Link.RTT.Seconds() + p.cfg.Link.Jitter.Seconds() + 1/cmp.Or(p.cfg.DownlinkHz, p.cfg.AckHz, ds.DefaultAckHz)
	return int(math.Ceil(delay * p.trace.Schema.RateHz()))
}

// acksMustPay reports whether the server decides when to send an ack, as [ds.Server] does. Schemes
// with acks of their own have them at a fixed rate.
func (p *pair) acksMustPay() bool {
	return p.scheme.ack == 0 && (p.cfg.DownlinkHz > 0 || p.cfg.AckHz == 0)
}

// aroundAck returns the bits that an ack costs besides its own: none if it is piggybacked.
func (p *pair) aroundAck() int {
	if p.cfg.DownlinkHz > 0 {
		return 0
	}
	return 8 * (messageType + p.cfg.around())
}

// ackTicks returns the rate of the ticks in which the server may send an ack, in Hz, and the
// minimum time between two acks.
func (p *pair) ackTicks() (hz float64, spacing time.Duration) {
	if p.acksMustPay() && p.cfg.DownlinkHz == 0 {
		const tick = endpoint.DefaultTick
		return float64(time.Second) / float64(tick), time.Second/ds.DefaultAckHz - tick/2
	}
	return cmp.Or(p.cfg.DownlinkHz, p.cfg.AckHz, ds.DefaultAckHz), 0
}

func (p *pair) leaves(n int) time.Duration {
	return time.Duration(math.Round(float64(n) * 1e9 / p.trace.Schema.RateHz()))
}

// nextTick returns the time of the server's next tick. Its clock is slower than the client's by one
// interval over the whole trace, so that the phase between ticks and frames is uniformly
// distributed. Times are rounded to microseconds.
func (p *pair) nextTick(now time.Duration) time.Duration {
	hz, spacing := p.ackTicks()
	now = max(now, p.acked+spacing)
	interval := 1e9 / hz
	interval += interval * interval / float64(p.leaves(p.end))
	k := math.Ceil((float64(now) - 1e3) / interval)
	return max(now, time.Duration(math.Round(k*interval)))
}

// Course is the course of a stream over a link, frame by frame, independent of the codec.
type Course []Passage

// Passage is the course of one frame.
type Passage struct {
	// Base is the newest acknowledged frame when this one was sent, -1 if none.
	Base int
	// HeaderBits is the size of the message header, in whole bytes.
	HeaderBits int
	// Arrived reports whether the frame's payload arrived in time.
	Arrived bool
}

// NewCourse sends frames over the link of cfg, which has no schemes. Payloads are minimal, so that
// each frame that can have a baseline has one.
func NewCourse(ctx context.Context, frames int, rateHz float64, cfg Config) (Course, error) {
	cfg.Schemes, cfg.Distance, cfg.Untimed = []string{rpcdelta.RLE.String()}, 0, true
	cfg.Seeds, cfg.Frames, cfg.Warmup = 1, 0, 0
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := schema.New("Course", rateHz, []schema.Field{{Name: "Nothing", Kind: schema.KindBool}})
	if err != nil {
		return nil, err
	}
	t := &trace.Trace{Name: s.RPC(), Schema: s, Frames: make([]schema.Frame, frames)}
	for i := range t.Frames {
		t.Frames[i] = *s.NewFrame()
	}
	course := make(Course, 0, frames)
	p := newPair(ctx, t, cfg, scheme{codec: rpcdelta.RLE})
	p.course = &course
	err = p.run()
	return course, err
}

// atDistance passes the ack of frame n-Distance to the encoder before frame n, so that this frame
// is the baseline.
func (p *pair) atDistance() error {
	acks := make([][]byte, p.frames)
	for n := range p.frames {
		if n >= p.cfg.Distance {
			if err := p.takeAck(acks[n-p.cfg.Distance], n); err != nil {
				return err
			}
		}
		payloads, err := p.encode(n)
		if err != nil {
			return err
		}
		p.decode(payloads[0])
		acks[n] = p.makeAck()
	}
	return nil
}
