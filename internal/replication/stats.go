package replication

import (
	"errors"
	"reflect"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// ipSize is the size of the IPv4 and UDP headers of a datagram, in bytes.
const ipSize = 20 + 8

// Stats counts the messages of a world: at a server those to one player or to all
// players, at a client those received. All sizes are in bytes. Fields that only one end counts are
// 0 at the other.
type Stats struct {
	// Name is the name of the world.
	Name string
	// TickHz is the number of ticks per second, at a server.
	TickHz float64

	// Messages counts the messages sent, or received and decoded.
	Messages uint64
	// Datagrams counts the datagrams with messages or fragments.
	Datagrams uint64
	// Bytes counts the content of these datagrams at a server, and of complete messages at a
	// client.
	Bytes uint64
	// Updates counts the objects updated or removed by state packets.
	Updates uint64
	// InitialBytes counts the bytes of initial states that were sent or received, over the reliable
	// channel.
	InitialBytes uint64
	// AckBytes counts the acks received or sent, without headers.
	AckBytes uint64

	// Players is the number of players to whom the world is offered, at a server.
	Players int
	// Ready is the number of players to whom it is sent, at a server.
	Ready int
	// Ticks counts the ticks of the world, at a server.
	Ticks uint64
	// Encodings counts the encodings of snapshots, or in a world with areas those of groups, at a
	// server. Players with the same baseline share one.
	Encodings uint64
	// Acked counts the messages that were acked, at a server.
	Acked uint64
	// Unsent counts the messages that could not be sent, at a server: snapshots that were too
	// large, or state of which no object fits the bandwidth.
	Unsent uint64
	// Held counts the messages that were not made because the path of a player had no room for
	// them, at a server.
	Held uint64
	// Resets counts the resets of state synchronization, at a server: nothing was acked for too
	// long, or the client had lost its baselines.
	Resets uint64
	// Fragmented counts the messages that were sent in fragments, at a server.
	Fragmented uint64
	// AEADBytes is the AEAD overhead of the datagrams, at a server.
	AEADBytes uint64
	// InvalidAcks counts the invalid acks received, at a server.
	InvalidAcks uint64
	// Keyframes counts the messages without a baseline, at a server.
	Keyframes uint64
	// Sharing is the sum over all messages of the number of players who shared their encoding, at a
	// server: Sharing/Messages is the mean. With areas it is the mean of the groups of a message;
	// state is encoded for each player.
	Sharing uint64
	// BaselineAge is the number of ticks between the last message and its baseline, at a server:
	// the maximum over all players, and 0 if the message had no baseline.
	BaselineAge uint64
	// AckAge is the number of ticks since the client last acked a message, at a server: the maximum
	// over all players.
	AckAge uint64
	// Objects is the number of objects that the player has according to the last message, at a
	// server: the sum over all players.
	Objects int
	// Waiting is the number of objects that wait for bandwidth, at a server: the sum over all
	// players. With areas, these are objects that enter a view; with state, those that have a
	// priority and were in none of the last 32 messages.
	Waiting int

	// Rate is the rate of the world's ticks, measured over the last seconds, relative to TickHz:
	// 0.9 if ticks take 11 % longer.
	Rate float64

	// Fragments counts the datagrams with fragments, at a client.
	Fragments uint64
	// Initial is the size of the initial states that a client requested, one for each session.
	Initial uint64
	// Acks counts the acks that a client sent.
	Acks uint64
	// Late counts messages that were dropped at a client as duplicates, or too old to be of use.
	Late uint64
	// BaselineMissing counts messages that were dropped because the client lacks their baseline.
	BaselineMissing uint64
	// Desync counts messages that were dropped because the client's baseline differs.
	Desync uint64
	// Incomplete counts messages with fragments that did not arrive.
	Incomplete uint64
	// Partial counts the streams after a reconnection or a handover whose view was shown before all
	// of its objects had arrived, because that took too long.
	Partial uint64
	// Unpolled counts updates that were dropped because too many were waiting for Poll.
	Unpolled uint64
	// BadFragments counts fragments that belong to no valid message. A correct server causes
	// neither this error nor the following ones.
	BadFragments uint64
	// Truncated counts messages that end in their header.
	Truncated uint64
	// BadCounts counts messages with too many objects.
	BadCounts uint64
	// BadIDs counts messages with an invalid object id.
	BadIDs uint64
	// BadValues counts messages with a value out of its field's range.
	BadValues uint64
	// Malformed counts messages that are malformed in another way.
	Malformed uint64
}

// Add adds the counts of o. BaselineAge and AckAge become the maximum of both; Name, TickHz and
// Rate stay.
func (st *Stats) Add(o *Stats) {
	baseline, ack := max(st.BaselineAge, o.BaselineAge), max(st.AckAge, o.AckAge)
	sum, more := reflect.ValueOf(st).Elem(), reflect.ValueOf(o).Elem()
	for i := range sum.NumField() {
		switch f := sum.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(f.Uint() + more.Field(i).Uint())
		case reflect.Int:
			f.SetInt(f.Int() + more.Field(i).Int())
		default:
		}
	}
	st.BaselineAge, st.AckAge = baseline, ack
}

// WireBytes returns the size of the datagrams that a server sent, with all headers down to IP.
func (st *Stats) WireBytes() uint64 {
	return st.Bytes + st.AEADBytes + st.Datagrams*(ipSize+wire.DataSize)
}

// CountError counts an error of a codec's decoder in st, by its reason.
func CountError(st *Stats, err error) {
	for _, c := range []struct {
		reason error
		count  *uint64
	}{
		{snapshot.ErrLate, &st.Late},
		{snapshot.ErrBaselineMissing, &st.BaselineMissing},
		{snapshot.ErrDesync, &st.Desync},
		{malformed.ErrTruncated, &st.Truncated},
		{malformed.ErrCount, &st.BadCounts},
		{malformed.ErrID, &st.BadIDs},
		{malformed.ErrBounds, &st.BadValues},
	} {
		if errors.Is(err, c.reason) {
			*c.count++
			return
		}
	}
	st.Malformed++
}

// AddStats adds st to the element of all with the same name, or appends it.
func AddStats(all []Stats, st *Stats) []Stats {
	for i := range all {
		if all[i].Name == st.Name {
			all[i].Add(st)
			return all
		}
	}
	return append(all, *st)
}
