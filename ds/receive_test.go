package ds

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

// TestReceiveAllocatesNothing receives frames with byte slices in all ways to run handlers, with a
// profile and with a tap.
func TestReceiveAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, c := range map[string]struct {
		cfg     Config
		options []HandleOption
		profile int
		tap     PlayerTap
	}{
		"Serve":        {},
		"Poll":         {cfg: Config{Poll: true}},
		"JitterBuffer": {cfg: Config{Poll: true, TickHz: 60}, options: []HandleOption{JitterBuffer{Repeat: 1, Depth: 33 * time.Millisecond}, ForPrediction{}}},
		"TimeCheck":    {options: []HandleOption{TimeCheck{Resolve: true}}},
		"Profile":      {profile: 1},
		"Tap":          {tap: &countingTap{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got uint64
			b := newBench(t, c.cfg, func(_ *Player, f Frame[testCall]) {
				var want testCall
				want.set(f.Seq)
				if f.Seq != got || f.Missed != 0 || string(f.Value.Payload) != string(want.Payload) {
					t.Errorf("frame %d after %d, %d missed: %v", f.Seq, got, f.Missed, f.Value)
				}
				got++
			}, c.options...)
			b.srv.Profile(c.profile)
			s := b.join(0)
			s.player.tap = c.tap
			at := time.Now()
			var acks []byte
			frame := func() {
				at = at.Add(time.Second / 60)
				s.player.receive(s.payload(), at.Add(-4*time.Millisecond), false)
				b.srv.buffers.begin()
				b.srv.buffers.release(at)
				if s.next%6 == 0 {
					b.srv.queue.run()
					acks = s.player.bindings.appendAcks(acks[:0], 0, at) // a report alone
					acks = s.ack(acks)
				}
			}
			for range 1000 {
				frame()
			}
			if n := allocs.PerRun(1000, frame); n != 0 {
				t.Errorf("%v allocations per frame", n)
			}
			b.srv.queue.run()
			st := b.stats().RPCs[0]
			if got+uint64(st.Buffer.Held) != s.next || st.Frames() != s.next || st.Delta < s.next*9/10 || st.Buffer.Missing != 0 {
				t.Errorf("%d of %d frames handled, counted %+v", got, s.next, st)
			}
		})
	}
}

// TestWithAcksAllocs verifies that acks in front of messages of worlds allocate nothing, with
// reports on jitter buffers and without.
func TestWithAcksAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for kind, cfg := range map[message.Type]Config{
		message.WithAcks:  {},
		message.WithSlack: {Poll: true, TickHz: 60},
	} {
		var options []HandleOption
		if cfg.Poll {
			options = append(options, JitterBuffer{})
		}
		b := newBench(t, cfg, func(*Player, Frame[testCall]) {}, options...)
		s := b.join(0)
		at, msg := time.Now(), []byte{byte(message.Down) | 2, 1, 2, 3}
		seen := map[message.Type]int{}
		one := func() {
			at = at.Add(time.Second / 60)
			s.player.receive(s.payload(), at, false)
			s.player.bindings.Lock()
			got := s.player.bindings.withAcks(msg, at)
			s.player.bindings.Unlock()
			t, body, err := message.Split(got)
			seen[t]++
			if t != message.WithAcks && t != message.WithSlack {
				return
			}
			acks, rest, bad := message.ParseWithAcks(body)
			if t == message.WithSlack && bad == nil {
				var reports [1]message.Buffered
				_, acks, bad = message.ParseSlack(reports[:0], acks)
			}
			a, _, invalid := rpcdelta.ParseAck(acks)
			must(b.t, errors.Join(err, bad, invalid, s.enc.Ack(a)))
			if !bytes.Equal(rest, msg) {
				b.t.Fatalf("%x in front of %x", acks, rest)
			}
		}
		for range 100 {
			one()
		}
		clear(seen)
		if n := allocs.PerRun(1000, one); n != 0 || seen[kind] < 50 {
			t.Errorf("%v allocations per message, types %v", n, seen)
		}
	}
}

