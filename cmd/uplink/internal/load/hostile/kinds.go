package hostile

import (
	"strings"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rogue"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/transport"
)

type kind struct {
	name string
	rate float64 // steps per second: the rate that the session permits, or above which datagrams are dropped
	deaf bool    // acknowledges nothing on the reliable channel
	step func(a *actor, i int)
	binds
	evolved bool // describes other fields of the RPCs than the server has
}

// binds determines the RPCs that a kind binds before its first step.
type binds int

const (
	nothing binds = iota
	unreliable
	reliable
)

// kinds are all kinds of hostile client. Rates that would end a session are slightly below its
// limits.
var kinds = []kind{
	{name: "refused-binds", rate: 200, step: refusedBinds},
	{name: "replies", rate: 45, step: replies},
	{name: "unacked-replies", rate: 45, deaf: true, step: unackedReplies},
	{name: "resubscriptions", rate: 45, step: resubscriptions},
	{name: "no-acks", rate: 20, step: noAcks},
	{name: "false-acks", rate: 200, step: falseAcks},
	{name: "resets", rate: 200, step: resets},
	{name: "messages", rate: 1900, step: messages},
	{name: "unacked-messages", rate: 95, deaf: true, step: unackedMessages},
	{name: "duplicate-segments", rate: 100, step: duplicateSegments},
	{name: "heartbeats", rate: 1000, step: heartbeats},
	{name: "moves", rate: 200, step: moves},
	{name: "garbage", rate: 1000, step: garbage},
	{name: "malformed-frames", rate: fullRate, step: malformedFrames, binds: unreliable},
	{name: "heavy-frames", rate: fullRate, step: heavyFrames, binds: unreliable},
	{name: "evolved", rate: fullRate, step: heavyFrames, binds: unreliable, evolved: true},
	{name: "old-baselines", rate: fullRate, step: oldBaselines, binds: unreliable},
	{name: "bundles", rate: fullRate / message.MaxBundle, step: bundles, binds: unreliable},
	{name: "reliable-frames", rate: fullRate / 2, step: reliableFrames, binds: reliable},
}

// Kinds returns the names of all kinds of hostile client.
func Kinds() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

// refusedBinds requests an unknown RPC and another schema, in requests as large as a datagram.
func refusedBinds(a *actor, i int) {
	r := a.request(i % bindings)
	if i%2 == 0 {
		r.Name = strings.Repeat("x", 1000)
	} else {
		r.Fingerprint, r.Fields = 1, make([]uint16, 300)
	}
	a.ask(&r)
}

// alternate alternately replies with a refusal and with r.
func (a *actor) alternate(i int, codec string, r replication.Answer) {
	n, _, _ := a.stream(codec)
	if i%2 == 0 {
		r = replication.Refused
	}
	a.reply(n, r)
}

// replies requests the initial state again and again.
func replies(a *actor, i int) { a.alternate(i, replication.SnapshotCodec, replication.Request) }

// unackedReplies is like replies, but does not acknowledge the server's segments.
func unackedReplies(a *actor, i int) {
	a.push(replication.AppendReply(nil, 0, replication.Answer(i%2)))
}

// push sends a message as a segment, and repeats the previous segment, but acknowledges nothing.
func (a *actor) push(messages ...[]byte) {
	var all []rogue.Segment
	for _, m := range messages {
		all = append(all, rogue.Segment{Command: rogue.Push, Window: 64, Number: a.number, Data: rogue.Message(m)})
		a.number++
	}
	for range 2 { // twice, in case the first one is lost
		_ = a.c.Segments(all...)
	}
}

// resubscriptions leaves and joins the worlds again and again.
func resubscriptions(a *actor, i int) {
	codec := replication.SnapshotCodec
	if i/2%2 == 1 {
		codec = replication.StateCodec
	}
	a.alternate(i, codec, replication.Ready)
}

// subscribe subscribes to both channels once.
func (a *actor) subscribe(i int) {
	if i > 0 && i%int(a.kind.rate) == 0 && i < 3*int(a.kind.rate) { // the offers may arrive later
		for _, codec := range []string{replication.SnapshotCodec, replication.StateCodec} {
			n, _, _ := a.stream(codec)
			a.reply(n, replication.Ready)
		}
	}
}

// noAcks subscribes to both worlds and acks neither.
func noAcks(a *actor, i int) { a.subscribe(i) }

