package replication

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TestInvalidAcks checks that acks that no client sends are rejected and counted, and that they do
// not affect another player.
func TestInvalidAcks(t *testing.T) {
	for _, codec := range codecs {
		r := newRecording(t, codec, recorded(t, small, 20), true, 2)
		for range 20 {
			r.step()
		}
		hostile, honest := r.players[0], r.players[1]
		valid := r.appendAck(nil, 19, 0)
		invalid := map[string][]byte{
			"empty":           {0},
			"not yet sent":    r.appendAck(nil, 20, 0),
			"far ahead":       r.appendAck(nil, 40_000, 0),
			"too long":        append(bytes.Clone(valid), 0),
			"truncated":       r.appendAck(nil, 19, 5)[:2],
			"much too long":   append([]byte{0}, bytes.Repeat([]byte{1}, 1000)...),
			"unknown stream":  append([]byte{1}, valid[1:]...),
			"invalid number":  append([]byte{200}, valid[1:]...),
			"without number":  {},
			"before number 0": r.appendAck(nil, 5, 1<<6),
			"window overflow": {0, 9 << 2, 0, 19, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		}
		if codec == StateCodec {
			delete(invalid, "before number 0") // epochs may begin before it
		}
		want := uint64(0)
		for name, b := range invalid {
			err := hostile.replicas.HandleAck(b, r.now)
			if err == nil {
				t.Errorf("%s: ack %s is accepted", codec, name)
			}
			if errors.Is(err, ErrInvalidAck) {
				want++
			}
		}
		if st := hostile.replica.Stats(); st.InvalidAcks != want || want < 6 {
			t.Errorf("%s: %+v, want %d invalid acks", codec, st, want)
		}
		r.step()
		if st := honest.replica.Stats(); st.Messages != 21 || st.BaselineAge != ackDelay+1 || st.InvalidAcks != 0 {
			t.Errorf("%s: the honest player has %+v", codec, st)
		}
	}
}

// TestStateReset checks that a client resets its stream once by an ack that requests it, and that
// acks of another epoch, which may be late, are ignored.
func TestStateReset(t *testing.T) {
	r := newRecording(t, StateCodec, recorded(t, small, 20), true, 1)
	for range 20 {
		r.step()
	}
	p := r.players[0]
	other := statesync.Ack{Epoch: 7, Newest: 19}
	must(t, p.replicas.HandleAck(other.Append([]byte{0}), r.now))
	reset := statesync.Ack{Reset: true, Newest: 15}
	must(t, p.replicas.HandleAck(reset.Append([]byte{0}), r.now))
	r.step()
	if st := p.replica.Stats(); st.Resets != 1 || st.BaselineAge != 0 || st.InvalidAcks != 0 {
		t.Errorf("%+v", st)
	}
}

// FuzzStreams handles arbitrary replies and acks of one player, of a world by each codec: see
// package entries. The other player's messages continue.
func FuzzStreams(f *testing.F) {
	frames := recorded(f, small, 20)
	for _, a := range []snapshot.Ack{{Newest: 9, Window: 1<<9 - 1}, {None: true, Epoch: 3}} {
		f.Add(entries.Of(a.Append([]byte{0}), false))
	}
	for _, a := range []statesync.Ack{{Newest: 9, Window: 1<<9 - 1}, {None: true, Reset: true}, {Reset: true, Epoch: 1, Newest: 9}, {Newest: 65_535}} {
		f.Add(entries.Of(a.Append([]byte{0}), false))
	}
	for a := range answers {
		reply := entries.Of(AppendReply(nil, 0, a)[1:], true)
		f.Add(append(reply, reply...))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, codec := range codecs {
			r := newRecording(t, codec, frames, true, 2)
			for range 10 {
				r.step()
			}
			r.some = true
			hostile, honest := r.players[0], r.players[1]
			for b, reliable := range entries.All(in) {
				if reliable {
					_ = hostile.replicas.HandleReply(b, &hostile.queue, r.now)
				} else {
					_ = hostile.replicas.HandleAck(b, r.now)
				}
			}
			hostile.queue.Send(0)
			if st := hostile.replica.Stats(); st.Ready == 0 || st.Messages == 0 { // it unsubscribed, or resubscribed
				r.players = r.players[1:]
				hostile.replicas.Close()
			}
			for range 70 { // more than a ring
				r.send()
				must(t, honest.replicas.HandleAck(r.appendAck(nil, uint16(r.tick-1-ackDelay), 1<<min(r.tick-1-ackDelay, 63)-1), r.now))
			}
			if st := honest.replica.Stats(); st.Messages != 80 || st.BaselineAge != ackDelay+1 {
				t.Fatalf("%s: the honest player has %+v", codec, st)
			}
		}
	})
}