// TestAcksInFrontAreLimited verifies that each ack in a datagram counts for the rate limit, and
// that nothing after the last permitted one is used.
func TestAcksInFrontAreLimited(t *testing.T) {
	b := newBench(t, Config{Limits: Limits{RateSlack: 1}}, func(*Player, Frame[testCall]) {})
	s := b.join(0)
	acks := bytes.Repeat([]byte{byte(message.DownAck), 1, 0x81, 0}, 230) // of no stream
	s.player.receive(append(acks, s.payload()...), time.Time{}, false)
	st := b.stats()
	want := uint64(burstSeconds * s.player.limits.rate.PerSecond)
	if st.Drops[Malformed] != want || st.Drops[RateLimited] != 1 || st.RPCs[0].Messages != 0 || want > 229 {
		t.Errorf("%d acks and %d payloads are handled, %d dropped, want %d acks", st.Drops[Malformed], st.RPCs[0].Messages, st.Drops[RateLimited], want)
	}
}

// TestAcksOfCallsAreLimited verifies that each ack of calls counts for the rate limit.
func TestAcksOfCallsAreLimited(t *testing.T) {
	b := newBench(t, Config{Limits: Limits{RateSlack: 1}}, func(*Player, Frame[testCall]) {})
	s := b.join(0)
	ack := rpcdelta.Ack{None: true}
	acks := ack.Append([]byte{byte(message.Acks)})
	for range 50 {
		acks = ack.Append(acks)
	}
	for range 100 {
		s.player.receive(acks, time.Time{}, false)
	}
	handled := uint64(burstSeconds*s.player.limits.rate.PerSecond) / 51
	if st := b.stats(); st.Drops[InvalidAck] != handled || st.Drops[RateLimited] != 100-handled {
		t.Errorf("%d messages are handled, %d dropped, want %d handled", st.Drops[InvalidAck], st.Drops[RateLimited], handled)
	}
}

// TestTooManyMessages verifies that most payloads of a flood are not decoded.
func TestTooManyMessages(t *testing.T) {
	const messages = 10_000 // in a second
	b := newBench(t, Config{Limits: Limits{RateSlack: defaultRateSlack}}, func(*Player, Frame[testCall]) {})
	s, at := b.join(0), time.Now()
	bundle := message.NewBundler(1000)
	for range message.MaxBundle {
		bundle.Add([]byte{0x80, 0, 0, 0, 0})
	}
	flood := bundle.Take()
	for range messages {
		s.player.receive(flood, at, false)
		at = at.Add(time.Second / messages)
	}
	st := b.stats()
	if limited, looked := st.Drops[RateLimited], sum(st.RPCs[0].Drops); limited < messages*9/10 || looked > 2*3*(60+controlHz) {
		t.Errorf("%d messages are dropped at once, %d payloads are looked at", limited, looked)
	}
}

// TestAmbiguous verifies that a datagram is dropped if and only if it may contain a frame 64 behind
// the newest, which the short header does not distinguish from one ahead.
func TestAmbiguous(t *testing.T) {
	const newest = 1000
	for frames := uint64(1); frames <= 8; frames++ {
		b := binding{frames: frames, newest: newest}
		for behind := uint64(1); behind <= 70; behind++ {
			// The newest frame is the last of its datagram, the other payload the first of its own.
			oldest := behind*frames + frames - 1
			if got := b.ambiguous(newest - behind); got != (oldest >= 64) {
				t.Errorf("%d frames per datagram, %d behind: %v, though a frame may be %d behind", frames, behind, got, oldest)
			}
		}
		if b.ambiguous(newest) || b.ambiguous(newest+1) {
			t.Errorf("%d frames per datagram: the newest is dropped", frames)
		}
		b.reliable = true
		if b.ambiguous(0) {
			t.Errorf("%d frames per datagram: a reliable one is dropped", frames)
		}
	}
}

// countingTap counts its calls.
type countingTap struct {
	bound, decoded, frames, dropped, undecoded, withheld int
}

