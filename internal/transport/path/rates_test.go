package path

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// flow sends over a link what a Path permits: an endless stream, or a world. Reports and echoes
// return over another link of the same delay.
type flow struct {
	Path
	peer   Arrivals
	there  *simnet.Link
	flying *simnet.Queue[packet]
	back   *simnet.Queue[packet]
	random source
	delay  time.Duration
	world  int  // bytes of a message of the world, 20 a second; 0: a stream
	lies   bool // the peer reports all datagrams as soon as they are sent

	now          time.Duration
	next, newest uint64
	sent, got    int             // bytes
	messages     int             // of the world that were sent
	waits        []time.Duration // in the queue
}

// packet is a datagram with its number, a report or an echo.
type packet struct {
	number uint64
	at     time.Duration
	size   int
	ask    uint32
	report wire.Report
}

func newFlow(t testing.TB, cfg simnet.Config, world int) *flow {
	t.Helper()
	there, err := simnet.NewLink(cfg)
	if err != nil {
		t.Fatal(err)
	}
	free := cfg
	free.Rate = 0
	back, err := simnet.NewLink(free)
	if err != nil {
		t.Fatal(err)
	}
	return &flow{there: there, flying: simnet.NewQueue[packet](there), back: simnet.NewQueue[packet](back), delay: cfg.Delay, world: world}
}

// send sends a datagram. ask is that of a heartbeat, otherwise 0.
func (f *flow) send(size int, ask uint32) {
	f.Departed(f.now, f.next, size, f.world == 0 && ask == 0)
	f.flying.Push(f.now, packet{number: f.next, at: f.now, size: size, ask: ask}, size)
	f.next++
	f.sent += size
	if f.lies {
		f.peer.Arrived(f.now, f.next-1, true, size)
	}
}

// run lets a time pass, and returns the bits that arrived per second.
func (f *flow) run(d time.Duration) float64 {
	before := f.got
	f.sent, f.messages, f.waits = 0, 0, nil
	for end := f.now + d; f.now < end; f.now += time.Millisecond {
		for p, at, ok := f.flying.Pop(f.now); ok; p, at, ok = f.flying.Pop(f.now) {
			f.got += p.size
			f.waits = append(f.waits, at-p.at-f.delay)
			if !f.lies {
				f.peer.Arrived(f.now, p.number, p.number >= f.newest, p.size)
			}
			f.newest = max(f.newest, p.number+1)
			if p.ask != 0 {
				f.back.Push(f.now, packet{ask: p.ask}, 60)
			}
		}
		if f.peer.Due(f.now) && f.now%(16*ms) == 0 { // the peer sends calls
			f.back.Push(f.now, packet{report: f.peer.Take(f.now)}, 60)
		}
		for p, _, ok := f.back.Pop(f.now); ok; p, _, ok = f.back.Pop(f.now) {
			if p.ask != 0 {
				f.Echoed(f.now, p.ask, 0)
			} else if !f.Reported(f.now, p.report, f.next) {
				panic(fmt.Sprintf("report %+v was refused before datagram %d", p.report, f.next))
			}
		}
		if f.now%time.Second == 0 {
			f.send(60, f.Ask(f.now, &f.random))
		}
		switch {
		case f.world == 0 && f.now%(10*ms) == 0:
			for f.StreamRoom(f.now) > 0 {
				f.send(max(300, min(1200, int(f.Rate()/100))), 0)
			}
		case f.world > 0 && f.now%(50*ms) == 0 && f.MayWorlds(f.now):
			f.messages++
			for left := f.world; left > 0; left -= 1200 {
				f.send(min(left, 1200), 0)
			}
		}
	}
	return 8 * float64(f.got-before) / d.Seconds()
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

const kbit = 1000 / 8 // bytes/s

// TestStreams checks that a stream uses a link of its own, and that its queue stays short: neither
// jitter nor loss is taken for congestion.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		link  simnet.Config
		used  float64       // share of the link after 3 s, at least
		queue time.Duration // 95 %, at most, with the jitter
	}{
		{simnet.Config{Delay: 40 * ms, Rate: 100 * kbit}, 0.9, 150 * ms}, // a datagram takes 24 ms
		{simnet.Config{Delay: 40 * ms, Rate: 256 * kbit}, 0.9, 60 * ms},
		{simnet.Config{Delay: 40 * ms, Rate: 512 * kbit}, 0.9, 60 * ms},
		{simnet.Config{Delay: 40 * ms, Rate: 2000 * kbit}, 0.9, 60 * ms},
		{simnet.Config{Delay: 10 * ms, Rate: 10_000 * kbit}, 0.9, 60 * ms},
		{simnet.Config{Delay: 150 * ms, Rate: 2000 * kbit}, 0.85, 150 * ms},
		{simnet.Config{Delay: 40 * ms, Jitter: 20 * ms, Rate: 2000 * kbit}, 0.85, 110 * ms},
		{simnet.Config{Delay: 40 * ms, Loss: 0.02, Rate: 2000 * kbit}, 0.9, 60 * ms},
		{simnet.Config{Delay: 40 * ms, Loss: 0.1, Rate: 512 * kbit}, 0.75, 80 * ms},
		{simnet.Config{Delay: 40 * ms, Loss: 0.1, Burst: 4, Jitter: 10 * ms, Rate: 1000 * kbit}, 0.65, 120 * ms},
	} {
		for seed := range uint64(5) {
			c.link.Seed = seed
			f := newFlow(t, c.link, 0)
			f.run(3 * time.Second)
			used := f.run(30*time.Second) / float64(8*c.link.Rate)
			if q := quantile(f.waits, 0.95); used < c.used || q > c.queue {
				t.Errorf("%+v: used %.2f, queue %v; want %.2f, %v", c.link, used, q, c.used, c.queue)
			}
		}
	}
}

