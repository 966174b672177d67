package reliable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// link is two channels some way apart. Datagrams are lost at random and during outages. It checks
// what each end sends.
type link struct {
	t      *testing.T
	rng    *rand.Rand
	ends   [2]Channel
	meters [2]meter
	delay  time.Duration // one way
	loss   float64
	down   [2]bool // everything to this end is lost
	flying [2][]inFlight
	record bool
	old    [2][]inFlight // what was sent to this end, if record is set
}

type inFlight struct {
	at   time.Time
	body []byte
}

func newLink(t *testing.T, seed uint64, roundTrip time.Duration, loss float64) *link {
	t.Logf("seed %d, round trip %v, loss %v", seed, roundTrip, loss)
	l := &link{t: t, rng: rand.New(rand.NewPCG(seed, 0)), delay: roundTrip / 2, loss: loss}
	for i := range l.ends {
		l.meters[i] = newMeter(t, time.Now())
		l.ends[i] = newChannel(func(b []byte) {
			l.meters[i].sent(time.Now(), b)
			if l.record {
				l.old[1-i] = append(l.old[1-i], inFlight{time.Now(), bytes.Clone(b)})
			}
			if !l.down[1-i] && l.rng.Float64() >= l.loss {
				l.flying[1-i] = append(l.flying[1-i], inFlight{time.Now().Add(l.delay), bytes.Clone(b)})
			}
		})
	}
	return l
}

// send sends a message from an end, and reports whether there was room for it.
func (l *link) send(end int, b []byte) bool {
	l.t.Helper()
	err := l.ends[end].Send(time.Now(), b)
	if !errors.Is(err, ErrBacklog) {
		check.Must(l.t, err)
	}
	return err == nil
}

// step lets a millisecond pass. It returns the messages that each end received.
func (l *link) step() (received [2][][]byte) {
	time.Sleep(time.Millisecond)
	now := time.Now()
	for i := range l.ends {
		end := &l.ends[i]
		for len(l.flying[i]) > 0 && !l.flying[i][0].at.After(now) {
			body := l.flying[i][0].body
			l.flying[i] = l.flying[i][1:]
			l.meters[i].received(body)
			check.Must(l.t, end.Input(now, body))
			for {
				m, ok, err := end.Receive(now, nil)
				check.Must(l.t, err)
				if !ok {
					break
				}
				received[i] = append(received[i], bytes.Clone(m))
			}
		}
		end.Advance(now)
		if end.Exhausted() {
			l.t.Fatalf("end %d has given up", i)
		}
	}
	return received
}

// transfer sends n bytes in messages of the given size from the first end to the other, and returns
// how long it took.
func (l *link) transfer(n, size int) time.Duration {
	start := time.Now()
	sent, got := 0, 0
	for got < n {
		if time.Since(start) > 5*time.Minute {
			l.t.Fatalf("%d of %d bytes arrived in 5 minutes", got, n)
		}
		for sent < n && l.send(0, bytes.Repeat([]byte{byte(sent / size)}, size)) {
			sent += size
		}
		for _, m := range l.step()[1] {
			if len(m) != size || m[0] != byte(got/size) {
				l.t.Fatalf("a message of %d bytes starts with %d, want %d and %d", len(m), m[0], size, byte(got/size))
			}
			got += size
		}
	}
	return time.Since(start)
}

