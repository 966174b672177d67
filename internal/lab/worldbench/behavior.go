package worldbench

import (
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/snapshot"
)

// behavior is how a client deviates from the protocol. The zero value does not.
type behavior struct {
	// From deafFrom up to before deafTo the client receives nothing.
	deafFrom, deafTo int
	// ack returns the ack of a tick, if there is one; nil selects that of an honest client.
	ack func(c *client, tick int) (snapshot.Ack, bool)
}

// deaf reports whether the client receives nothing at a tick.
func (b *behavior) deaf(tick int) bool { return tick >= b.deafFrom && tick < b.deafTo }

const (
	stallTicks = 10 * rate // of the client that stalls
	stallStart = warmup + rate

	liars  = 10
	pinned = 10
)

// hostile returns the clients of a hostile run: one stalls for ten seconds, one acks nothing, some
// ack what they have not received, and some pin old baselines, each another one.
func hostile() []behavior {
	all := []behavior{{deafFrom: stallStart, deafTo: stallStart + stallTicks}, {ack: silent}}
	for i := range liars {
		all = append(all, behavior{ack: lie(i)})
	}
	for i := range pinned {
		all = append(all, behavior{ack: pin(8 + 5*i)})
	}
	return all
}

func silent(*client, int) (a snapshot.Ack, ok bool) { return a, false }

// lie returns acks of snapshots that have just been sent, with gaps, and now and then of one that
// does not exist.
func lie(kind int) func(c *client, tick int) (snapshot.Ack, bool) {
	return func(c *client, tick int) (snapshot.Ack, bool) {
		newest := tick - 1 - kind%3
		if tick%(7+kind) == 0 {
			newest = tick + kind
		}
		if newest < 0 {
			return snapshot.Ack{}, false
		}
		gaps := uint64(c.chance(tick, 100+kind) * (1 << 53))
		return snapshot.Ack{Newest: uint16(newest), Window: (seq.Mask(63) ^ gaps&(1<<kind-1)) & seq.Mask(uint64(min(newest, 63)))}, true
	}
}

// pin returns acks whose newest snapshot is so many ticks old.
func pin(age int) func(c *client, tick int) (snapshot.Ack, bool) {
	return func(_ *client, tick int) (snapshot.Ack, bool) {
		newest := tick - age
		if newest < 0 {
			return snapshot.Ack{}, false
		}
		return snapshot.Ack{Newest: uint16(newest), Window: seq.Mask(uint64(min(newest, 63)))}, true
	}
}
