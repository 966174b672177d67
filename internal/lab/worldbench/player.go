package worldbench

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// behavior is how a client acks.
type behavior uint8

const (
	honest  behavior = iota
	silent           // acks nothing
	stalled          // acks nothing for ten seconds
	liar             // acks all, whatever it received
	pinned           // acks one snapshot, and no other
)

// player is a client and its link. It implements [replication.Player].
type player struct {
	id       uint64
	rtt      time.Duration
	delay    int // ticks from a snapshot to its ack
	loss     float64
	behavior behavior
	streams  *replication.Streams
	stream   *replication.Stream
	message  []byte // the datagrams of the last one
	ends     []int  // of the datagrams in message
	received uint64 // bit i: snapshot n-i arrived
	arrives  bool   // the last message is not lost
	acks     []pendingAck
	arrived  []snapshot.Ack // acks, for the sample
	sampled  bool
	buf      []byte
}

type pendingAck struct {
	due int
	ack snapshot.Ack
}

func (p *player) ID() uint64         { return p.id }
func (p *player) RTT() time.Duration { return p.rtt }
func (p *player) Overhead() uint64 {
	return transport.IPSize + transport.HeaderSize + 16
}

func (p *player) Send(b []byte) error {
	p.message = append(p.message, b...)
	p.ends = append(p.ends, len(p.message))
	return nil
}

// datagrams yields the datagrams of the last message.
func (p *player) datagrams(yield func([]byte) bool) {
	at := 0
	for _, end := range p.ends {
		if !yield(p.message[at:end]) {
			return
		}
		at = end
	}
}

func (p *player) SendReliable([]byte) error { return nil }
func (p *player) Unacked() int              { return 0 }

// join offers the world to all players.
func (b *bench) join() error {
	behaviors := make([]behavior, b.cfg.Players)
	if b.cfg.Hostile {
		behaviors = append(behaviors, silent, stalled)
		for range 10 {
			behaviors = append(behaviors, liar, pinned)
		}
	}
	for i, how := range behaviors {
		share := float64(i%b.cfg.Players) / float64(max(1, b.cfg.Players-1))
		p := &player{id: uint64(i), behavior: how, loss: b.cfg.Loss}
		p.rtt = b.cfg.MinRTT + time.Duration(share*float64(b.cfg.MaxRTT-b.cfg.MinRTT))
		p.delay = int((p.rtt*Hz + time.Second - 1) / time.Second)
		p.streams = replication.NewStreams(p)
		var err error
		if p.stream, err = b.world.Offer(p.streams); err != nil {
			return err
		}
		if err := p.streams.HandleReply([]byte{0, byte(replication.Ready)}, nil, time.Unix(0, 0)); err != nil {
			return err
		}
		b.players = append(b.players, p)
	}
	return b.addSample()
}

// number returns the number of the last message, which was sent in tick n: large ones without a
// baseline are shared, and may be those of earlier ticks.
func (p *player) number(n int) int {
	b := p.message[1:]
	if len(p.ends) > 1 {
		b = b[fragment.HeaderSize:]
	}
	_, k := binary.Varint(b)
	low := int(binary.LittleEndian.Uint16(b[k:]) >> 6)
	return n - (n-low)&1023
}

// transmit sends the message of tick n over the simulated link, whose ack arrives after the delay.
func (p *player) transmit(n int, random *rand.Rand) {
	lost := len(p.message) == 0 || random.Float64() < p.loss
	p.arrives = !lost
	p.received <<= 1
	number := n
	if len(p.message) > 0 {
		number = p.number(n)
	}
	if !lost {
		p.received |= 1 << (n - number)
	}
	window := p.received >> (n - number) >> 1
	switch p.behavior {
	case silent:
		return
	case stalled:
		if n/(10*Hz)%2 == 0 && n >= Warmup {
			return
		}
	case liar:
		lost, window = len(p.message) == 0, ^uint64(0)
	case pinned:
		if n%snapshot.Ring != int(p.id)%snapshot.Ring {
			return
		}
		window = 0
	}
	if lost || random.Float64() < p.loss {
		return
	}
	p.acks = append(p.acks, pendingAck{n + p.delay, snapshot.Ack{Newest: uint16(number), Window: window & sentBefore(number)}})
}

// sentBefore masks the window of an ack of snapshot n.
func sentBefore(n int) uint64 {
	if n >= 63 {
		return 1<<63 - 1
	}
	return 1<<n - 1
}

// receiveAck passes the acks on that arrive before tick n.
func (p *player) receiveAck(n int, now time.Time) error {
	for len(p.acks) > 0 && p.acks[0].due < n+1 {
		if p.sampled {
			p.arrived = append(p.arrived, p.acks[0].ack)
		}
		p.buf = p.acks[0].ack.Append(append(p.buf[:0], 0))
		p.acks = p.acks[:copy(p.acks, p.acks[1:])]
		if err := p.streams.HandleAck(p.buf, now); err != nil && p.behavior == honest {
			return err
		}
	}
	return nil
}
