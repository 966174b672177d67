package ds

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// countingTap counts what it is told.
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

// TestTap has a tap see what becomes of payloads, without a byte allocated for it.
func TestTap(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	s := b.join(0)
	c := &countingTap{}
	s.player.tap = c
	var acks []byte
	frame := func() {
		s.call()
		if s.next%6 == 0 {
			acks = s.ack(acks)
		}
	}
	for range 1000 {
		frame()
	}
	if n := testing.AllocsPerRun(1000, frame); n != 0 && !race.Enabled {
		t.Errorf("%v allocations a frame", n)
	}
	if c.frames != int(s.next) || c.decoded != int(s.next) || c.dropped != 0 {
		t.Errorf("%+v of %d frames", c, s.next)
	}
	s.player.receive(s.buf, time.Time{}, false)
	if c.dropped != 1 || c.undecoded != 0 {
		t.Errorf("%+v after a duplicate", c)
	}
	for _, hostile := range [][]byte{nil, {0xc0}, {0xc1}, {0xe0, 0xff}, {0x7f, 0xff, 0xff}, {0xc2, 1}} {
		before := *c
		s.player.receive(hostile, time.Time{}, false)
		if c.undecoded != before.undecoded+1 || c.decoded != before.decoded {
			t.Errorf("%x: %+v after %+v", hostile, c, before)
		}
	}
	if a := b.srv.bind(s.player, b.request(1)); a.Reason != 0 || c.bound != 1 {
		t.Errorf("%+v, %+v", a, c)
	}
}

// TestTapWithheld tells of frames that were decoded and not delivered.
func TestTapWithheld(t *testing.T) {
	b := newBench(t, Config{RateSlack: 1}, func(*Player, Frame[testCall]) {})
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