// TestSendQueueLength checks that a stream is in a queue once, however often the client requests
// the initial state, until that is sent.
func TestSendQueueLength(t *testing.T) {
	r := newRecording(t, SnapshotCodec, recorded(t, small, 20), true, 1)
	p := r.players[0]
	request := func() {
		p.reply(r, Refused)
		p.reply(r, Request)
	}
	p.Stall = maxUnacked
	for i := range 1000 {
		request()
		request()
		if i%2 == 0 {
			p.queue.Send(0)
		}
	}
	if n := len(p.queue.replicas); n != 1 {
		t.Errorf("the queue has %d entries", n)
	}
	p.Stall = 0
	p.queue.Send(0)
	size := uint64(len(r.world.snapshots.initial))
	if n := len(p.queue.replicas); n != 0 || p.replica.Stats().InitialBytes != size {
		t.Errorf("%d entries are left, %+v", n, p.replica.Stats())
	}
	request()
	p.queue.Send(0)
	if st := p.replica.Stats(); st.InitialBytes != 2*size {
		t.Errorf("the initial state is not sent again: %+v", st)
	}
	request()
	p.reply(r, Refused)
	if p.queue.Send(time.Hour); len(p.queue.replicas) != 0 || p.replica.Stats().InitialBytes != 2*size {
		t.Errorf("the initial state is sent to a client that unsubscribed")
	}
}

// TestInitialStateLimit checks how often a client that acknowledges everything at once receives the
// initial state: twice, and then once per initialInterval, and always completely.
func TestInitialStateLimit(t *testing.T) {
	r := newRecording(t, SnapshotCodec, recorded(t, small, 20), true, 1)
	p, size := r.players[0], uint64(len(r.world.snapshots.initial))
	const asked = time.Minute
	since := time.Duration(0)
	for ; since < asked; since += 100 * time.Millisecond {
		p.reply(r, Refused)
		p.reply(r, Request)
		p.queue.Send(since)
	}
	before := p.replica.Stats().InitialBytes
	if before < size*7/2 || before > size*(2+uint64(asked/initialInterval)) {
		t.Errorf("%d bytes of an initial state of %d are sent", before, size)
	}
	p.reply(r, Refused)
	p.reply(r, Request)
	for range 10 * int(initialInterval/time.Second) {
		since += 100 * time.Millisecond
		p.queue.Send(since)
	}
	if n := p.replica.Stats().InitialBytes; n != before+size || len(p.queue.replicas) != 0 {
		t.Errorf("%d bytes of %d after a wait", n-before, size)
	}
}

// TestLargeUntilAcked checks that a client receives snapshots of several datagrams ever less often,
// from minHold on, until it acks one, also if it resubscribes all the time, and every tick
// afterwards.
func TestLargeUntilAcked(t *testing.T) {
	for _, resubscribe := range []bool{false, true} {
		r := newRecording(t, SnapshotCodec, recorded(t, small, all), false, 1)
		p := r.players[0]
		run := func(ack bool) (messages uint64) {
			before := p.replica.Stats().Messages
			for range tickHz {
				if resubscribe {
					p.reply(r, Refused)
					p.reply(r, Ready)
				}
				r.next()
				sent := p.replica.Stats().Messages
				must(t, p.replica.Send(r.now))
				if ack && p.replica.Stats().Messages > sent {
					must(t, p.replicas.HandleAck(r.appendAck(nil, uint16(r.tick-1), 0), r.now))
				}
			}
			return p.replica.Stats().Messages - before
		}
		if n := run(false); n != 4 || p.replica.Stats().Fragmented != n {
			t.Errorf("%d messages in a second without acks, stats %+v", n, p.replica.Stats())
		}
		if resubscribe {
			continue
		}
		run(true) // the last one is still held
		if n := run(true); n != tickHz {
			t.Errorf("%d messages in a second with acks", n)
		}
	}
}