// TestTransfers measures honest transfers. No end exceeds what it may send, and all end in the
// given time.
func TestTransfers(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name      string
		roundTrip time.Duration
		loss      float64
		bytes     int
		size      int
		limit     time.Duration
	}{
		{"one message", 200 * ms, 0, 100, 100, 150 * ms},
		{"64 KiB at a short round trip", 20 * ms, 0, 64 << 10, 1 << 10, 60 * ms},
		{"64 KiB", 200 * ms, 0, 64 << 10, 1 << 10, 500 * ms},
		{"1 MiB", 20 * ms, 0, 1 << 20, 1 << 10, 400 * ms},
		{"1 MiB at a longer round trip", 200 * ms, 0, 1 << 20, 1 << 10, 3600 * ms},
		{"1 MiB with loss", 200 * ms, 0.1, 1 << 20, 1 << 10, 12 * time.Second},
		{"1 MiB with more loss", 300 * ms, 0.2, 1 << 20, 1 << 10, 24 * time.Second},
		{"1 MiB in large messages", 200 * ms, 0.1, 1 << 20, 16 << 10, 12 * time.Second},
		{"64 KiB in small messages", 200 * ms, 0.1, 64 << 10, 16, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t, 1, tt.roundTrip, tt.loss)
				took := l.transfer(tt.bytes, tt.size)
				t.Logf("%v, %.2f bytes per byte", took, float64(l.meters[0].total)/float64(tt.bytes))
				if took > tt.limit {
					t.Errorf("took %v, want at most %v", took, tt.limit)
				}
			})
		})
	}
}

// TestOutage: an outage that is shorter than a session's timeout does not end a channel, however
// short the round trip was that it measured before, and what waited arrives soon afterwards.
// Neither does an outage in one direction, during which the end still receives the peer's messages.
func TestOutage(t *testing.T) {
	const ms, waiting = time.Millisecond, 150 // messages
	for _, roundTrip := range []time.Duration{2 * ms, 40 * ms, 300 * ms} {
		for _, loss := range []float64{0, 0.2} {
			for _, outage := range []time.Duration{time.Second, 5 * time.Second, testPatience - ms} {
				for _, oneWay := range []bool{false, true} {
					name := fmt.Sprintf("%v, round trip %v, loss %v, one way %v", outage, roundTrip, loss, oneWay)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							l := newLink(t, 2, roundTrip, loss)
							l.transfer(64<<10, 1<<10)
							for range waiting {
								check.Must(t, l.ends[0].Send(time.Now(), make([]byte, 1<<10)))
							}
							l.down = [2]bool{!oneWay, true}
							for start := time.Now(); time.Since(start) < outage; {
								if time.Since(start)%(50*ms) == 0 {
									_ = l.ends[1].Send(time.Now(), []byte("x")) // until there is a backlog
								}
								l.step()
							}
							during, often := l.meters[0].most, 0
							for _, d := range l.meters[0].data {
								if d.count > freely {
									often++
								}
							}
							l.down = [2]bool{}
							end := time.Now()
							for got := 0; got < waiting; got += len(l.step()[1]) {
								if time.Since(end) > 15*time.Second {
									t.Fatalf("%d of %d messages arrived after the outage", got, waiting)
								}
							}
							if during > 12 || often > 1 { // one transmission was before the outage
								t.Errorf("during the outage a segment was sent %d times, %d segments more than %d times", during, often, freely)
							}
						})
					})
				}
			}
		}
	}
}

// TestLongerRoundTrip: the round trip becomes much longer at once, as when a queue fills, while
// a transfer goes on. What
// KCP has measured is too short then, and it sends segments again that are on their way.
func TestLongerRoundTrip(t *testing.T) {
	const ms = time.Millisecond
	for _, roundTrip := range []time.Duration{300 * ms, time.Second, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t, 3, 2*ms, 0)
			l.transfer(64<<10, 1<<10)
			l.delay = roundTrip / 2
			took := l.transfer(256<<10, 1<<10)
			t.Logf("round trip %v: 256 KiB took %v, a segment was sent %d times", roundTrip, took, l.meters[0].most)
			if l.meters[0].most > MaxTransmissions/2 {
				t.Errorf("a segment was sent %d times", l.meters[0].most)
			}
		})
	}
}

// TestMeasuredRoundTrip verifies that an end which sends and acknowledges messages at the same time
// measures the round-trip time.
func TestMeasuredRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, 4, 100*time.Millisecond, 0)
		for range 100 {
			for end := range l.ends {
				l.send(end, []byte("x"))
			}
			for range 7 {
				l.step()
			}
		}
		for i := range l.ends {
			if rtt := l.ends[i].rtt; rtt < 100 || rtt > 130 {
				t.Errorf("end %d measured %d ms", i, rtt)
			}
		}
	})
}
