package reliable

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// hostile is a peer that answers a channel as it likes. It knows what the channel sent.
type hostile struct {
	channel Channel
	meter   meter
	newest  uint32 // sequence number that the channel sent
	oldest  uint32 // that was not acknowledged with all before it
	clock   uint32 // timestamp of the newest data segment, and when it came
	clockAt time.Time
	next    uint32 // sequence number of the peer's data
	rng     *rand.Rand
}

func newHostile(t *testing.T, seed uint64) *hostile {
	h := &hostile{meter: newMeter(t, time.Now()), rng: rand.New(rand.NewPCG(seed, 1)), clockAt: time.Now()}
	h.channel = newChannel(func(b []byte) {
		h.meter.sent(time.Now(), b)
		for s := range segmentsOf(b) {
			if s[offCommand] != kcp.IKCP_CMD_PUSH {
				continue
			}
			h.newest = max(h.newest, number(s))
			h.clock, h.clockAt = le32(s[8:]), time.Now()
		}
	})
	return h
}

// timestamp returns the channel's clock a moment ago, so that it measures the shortest round trip.
func (h *hostile) timestamp() uint32 {
	return h.clock + uint32(time.Since(h.clockAt).Milliseconds())
}

// say passes one segment to the channel.
func (h *hostile) say(cmd uint8, wnd uint16, ts, sn, una uint32, data []byte) {
	b := segment(testConv, cmd, 0, sn, data)
	binary.LittleEndian.PutUint16(b[6:], wnd)
	binary.LittleEndian.PutUint32(b[8:], ts)
	binary.LittleEndian.PutUint32(b[offUnacked:], una)
	h.input(b)
}

func (h *hostile) input(b []byte) {
	now := time.Now()
	permitted := h.meter.received(b)
	if err := h.channel.Input(now, b); permitted != (err == nil) {
		h.meter.t.Errorf("acknowledges only what was sent: %v; error %v", permitted, err)
	}
	for {
		if _, ok, err := h.channel.Receive(now, nil); err != nil || !ok {
			return
		}
	}
}

// run keeps the channel's queue full for that long, or until it gives up, and has the peer act
// every so many milliseconds. It returns how long that was.
func (h *hostile) run(d time.Duration, message, every int, act func(n int)) time.Duration {
	start := time.Now()
	for n := 0; time.Since(start) < d && !h.channel.Exhausted(); n++ {
		for h.channel.Send(time.Now(), make([]byte, message)) == nil {
		}
		if waiting := h.channel.waiting(); waiting > testQueue {
			h.meter.t.Fatalf("%d bytes wait", waiting)
		}
		time.Sleep(time.Duration(every) * time.Millisecond)
		act(n)
		h.channel.Advance(time.Now())
	}
	took := time.Since(start)
	h.finish()
	return took
}

// finish acknowledges all that is sent, if the channel has not given up, and checks that then no
// room is reserved, neither of the channel nor of all channels.
func (h *hostile) finish() {
	limits := h.channel.cfg.Limits
	for range 6000 {
		if h.channel.Exhausted() || h.channel.Unacked() == 0 {
			break
		}
		h.say(kcp.IKCP_CMD_WINS, 64, 0, 0, h.newest+1, nil)
		time.Sleep(10 * time.Millisecond)
		h.channel.Advance(time.Now())
	}
	if waiting := h.channel.waiting(); h.channel.Unacked() == 0 && (waiting != 0 || limits.used.Load() != 0) {
		h.meter.t.Errorf("nothing is unacknowledged, %d bytes wait, %d of all channels", waiting, limits.used.Load())
	}
	if !h.channel.Exhausted() {
		h.channel.Drop()
		if n := limits.used.Load(); n != 0 {
			h.meter.t.Errorf("%d bytes are still reserved", n)
		}
	}
}