func (c *countingTap) Carried(transport.TapEvent) {}
func (c *countingTap) Bound(Binding)              { c.bound++ }
func (c *countingTap) Left(error)                 {}

func (c *countingTap) Decoded(_ time.Time, _ int, frames []rpcdelta.Delivery) {
	c.decoded++
	c.frames += len(frames)
}

func (c *countingTap) Dropped(_ time.Time, _ int, _ Drop, decoder bool) {
	c.dropped++
	if !decoder {
		c.undecoded++
	}
}

func (c *countingTap) Withheld(time.Time, int, uint64, Drop) { c.withheld++ }

// TestTap verifies what a tap is told of decoded, dropped and hostile payloads.
func TestTap(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	s := b.join(0)
	c := &countingTap{}
	s.player.tap = c
	for range 100 {
		s.call()
	}
	s.player.receive(s.buf, time.Time{}, false) // a duplicate
	if *c != (countingTap{decoded: 100, frames: 100, dropped: 1}) {
		t.Errorf("%+v", c)
	}
	for _, hostile := range [][]byte{nil, {0xc0}, {0xc1}, {0xe0, 0xff}, {0x7f, 0xff, 0xff}, {0xc2, 1}} {
		before := *c
		s.player.receive(hostile, time.Time{}, false)
		if c.undecoded != before.undecoded+1 || c.decoded != before.decoded {
			t.Errorf("%x: %+v after %+v", hostile, c, before)
		}
	}
	s.player.bindings.all = nil
	if a := b.srv.bind(s.player, b.request(1)); a.Reason != 0 || c.bound != 1 {
		t.Errorf("%+v, %+v", a, c)
	}
}

// TestTapWithheld verifies that a tap is told of frames that were decoded but not delivered.
func TestTapWithheld(t *testing.T) {
	b := newBench(t, Config{Limits: Limits{RateSlack: 1}}, func(*Player, Frame[testCall]) {})
	s := b.join(0)
	c := &countingTap{}
	s.player.tap = c
	for range 300 { // at once
		s.call()
	}
	st := b.stats()
	limited := int(st.RPCs[0].Drops[RateLimited])
	if limited == 0 || c.withheld != limited || c.undecoded != int(st.Drops[RateLimited]) || c.frames-c.withheld != int(st.RPCs[0].Frames()) {
		t.Errorf("%+v, counted %+v and %v", c, st.RPCs[0], st.Drops)
	}
}

// TestCancelsAreLimited verifies that cancels of requests count for the limit of messages.
func TestCancelsAreLimited(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	p := b.join(0).player
	cancel, most := message.AppendRequest(nil, message.Cancel, 1, nil), int(message.DSMessages.Burst/message.MessageCost(0))
	for range most {
		p.receive(cancel, p.shard.start, true)
	}
	before := p.drops[RateLimited].Load()
	p.receive(cancel, p.shard.start, true)
	if before != 0 || p.drops[RateLimited].Load() != 1 {
		t.Errorf("%d of %d cancels are dropped, then %d more", before, most, p.drops[RateLimited].Load()-before)
	}
}

// TestNoWorldOffered checks that a player to whom no world is offered has no replication streams,
// neither after a world is sent nor after the player's own replies and acks, which are dropped.
func TestNoWorldOffered(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	w, err := NewWorld(b.srv, "calls", WorldConfig[testCall]{})
	must(t, err)
	s := b.join(0)
	s.call()
	for tick := range uint64(3) {
		must(t, w.Begin(tick))
		must(t, w.Put(1, 0, &s.value))
		w.Commit()
		if n, err := w.Send(); n != 0 || err != nil {
			t.Errorf("sent to %d, %v", n, err)
		}
		s.player.receive([]byte{byte(message.Reply), 0, byte(replication.Ready)}, time.Time{}, true)
		s.player.receive([]byte{byte(message.DownAck), 0, 1}, time.Time{}, false)
	}
	if s.player.streams.Load() != nil || s.player.drops[Malformed].Load() != 6 || len(b.stats().Replication) != 1 {
		t.Errorf("streams %v, %+v", s.player.streams.Load(), b.stats())
	}
}