// TestWorlds checks that a world that fits is never limited, although its messages are bursts, and
// that one that does not fit uses the link without filling its queue.
func TestWorlds(t *testing.T) {
	for _, rate := range []int{256 * kbit, 512 * kbit, 2000 * kbit} {
		for _, share := range []float64{0.3, 0.66, 0.8, 1.3, 3} {
			link := simnet.Config{Delay: 40 * ms, Rate: rate, Seed: 1}
			f := newFlow(t, link, int(share*float64(rate)/20))
			f.run(3 * time.Second)
			used := f.run(30*time.Second) / float64(8*rate)
			q := quantile(f.waits, 0.95)
			t.Logf("%d bytes/s, world of %.2f: %d of 600 messages, used %.2f, queue %v", rate, share, f.messages, used, q)
			if fits := share < 1; fits && f.messages < 598 || !fits && (used < 0.8 || q > 230*ms) {
				t.Errorf("%d bytes/s, world of %.2f: %d of 600 messages, used %.2f, queue %v", rate, share, f.messages, used, q)
			}
		}
	}
}

// TestCapacity checks that streams and worlds follow a link that becomes narrow and wide again.
func TestCapacity(t *testing.T) {
	for _, world := range []int{0, 4000, 8000} { // bytes of a message
		link := simnet.Config{Delay: 40 * ms, Rate: 2000 * kbit, Seed: 1}
		f := newFlow(t, link, world)
		before := f.run(10 * time.Second)
		link.Rate = 300 * kbit
		if err := f.there.Set(link); err != nil {
			t.Fatal(err)
		}
		f.run(2 * time.Second)
		narrow := f.run(10*time.Second) / 300_000
		queue := quantile(f.waits, 0.95)
		link.Rate = 2000 * kbit
		if err := f.there.Set(link); err != nil {
			t.Fatal(err)
		}
		f.run(5 * time.Second)
		again := f.run(3*time.Second) / before
		t.Logf("messages of %d bytes: narrow %.2f, queue %v, wide again %.2f", world, narrow, queue, again)
		burst := time.Duration(world) * time.Second / time.Duration(300*kbit)
		if narrow < 0.75 || queue > 60*ms+burst || again < 0.9 {
			t.Errorf("messages of %d bytes: narrow %.2f, queue %v, wide again %.2f", world, narrow, queue, again)
		}
	}
}

// TestLiars checks that a peer that reports what did not arrive gets at most about maxUnproven
// times what its link carries, or startRate.
func TestLiars(t *testing.T) {
	for _, rate := range []int{256 * kbit, 2000 * kbit} {
		f := newFlow(t, simnet.Config{Delay: 40 * ms, Rate: rate, Seed: 1}, 0)
		f.lies = true
		f.run(30 * time.Second)
		if sent := float64(f.sent) / 30; sent > 1.2*maxUnproven*max(float64(rate), startRate) {
			t.Errorf("%.0f bytes/s were sent over a link of %d", sent, rate)
		}
	}
}

