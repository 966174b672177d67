package session

import (
	"bytes"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	// maxDatagram is the largest UDP payload and tagSize the size of its AEAD tag, both in bytes.
	maxDatagram = 1200
	tagSize     = 16
	// packetOverhead is the size of a datagram without its payload, in bytes: the headers of IP,
	// UDP and the transport, and the AEAD tag.
	packetOverhead = endpoint.IPSize + endpoint.HeaderSize + tagSize
	// maxPayload is the largest message that one datagram carries, in bytes.
	maxPayload = maxDatagram - endpoint.HeaderSize - tagSize
	// fragmentPart is the part of a larger message in each of its fragments, in bytes.
	fragmentPart = maxPayload - fragment.HeaderSize
)

// simLink carries messages over a simulated link in one direction, in virtual time. A message that
// is larger than a datagram is fragmented, and lost if any of its fragments is lost. Not safe for
// concurrent use.
type simLink struct {
	queue     *simnet.Queue[datagram]
	link      *simnet.Link
	splitter  fragment.Splitter
	assembler *fragment.Assembler

	// bytes and datagrams count the sent data. Bytes include the headers down to IP.
	bytes, datagrams int
}

// datagram is a whole message or one fragment.
type datagram struct {
	payload    []byte
	fragmented bool
}

// newSimLink returns a link with the properties of cfg, or the error of simnet.NewLink.
func newSimLink(cfg simnet.Config) (*simLink, error) {
	link, err := simnet.NewLink(cfg)
	if err != nil {
		return nil, err
	}
	return &simLink{
		queue: simnet.NewQueue[datagram](link), link: link,
		assembler: fragment.NewAssembler(fragmentPart, fragment.MaxCount),
	}, nil
}

// wireSize returns the bytes of a message of n bytes on the link, with the headers down to IP.
func wireSize(n int) int {
	if n <= maxPayload {
		return n + packetOverhead
	}
	fragments := (n + fragmentPart - 1) / fragmentPart
	return n + fragments*(packetOverhead+fragment.HeaderSize)
}

// send sends a copy of message. A message of more than fragment.MaxCount fragments is an error.
func (l *simLink) send(now time.Duration, message []byte) error {
	if len(message) <= maxPayload {
		l.push(now, datagram{payload: bytes.Clone(message)})
		return nil
	}
	fragments, err := l.splitter.Split(nil, message, fragmentPart)
	if err != nil {
		return err
	}
	for {
		b, ok := fragments.Next(nil)
		if !ok {
			return nil
		}
		l.push(now, datagram{payload: b, fragmented: true})
	}
}

func (l *simLink) push(now time.Duration, d datagram) {
	size := len(d.payload) + packetOverhead
	l.queue.Push(now, d, size)
	l.bytes += size
	l.datagrams++
}

// deliver calls f with each message that is complete, which is valid during the call only.
func (l *simLink) deliver(now time.Duration, f func(at time.Duration, message []byte)) {
	for {
		d, at, ok := l.queue.Pop(now)
		if !ok {
			return
		}
		message := d.payload
		if d.fragmented {
			message, _ = l.assembler.Add(d.payload) // nil after an error
		}
		if message != nil {
			f(at, message)
		}
	}
}

// historyTicks is the capacity of a history: four seconds.
const historyTicks = 4 * world.TickRate

// history is a ring buffer of the poses of all cubes in the server's last ticks.
type history struct {
	frames [historyTicks][]statesync.Pose
	newest int
}

func newHistory(count int) history {
	var t history
	for i := range t.frames {
		t.frames[i] = make([]statesync.Pose, count)
	}
	return t
}

func (t *history) push(tick int, bodies []world.Body) {
	t.newest = tick
	frame := t.frames[tick%historyTicks]
	for i := range bodies {
		frame[i] = bodyPose(&bodies[i])
	}
}

// interval is a time between two ticks of the history.
type interval struct {
	from, to []statesync.Pose
	fraction float64
}

// at returns the interval of a time. It returns false if the time is not in the history.
func (t *history) at(when time.Duration) (interval, bool) {
	ticks := when.Seconds() * world.TickRate
	tick := int(ticks)
	if when < 0 || tick > t.newest || tick <= t.newest-historyTicks {
		return interval{}, false
	}
	from, to := t.frames[tick%historyTicks], t.frames[min(tick+1, t.newest)%historyTicks]
	return interval{from, to, ticks - float64(tick)}, true
}

func (m *interval) pose(i int) statesync.Pose {
	a, b := &m.from[i], &m.to[i]
	if *a == *b || m.fraction == 0 {
		return *a
	}
	return statesync.Pose{
		Position:    lerp(a.Position, b.Position, m.fraction),
		Orientation: interpolate.Slerp(a.Orientation, b.Orientation, m.fraction),
	}
}

func lerp(a, b schema.Vec3, f float64) schema.Vec3 {
	return schema.Vec3{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y), Z: a.Z + f*(b.Z-a.Z)}
}