// TestHostilePeers: whatever a peer does, an end keeps to what it may send, and gives up a
// segment after 20 transmissions.
func TestHostilePeers(t *testing.T) {
	const ack, push = kcp.IKCP_CMD_ACK, kcp.IKCP_CMD_PUSH
	for _, tt := range []struct {
		name string
		ends bool // the channel has to give up within a minute; otherwise it may
		act  func(h *hostile, n int)
	}{
		{"acknowledges nothing", true, func(*hostile, int) {}},
		{"acknowledges the newest segment alone, with a current time", true, func(h *hostile, _ int) {
			h.say(ack, 64, h.timestamp(), h.newest, 0, nil)
			h.say(ack, 64, h.timestamp(), h.newest, 0, nil)
		}},
		{"acknowledges all but the oldest", true, func(h *hostile, n int) {
			h.say(ack, 64, h.timestamp(), 1+uint32(n)%64, 0, nil)
		}},
		{"acknowledges all when one was sent often", false, func(h *hostile, _ int) {
			for _, d := range h.meter.data {
				if d.count == 7 {
					h.oldest = h.newest + 1
				}
			}
			h.say(ack, 64, h.timestamp(), h.newest, h.oldest, nil)
		}},
		{"acknowledges what was not sent", false, func(h *hostile, n int) {
			h.say(ack, 64, h.timestamp(), h.newest+uint32(n)%200, h.newest+uint32(n)%200, nil)
		}},
		{"opens and closes its window", true, func(h *hostile, n int) {
			h.say(kcp.IKCP_CMD_WINS, uint16(n%2*0xffff), 0, 0, 0, nil)
		}},
		{"keeps its window closed", true, func(h *hostile, _ int) { h.say(kcp.IKCP_CMD_WINS, 0, 0, 0, 0, nil) }},
		{"asks for the window", true, func(h *hostile, _ int) { h.say(kcp.IKCP_CMD_WASK, 64, 0, 0, 0, nil) }},
		{"has each of its segments acknowledged alone", false, func(h *hostile, n int) {
			for i := range uint32(46) {
				h.say(push, 64, 0, 1+i, 0, []byte("x"))
			}
		}},
		{"sends and acknowledges without end", false, func(h *hostile, _ int) {
			for range 5 {
				h.say(push, 64, 0, h.next, h.newest+1, []byte("x"))
				h.next++
			}
		}},
		{"sends far ahead and behind", true, func(h *hostile, n int) { h.say(push, 64, 0, uint32(n)*0x0101_0101, 0, []byte("x")) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, message := range []int{1, MaxMessage} {
				synctest.Test(t, func(t *testing.T) {
					const seed = 1
					h := newHostile(t, seed)
					long := 10 * time.Second
					if tt.ends {
						long = time.Minute
					}
					took := h.run(long, message, 5, func(n int) { tt.act(h, n) })
					t.Logf("messages of %d bytes: %d bytes sent in %v, %d acknowledged; a segment %d times", message, h.meter.total, took, h.meter.acked, h.meter.most)
					if tt.ends && !h.channel.Exhausted() || h.channel.Exhausted() != (h.meter.most == MaxTransmissions) {
						t.Errorf("given up: %v after %d transmissions of a segment", h.channel.Exhausted(), h.meter.most)
					}
					if total := h.meter.total; h.channel.Exhausted() {
						h.say(kcp.IKCP_CMD_WASK, 64, 0, 0, 0, nil)
						for range 1000 {
							time.Sleep(time.Millisecond)
							h.channel.Advance(time.Now())
						}
						if h.meter.total != total {
							t.Errorf("%d bytes sent after the channel has given up", h.meter.total-total)
						}
					}
				})
			}
		})
	}
}

// TestHeldBytes: nobody receives the messages, and the peer goes on to send. The channel holds two
// windows of segments.
func TestHeldBytes(t *testing.T) {
	for name, order := range map[string]func(i uint32) uint32{
		"in order": func(i uint32) uint32 { return i },
		"backward": func(i uint32) uint32 { return 999 - i },
		"repeated": func(i uint32) uint32 { return i % 500 },
	} {
		c := newChannel(func([]byte) {})
		now := time.Unix(1, 0)
		for i := range uint32(2000) {
			data := bytes.Repeat([]byte{0x7f}, testMTU-SegmentSize) // messages of 128 bytes, and their sizes
			check.Must(t, c.Input(now, segment(testConv, kcp.IKCP_CMD_PUSH, 0, order(i%1000), data)))
		}
		held := 0
		for {
			b, ok, err := c.Receive(now, nil)
			if err != nil || !ok {
				break
			}
			held += len(b)
		}
		if held == 0 || held > 2*window*(testMTU-SegmentSize) {
			t.Errorf("%s: %d bytes were held", name, held)
		}
	}
}

// TestAnyPeer tests the channel against random segments.
func TestAnyPeer(t *testing.T) {
	commands := []uint8{kcp.IKCP_CMD_ACK, kcp.IKCP_CMD_ACK, kcp.IKCP_CMD_PUSH, kcp.IKCP_CMD_WASK, kcp.IKCP_CMD_WINS}
	rapid.Check(t, func(r *rapid.T) {
		near := rapid.OneOf(rapid.Uint32Range(0, 70), rapid.Uint32())
		habits := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) func(*hostile) {
			cmd := rapid.SampledFrom(commands).Draw(r, "command")
			back, una, late := near.Draw(r, "back"), near.Draw(r, "unacked"), near.Draw(r, "late")
			wnd := rapid.SampledFrom([]uint16{0, 1, 64, 0xffff}).Draw(r, "window")
			relative := rapid.Bool().Draw(r, "relative")
			return func(h *hostile) {
				sn, una := back, una
				if relative {
					sn, una = h.newest-back, h.newest-una
				}
				var data []byte
				if cmd == kcp.IKCP_CMD_PUSH {
					data, sn = make([]byte, 1+back%500), h.next+back
					h.next += back % 2
				}
				h.say(cmd, wnd, h.timestamp()-late, sn, una, data)
			}
		}), 1, 8).Draw(r, "habits")
		message := rapid.IntRange(1, MaxMessage).Draw(r, "message")
		every := rapid.IntRange(5, 50).Draw(r, "every")
		seed := rapid.Uint64().Draw(r, "seed")
		synctest.Test(t, func(t *testing.T) {
			h := newHostile(t, seed)
			h.run(5*time.Second, message, every, func(int) { habits[h.rng.IntN(len(habits))](h) })
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	})
}
