package worldbench

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// behavior describes how a client deviates from an honest client, which stays and acks all received
// snapshots. The zero value is an honest client.
type behavior struct {
	// The client receives nothing from tick deafFrom until before tick deafTo.
	deafFrom, deafTo int
	// loss is the loss of the client's datagrams and acks. 0 means the loss of all clients.
	loss float64
	// ack returns the ack of a tick, if there is one. nil selects the acks of an honest client.
	ack func(c *client, tick int) (snapshot.Ack, bool)
	// The client joins at tick join, leaves stay ticks later, and joins again at the next tick. If
	// stay is 0, it is present from the start.
	join, stay int
}

// deaf reports whether the client receives nothing at a tick.
func (b *behavior) deaf(tick int) bool { return tick >= b.deafFrom && tick < b.deafTo }

// answer returns the reply of the client to the offer at a tick, if it sends one.
func (b *behavior) answer(tick int) (a replication.Answer, ok bool) {
	if b.stay == 0 {
		return replication.Ready, tick == 0
	}
	switch at := tick - b.join; {
	case at < 0:
	case at%b.stay == 0:
		return replication.Ready, true
	case at%b.stay == b.stay-1:
		return replication.Refused, true
	}
	return a, false
}

const (
	stallTicks = 10 * rate // duration of the stall of the client that stalls
	stallStart = warmup + rate

	liars  = 10
	pinned = 10
)

// attack describes the clients of one kind in a hostile run.
type attack struct {
	name    string
	clients []behavior
}

// attacks returns the clients of a hostile run, by kind.
func attacks() []attack {
	var lies, pins, joins []behavior
	for i := range liars {
		lies = append(lies, behavior{ack: lie(i)})
	}
	for i := range pinned {
		pins = append(pins, behavior{ack: pin(8 + 5*i)})
	}
	for i := range 4 {
		joins = append(joins, behavior{join: warmup + 5*i, stay: 3*rate + 17*i})
	}
	return []attack{
		{"stall", []behavior{{deafFrom: stallStart, deafTo: stallStart + stallTicks}}},
		{"no acks", []behavior{{ack: silent}}},
		{"lies", lies},
		{"old baselines", pins},
		{"joins and leaves", joins},
		{"loss", []behavior{{loss: .1}}},
		{"jitter", []behavior{{ack: late}}},
	}
}

// hostile returns the clients of all attacks.
func hostile() (all []behavior) {
	for _, a := range attacks() {
		all = append(all, a.clients...)
	}
	return all
}

func silent(*client, int) (a snapshot.Ack, ok bool) { return a, false }

// late returns honest acks, most of which are delayed by up to a further quarter of a second.
func late(c *client, tick int) (snapshot.Ack, bool) {
	return snapshot.Ack{Newest: uint16(c.newest), Window: c.window}, c.any && c.chance(tick, 99) < .15
}

// lie returns acks of snapshots that have just been sent, with gaps. Sometimes it acks a snapshot
// that does not exist.
func lie(kind int) func(c *client, tick int) (snapshot.Ack, bool) {
	return func(c *client, tick int) (snapshot.Ack, bool) {
		if tick%(7+kind) == 0 {
			return snapshot.Ack{Newest: uint16(tick + kind)}, true
		}
		gaps := uint64(c.chance(tick, 100+kind) * (1 << 53))
		return c.sentUpTo(tick-1-kind%3, gaps&(1<<kind-1))
	}
}

// pin returns acks whose newest snapshot is the given number of ticks old.
func pin(age int) func(c *client, tick int) (snapshot.Ack, bool) {
	return func(c *client, tick int) (snapshot.Ack, bool) { return c.sentUpTo(tick-age, 0) }
}

// sentUpTo returns an ack of all snapshots that were sent to the client up to a tick, except those
// in gaps. Bit i of gaps stands for the i-th snapshot before the newest.
func (c *client) sentUpTo(tick int, gaps uint64) (a snapshot.Ack, ok bool) {
	all := uint64(0) // bit i stands for tick - i
	for i := 0; i < snapshot.Ring && i <= tick; i++ {
		if s := c.log[(tick-i)%len(c.log)]; s.sent && uint64(tick) < s.snapshot+snapshot.Ring {
			all |= 1 << (uint64(tick) - s.snapshot)
		}
	}
	skip := bits.TrailingZeros64(all)
	if all == 0 {
		return a, false
	}
	return snapshot.Ack{Newest: uint16(tick - skip), Window: all >> skip >> 1 &^ gaps & seq.Mask(63)}, true
}
