package ds

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// profile returns the profile of the only RPC.
func (b *bench) profile() *rpcdelta.Profile {
	b.t.Helper()
	p := b.srv.Profiles()
	if len(p) != 1 || p[0].RPC != "Call" || len(p[0].Fields) != len(p[0].Schema.Fields()) {
		b.t.Fatalf("%+v", p)
	}
	return &p[0].Profile
}

// TestProfile verifies that a server's profile equals that of the client's encoder over the same
// time, and starts again when it is requested again.
func TestProfile(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	empty := fmt.Sprintf("%+v", rpcdelta.NewProfile(b.typ.Schema()))
	s := b.join(0)
	s.call()
	if got := fmt.Sprintf("%+v", b.profile()); got != empty {
		t.Fatal(got)
	}
	want := rpcdelta.NewProfile(b.typ.Schema())
	calls := func() {
		for range 50 {
			s.call()
			s.ack(nil)
		}
	}
	b.srv.Profile(1)
	s.enc.Measure(want)
	calls()
	s.enc.Measure(nil)
	b.srv.Profile(0)
	calls()
	if got := b.profile(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || got.Payloads != 50 {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	b.srv.Profile(1)
	if got := fmt.Sprintf("%+v", b.profile()); got != empty {
		t.Errorf("after a new start %s", got)
	}
	s.payload() // is lost
	s.player.receive([]byte{0, 0, 0}, time.Time{}, false)
	if got := fmt.Sprintf("%+v", b.profile()); got != empty {
		t.Errorf("of what is dropped %s", got)
	}
}

// TestProfileSample verifies that one of every so many payloads is measured, of each of two players
// that send in turn.
func TestProfileSample(t *testing.T) {
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	still, busy := b.join(0), b.join(0)
	b.srv.Profile(4)
	const frames = 8000
	for range frames {
		still.next = 5
		still.call()
		still.ack(nil)
		busy.call()
		busy.ack(nil)
	}
	p := b.profile()
	if p.Payloads < frames*2/4*9/10 || p.Payloads > frames*2/4*11/10 {
		t.Errorf("%d of %d payloads are measured, want a fourth", p.Payloads, 2*frames)
	}
	held := p.Fields[0].Components[0].Held // by one of both
	if held < p.Coded*4/10 || held > p.Coded*6/10 {
		t.Errorf("%d of %d frames are of the player who stands still", held, p.Coded)
	}
}

// TestProfileShards measures in several shards at once, while profiles are read, started and
// stopped.
func TestProfileShards(t *testing.T) {
	const shards, frames = 3, 400
	b := newBench(t, Config{Transport: Transport{Shards: shards}}, func(*Player, Frame[testCall]) {})
	if b.srv.Shards() != shards {
		t.Fatalf("%d shards", b.srv.Shards())
	}
	play := func(f func(i int)) {
		var wg sync.WaitGroup
		for i := range shards {
			s := b.joinShard(i, i)
			wg.Go(func() {
				for range frames {
					s.call()
					s.ack(nil)
				}
			})
		}
		for i := range frames {
			f(i)
		}
		wg.Wait()
	}
	b.srv.Profile(1)
	play(func(int) { b.srv.Profiles() })
	if got := b.profile().Frames; got != shards*frames {
		t.Errorf("%d frames are measured of %d", got, shards*frames)
	}
	play(func(i int) {
		b.srv.Profile(i % 3)
		b.srv.Profiles()
	})
}