// TestSilentAllTheTime checks that a client that acks nothing receives more large snapshots once it
// is heard after a silence, but not for as often as it likes.
func TestSilentAllTheTime(t *testing.T) {
	messages := func(silences bool) uint64 {
		r := newRecording(t, SnapshotCodec, recorded(t, small, all), false, 1)
		p := r.players[0]
		for n := range 60 * tickHz {
			if silences && n%tickHz == 0 {
				p.Back = r.now
			}
			r.next()
			must(t, p.replica.Send(r.now))
		}
		return p.replica.Stats().Messages
	}
	never, always := messages(false), messages(true)
	if t.Logf("%d messages in a minute, %d if it is silent all the time", never, always); never > 20 || always < 2*never || always > 100 {
		t.Errorf("%d messages in a minute, %d if it is silent all the time", never, always)
	}
}

// hostileAck is an ack of a client that knows what was sent.
type hostileAck struct {
	none, reset    bool
	newest, window uint64
}

var hostileAcks = map[string]func(newest uint64) hostileAck{
	"none": func(uint64) hostileAck { return hostileAck{none: true} },
	"changing windows": func(n uint64) hostileAck {
		return hostileAck{newest: n, window: n * 0x9e3779b97f4a7c15 & (1<<min(n, 63) - 1)}
	},
	"resets":     func(n uint64) hostileAck { return hostileAck{newest: n, reset: true} },
	"the oldest": func(n uint64) hostileAck { return hostileAck{newest: n - min(n, 50)} },
}

// TestHostileAcksMemory checks that the memory that a server keeps of sent messages does not grow,
// whatever the player acks.
func TestHostileAcksMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	const players, slack = 4, 16 << 10
	for name, ack := range hostileAcks {
		for _, codec := range codecs {
			r := newRecording(t, codec, recorded(t, small, 20), true, players)
			r.some = true
			measure := func(ticks int) int64 {
				for range ticks {
					r.send()
					for _, p := range r.players {
						h, n := ack(r.tick-1), r.tick-1
						a := snapshot.Ack{None: h.none, Newest: uint16(h.newest), Window: h.window}
						if h.reset {
							a.Epoch = uint8(n)
						}
						b := a.Append([]byte{0})
						if codec == StateCodec {
							_, epoch := p.replica.sender.(*stateSender).sender.Next()
							s := statesync.Ack{None: h.none, Reset: h.reset && n%2 == 0, Epoch: epoch - 64}
							s.Newest, s.Window = a.Newest, a.Window
							b = s.Append([]byte{0})
						}
						_ = p.replicas.HandleAck(b, r.now) // it may be of snapshots that were not sent
					}
				}
				return allocs.Heap()
			}
			before := measure(500)
			if after := measure(3000); after > before+players*slack {
				t.Errorf("%s: %s: %d bytes, before %d", name, codec, after, before)
			}
			runtime.KeepAlive(r)
		}
	}
}

// TestControlTypes checks that the numbers of streams fit the types of datagrams.
func TestControlTypes(t *testing.T) {
	for n := range uint8(MaxReplicas) {
		for _, kind := range []message.Type{message.Down, message.DownFragment} {
			b := []byte{byte(kind) | n, 1}
			if got, body, err := message.Split(b); got != kind || err != nil || Number(body) != n {
				t.Errorf("%x: type %x, %v", b, got, err)
			}
		}
	}
}
