package ds

import (
	"bytes"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/snapshot"
)

// few are some frames of few cubes.
func few(t testing.TB) [][]cube {
	t.Helper()
	frames := recorded(t, "cubes_delta_data_120.bin.gz")
	for n := range frames {
		frames[n] = frames[n][:20]
	}
	return frames
}

// TestInvalidAcks: what no honest client acks is refused and counted, and helps nobody.
func TestInvalidAcks(t *testing.T) {
	c := newCrowd(t, few(t), 2)
	for range 20 {
		c.step()
	}
	liar, honest := c.players[0], c.players[1]
	before := honest.counted()
	ack := func(newest uint16, window uint64) []byte {
		a := snapshot.Ack{Newest: newest, Window: window}
		return a.Append([]byte{0})
	}
	for name, b := range map[string][]byte{
		"nothing":          {0},
		"the future":       ack(20, 0),
		"far":              ack(40_000, 0),
		"before the first": ack(5, 1<<6),
		"more than an ack": append(ack(19, 0), 0),
		"cut":              ack(19, 5)[:2],
		"no such world":    append([]byte{1}, ack(19, 0)[1:]...),
		"no such number":   append([]byte{200}, ack(19, 0)[1:]...),
		"too long":         append([]byte{0}, bytes.Repeat([]byte{1}, control.MaxDownAck+1)...),
		"no number":        {},
	} {
		st := liar.player.Stats()
		liar.player.receive(append([]byte{byte(control.DownAck)}, b...), time.Time{}, false)
		if got := liar.player.Stats(); sum(got.Drops) != sum(st.Drops)+1 {
			t.Errorf("%s: %v, before it %v", name, got.Drops, st.Drops)
		}
	}
	if st := liar.counted(); st.InvalidAcks != liar.player.Stats().Drops[InvalidAck] || st.InvalidAcks < 6 {
		t.Errorf("%+v, %v", st, liar.player.Stats().Drops)
	}
	c.step()
	if st := honest.counted(); st.Messages != before.Messages+1 || st.BaselineAge != ackedAfter+1 || sum(honest.player.Stats().Drops) != 0 {
		t.Errorf("the honest player's: %+v", st)
	}
}

// FuzzDown throws messages at a player to whom a world is sent. A message is a byte of length, whose highest bit says
// that it comes over the reliable channel, and that many bytes. The other player's snapshots go on.
func FuzzDown(f *testing.F) {
	frames := few(f)
	a := snapshot.Ack{Newest: 9, Window: 1<<9 - 1}
	f.Add(entries.Of(a.Append([]byte{byte(control.DownAck), 0}), false))
	a = snapshot.Ack{None: true, Epoch: 3}
	f.Add(entries.Of(a.Append([]byte{byte(control.DownAck), 0}), false))
	f.Add(entries.Of(control.AppendReply(nil, 0, control.Send), true))
	f.Add(entries.Of(control.AppendReply(nil, 0, control.Refused), true))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := newCrowd(t, frames, 2)
		for range 10 {
			c.step()
		}
		hostile, honest := c.players[0], c.players[1]
		for msg, reliable := range entries.All(in) {
			hostile.player.receive(msg, time.Time{}, reliable)
		}
		if st := hostile.counted(); st.Ready == 0 || st.Messages == 0 { // it left, or began anew
			c.players = c.players[1:]
			hostile.stop()
		}
		before := honest.counted().Messages
		for range 70 { // more than a ring
			c.step()
		}
		if st := honest.counted(); st.Messages != before+70 || st.BaselineAge != ackedAfter+1 {
			t.Fatalf("the honest player's: %+v", st)
		}
	})
}

// stalled is a link whose peer acknowledges nothing.
type stalled struct{ nowhere }

func (stalled) Unacked() int { return mostFed }

// restart tells the server that the client leaves and wants the initial state again.
func restart(d *downstream, now time.Time) {
	for _, a := range []control.Answer{control.Refused, control.Send} {
		d.player.receiveReply(control.AppendReply(nil, d.number, a)[1:], &arrival{at: now, reliable: true})
	}
}

// TestFeedingIsListedOnce checks that the shard has a downstream in its list once, however often
// the client asks for the initial state, and takes it out once that is sent.
func TestFeedingIsListedOnce(t *testing.T) {
	c := newCrowd(t, few(t), 2)
	now := time.Now()
	h := c.players[0].player.shard
	for _, d := range c.players {
		d.link = &stalled{}
	}
	for i := range 10_000 {
		for _, d := range c.players {
			restart(d, now)
			restart(d, now)
		}
		if i%2 == 0 {
			h.feed(now) // as each tick does
		}
	}
	if n := len(h.feeding); n != 2 {
		t.Errorf("2 downstreams are %d entries of the list", n)
	}
	c.players[0].link, c.players[1].link = &nowhere{}, &nowhere{}
	c.players[1].pause()
	h.feed(now)
	if n := len(h.feeding); n != 0 || c.players[0].counted().InitialBytes == 0 {
		t.Errorf("%d entries are left, %+v", n, c.players[0].counted())
	}
	restart(c.players[0], now)
	h.feed(now)
	if st := c.players[0].counted(); st.InitialBytes != 2*uint64(len(c.players[0].way.terms().initial)) {
		t.Errorf("the initial state is not sent again: %+v", st)
	}
}

// TestInitialStateLimit checks how often a client that acknowledges everything at once gets the
// initial state: twice, and then once in feedEvery. It still gets all of it.
func TestInitialStateLimit(t *testing.T) {
	c := newCrowd(t, few(t), 1)
	d := c.players[0]
	h, size := d.player.shard, uint64(len(d.way.terms().initial))
	now := h.start
	const asked = time.Minute
	for ; now.Before(h.start.Add(asked)); now = now.Add(100 * time.Millisecond) {
		restart(d, now)
		h.feed(now)
	}
	if n := d.counted().InitialBytes; n < size*7/2 || n > size*(2+uint64(asked/feedEvery)) {
		t.Errorf("%d bytes of an initial state of %d are sent", n, size)
	}
	before := d.counted().InitialBytes
	restart(d, now)
	for range 10 * int(feedEvery/time.Second) {
		now = now.Add(100 * time.Millisecond)
		h.feed(now)
	}
	if n := d.counted().InitialBytes; n != before+size || len(h.feeding) != 0 {
		t.Errorf("%d bytes of %d after a wait", n-before, size)
	}
}

// TestReturningIsHeld checks that a client that leaves and returns all the time gets large snapshots
// no more often than one that stays and acks none: it is not faster to subscribe again.
func TestReturningIsHeld(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	w, err := NewWorld(b.srv, "cubes", WorldConfig[cube]{}) // whose first snapshots have all objects
	must(t, err)
	c := &reel{t: t, frames: recorded(t, "cubes_delta_data_120.bin.gz"), world: w}
	d := c.join(b, &nowhere{}, func(p *Player) way { return &snapshotWay{world: &w.w, player: p} })
	start := time.Now()
	const ticks = 60
	for range ticks {
		for _, a := range []control.Answer{control.Refused, control.Ready} {
			d.player.receiveReply(control.AppendReply(nil, d.number, a)[1:], &arrival{reliable: true})
		}
		c.next()
		_, err := c.world.Send()
		must(t, err)
	}
	st, most := d.counted(), 2+uint64(time.Since(start)/leastHold)
	if st.Messages == 0 || st.Messages > most || st.Fragmented != st.Messages {
		t.Errorf("%d ticks send %d messages, %d of them in fragments, want at most %d", ticks, st.Messages, st.Fragmented, most)
	}
}