// ack acks the newest messages of both streams alternately.
func (a *actor) ack(i int, snapshots snapshot.Ack, state statesync.Ack) {
	a.subscribe(i)
	if i%2 == 0 {
		n, seq, _ := a.stream(replication.SnapshotCodec)
		snapshots.Newest = seq
		_ = a.c.Send(snapshots.Append([]byte{byte(message.DownAck), n}))
		return
	}
	n, seq, epoch := a.stream(replication.StateCodec)
	state.Newest, state.Epoch = seq, epoch
	_ = a.c.Send(state.Append([]byte{byte(message.DownAck), n}))
}

// falseAcks acks the newest message, and a different random half of the earlier messages each time.
func falseAcks(a *actor, i int) {
	window := a.rng.Uint64()
	a.ack(i, snapshot.Ack{Window: window}, statesync.Ack{Window: window})
}

// resets requests a reset with each ack.
func resets(a *actor, i int) {
	a.ack(i, snapshot.Ack{Epoch: uint8(i/2) | 1}, statesync.Ack{Reset: i%4 == 3})
}

// messages sends the smallest messages of the game, which the game echoes.
func messages(a *actor, i int) { _ = a.c.SendReliable(message.AppendMessage(nil, []byte{byte(i)})) }

// unackedMessages is like messages, with 20 messages per datagram, but acknowledges nothing.
func unackedMessages(a *actor, i int) {
	var all [][]byte
	for range 20 {
		all = append(all, message.AppendMessage(nil, []byte{byte(i)}))
	}
	a.push(all...)
}

// duplicateSegments repeats the same segment, as many times as fit into a datagram.
func duplicateSegments(a *actor, _ int) {
	data := rogue.Message([]byte{byte(message.Message)})
	all := make([]rogue.Segment, transport.MaxPayload/(rogue.SegmentSize+len(data)))
	for i := range all {
		all[i] = rogue.Segment{Command: rogue.Push, Window: 64, Data: data}
	}
	_ = a.c.Segments(all...)
}

// heartbeats requests answers to heartbeats and to probes.
func heartbeats(a *actor, i int) {
	if i%2 == 0 {
		_ = a.c.Heartbeat(uint32(i)+1, uint32(i))
	} else {
		_ = a.c.Probe()
	}
}

// moves changes its address 20 times per second.
func moves(a *actor, i int) {
	if i%10 == 0 {
		_ = a.c.Move()
	}
	_ = a.c.Heartbeat(uint32(i)+1, 0)
}

func garbage(a *actor, _ int) { _ = a.c.Send(a.rubbish(1 + a.rng.IntN(1000))) }

// header returns the long header of a frame that has no baseline.
func header(rpc, seq int) []byte { return []byte{0x80, byte(rpc), byte(seq), byte(seq >> 8), 0} }

// malformedFrames sends frames of bound RPCs that consist of random bits.
func malformedFrames(a *actor, i int) {
	_ = a.c.Send(append(header(i%bindings, i/bindings), a.rubbish(200)...))
}

// heavyFrames sends as many older frames as possible, all unpredictable and without a baseline.
func heavyFrames(a *actor, i int) {
	if b := a.encode(i % bindings); b != nil {
		_ = a.c.Send(b)
	}
}

// oldBaselines is like heavyFrames, but with the oldest possible baseline: it processes acks late.
func oldBaselines(a *actor, i int) {
	const late = 4 // number of acks; 10 arrive per second
	n := i % bindings
	a.mu.Lock()
	if acks := &a.acks[n]; len(*acks) > late {
		_ = a.encoders[n].Ack((*acks)[0]) // an ack that is too old is an error
		*acks = (*acks)[1:]
	}
	a.mu.Unlock()
	heavyFrames(a, i)
}

// bundles sends bundles with the maximum number of frames, each as small as possible.
func bundles(a *actor, i int) {
	all := message.NewBundler(transport.MaxPayload)
	for n := range message.MaxBundle {
		all.Add(append(header(n%bindings, i*message.MaxBundle+n), a.rubbish(40)...))
	}
	_ = a.c.Send(all.Take())
}

// reliableFrames calls reliable RPCs at the declared rate.
func reliableFrames(a *actor, i int) {
	if a.pending == nil {
		a.pending = a.encode(i % bindings)
	}
	if a.pending != nil && a.c.SendReliable(a.pending) == nil {
		a.pending = nil
	}
}