// TestLateReports checks that a queue of seconds reduces the rate, and that one late report does
// not: then the peer was away.
func TestLateReports(t *testing.T) {
	var p Path
	now, number := time.Duration(0), uint64(0)
	report := func(late time.Duration) {
		for range 10 {
			p.Departed(now, number, 1200, true)
			number++
			now += 20 * ms
		}
		r := wire.Report{Newest: uint16(number - 1), Arrived: uint16((now + late) / Unit), Count: uint16(number)}
		if now += late; !p.Reported(now, r, number) {
			t.Fatal("refused")
		}
	}
	for range 5 {
		report(40 * ms)
	}
	if report(3 * time.Second); p.Limit() != 0 {
		t.Errorf("one late report: limit %v", p.Limit())
	}
	for range 5 {
		report(3 * time.Second)
	}
	if p.Limit() == 0 {
		t.Error("late reports: no limit")
	}
	p = Path{}
	start := number
	for i := range 1000 { // 10 s of datagrams, on which reports arrive after 5 s
		p.Departed(now, number, 1200, true)
		number++
		now += 10 * ms
		if old := number - 500; i >= 500 && !p.Reported(now, wire.Report{Newest: uint16(old), Arrived: uint16(now / Unit), Count: uint16(old - start)}, number) {
			t.Fatal("refused")
		}
	}
	if p.Limit() == 0 {
		t.Error("late reports on a dense stream: no limit")
	}
}

// TestReportBeforeDeparture checks that a report is not late if it arrived before a later datagram
// of the group left, and was processed after that.
func TestReportBeforeDeparture(t *testing.T) {
	var p Path
	now, number := time.Second, uint64(0)
	for range 20 {
		for _, after := range []time.Duration{0, 0, 3 * ms / 2} {
			p.Departed(now+after, number, 1000, true)
			number++
		}
		r := wire.Report{Newest: uint16(number - 2), Arrived: uint16(now / Unit), Count: uint16(number - 1)}
		if !p.Reported(now+ms/5, r, number) {
			t.Fatal("refused")
		}
		now += 40 * ms
	}
	if p.Rate() < startRate {
		t.Errorf("the rate is %.0f", p.Rate())
	}
}

// TestReports checks with any reports that those of datagrams that were not sent are refused, and
// that the rate stays a rate.
func TestReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Path
		now, next := time.Duration(0), uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "reports") {
			for range rapid.IntRange(0, 20).Draw(t, "datagrams") {
				p.Departed(now, next, rapid.IntRange(30, 1500).Draw(t, "size"), rapid.Bool().Draw(t, "stream"))
				next++
				now += time.Duration(rapid.IntRange(0, 50).Draw(t, "wait")) * ms
			}
			r := wire.Report{
				Newest:  uint16(int(next) - rapid.IntRange(-5, 40).Draw(t, "behind")),
				Arrived: rapid.Uint16().Draw(t, "arrived"), Count: uint16(int(next) - rapid.IntRange(-3, 40).Draw(t, "missing")),
			}
			sent := uint64(uint16(next)-1-r.Newest) < next
			if ok := p.Reported(now, r, next); ok && !sent {
				t.Fatalf("%+v was accepted before datagram %d", r, next)
			}
			p.MayWorlds(now)
			if room, rate := p.StreamRoom(now), p.Rate(); !(rate >= worstRate) || rate > 1e9 || !(room <= rate) || p.Queue() < 0 {
				t.Fatalf("rate %v, room %v, queue %v", rate, room, p.Queue())
			}
		}
	})
}

// TestArrivals checks when reports are due.
func TestArrivals(t *testing.T) {
	var a Arrivals
	at := time.Second
	a.Arrived(at, 0, true, reportBytes-1)
	a.Arrived(at+ms, 1, true, 0)
	if _, ok := a.Deadline(); ok || a.Due(at+time.Hour) {
		t.Error("due too soon")
	}
	a.Arrived(at+2*ms, 3, true, 1)
	a.Arrived(at+3*ms, 2, false, 100)
	if _, ok := a.Deadline(); ok || !a.Due(at+2*ms) {
		t.Error("a report is due, but not worth a datagram")
	}
	if r := a.Take(at + 5*ms); r != (wire.Report{Newest: 3, Arrived: uint16((at + 2*ms) / Unit), Count: 4}) {
		t.Errorf("got %+v", r)
	}
	a.Arrived(at+6*ms, 4, true, aloneBytes)
	if d, ok := a.Deadline(); !ok || d != at+5*ms+reportInterval+reportPatience {
		t.Errorf("the next deadline is %v", d)
	}
}
