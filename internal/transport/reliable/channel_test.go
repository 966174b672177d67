package reliable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"))
}

const (
	testConv = 0x1234
	testMTU  = 1173
	// testQueue is the default limit of a connection.
	testQueue = 256 << 10
	// testOverhead is that of the default suite, and testPatience the default timeout.
	testOverhead = 11 + 16 + 28
	testPatience = 15 * time.Second
)

// newChannel returns a channel of the tests' configuration.
func newChannel(output func([]byte)) Channel {
	return New(Config{Conv: testConv, MTU: testMTU, Overhead: testOverhead, Patience: testPatience, Limits: NewLimits(testQueue, 64<<20), Output: func(_ time.Time, b []byte) { output(b) }})
}

// message makes the n-th test message; sizes from a byte to the limit.
func message(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	size := 1 + rng.IntN(300)
	if n%10 == 0 {
		size = 1 + rng.IntN(MaxMessage)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestInOrderDespiteLoss sends messages in both directions. When all are acknowledged, nothing
// remains to be sent.
func TestInOrderDespiteLoss(t *testing.T) {
	for _, loss := range []float64{0, 0.3} {
		synctest.Test(t, func(t *testing.T) {
			const messages = 300
			l := newLink(t, 1, 2*time.Millisecond, loss)
			var sent, got [2]int
			for start := time.Now(); got[0] < messages || got[1] < messages; {
				if time.Since(start) > 2*time.Minute {
					t.Fatalf("after two minutes only %v of %d messages came", got, messages)
				}
				for i := range l.ends {
					for sent[i] < messages && l.send(i, message(sent[i])) {
						sent[i]++
					}
				}
				for i, received := range l.step() {
					for _, b := range received {
						if !bytes.Equal(b, message(got[i])) {
							t.Fatalf("end %d: message %d is another", i, got[i])
						}
						got[i]++
					}
				}
			}
			for range 5000 {
				l.step()
			}
			for i := range l.ends {
				if at, ok := l.ends[i].Next(); ok {
					t.Errorf("end %d still wants to be advanced, at %v, now %v", i, at, time.Now())
				}
			}
		})
	}
}

// The time that a caller took before it waited for a lock is behind KCP's clock. An acknowledgment
// that KCP finds too early to flush goes with the next one.
func TestAcknowledgesDespiteAStaleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acks := 0
		c := newChannel(func(b []byte) {
			if b[offCommand] == kcp.IKCP_CMD_ACK {
				acks++
			}
		})
		stale := time.Now()
		time.Sleep(interval / 2)
		check.Must(t, c.Send(stale, []byte("x")))
		for _, cmd := range []uint8{kcp.IKCP_CMD_ACK, kcp.IKCP_CMD_PUSH} { // of x, and a message
			var data []byte
			if cmd == kcp.IKCP_CMD_PUSH {
				data = []byte("y")
			}
			b := segment(testConv, cmd, 0, 0, data)
			binary.LittleEndian.PutUint32(b[16:], 1)
			check.Must(t, c.Input(stale, b))
		}
		for at, ok := c.Next(); ok; at, ok = c.Next() {
			time.Sleep(time.Until(at))
			c.Advance(time.Now())
		}
		if acks != 1 {
			t.Errorf("%d acknowledgments, want 1", acks)
		}
	})
}

func TestSendLimits(t *testing.T) {
	c := newChannel(func([]byte) {})
	now := time.Now()
	if err := c.Send(now, nil); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty message: %v", err)
	}
	if err := c.Send(now, make([]byte, MaxMessage+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("long message: %v", err)
	}
	if c.kcp != nil {
		t.Error("a message that was not sent started the channel")
	}
}

// TestQueue fills the queue of a channel with messages of several sizes: it takes them by their
// bytes, whatever their number, names the limit beyond, and everything arrives in order.
func TestQueue(t *testing.T) {
	for _, size := range []int{1, 100, MaxMessage} {
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t, 1, 40*time.Millisecond, 0)
			limits := NewLimits(testQueue, testQueue+1000)
			for i := range l.ends {
				l.ends[i].cfg.Limits = limits
			}
			b := make([]byte, size)
			sent := 0
			for l.ends[0].Room() >= size {
				b[0] = byte(sent)
				check.Must(t, l.ends[0].Send(time.Now(), b))
				sent++
			}
			if n := sent * size; n < testQueue*size/(size+sizeOf(size))-size {
				t.Errorf("%d messages of %d bytes fit", sent, size)
			}
			err := l.ends[0].Send(time.Now(), b)
			if !errors.Is(err, ErrBacklog) || !strings.Contains(err.Error(), strconv.Itoa(testQueue)) {
				t.Errorf("a message above the limit: %v", err)
			}
			err = l.ends[1].Send(time.Now(), make([]byte, 2000))
			if size < MaxMessage && (!errors.Is(err, ErrBacklog) || !strings.Contains(err.Error(), strconv.Itoa(testQueue+1000))) {
				t.Errorf("a message above the limit of all: %v", err)
			}
			if n := l.ends[0].Unacked(); n != sent {
				t.Errorf("%d messages of %d wait", n, sent)
			}
			arrived := 0
			for arrived < min(sent, 2000) {
				for _, m := range l.step()[1] {
					if len(m) != size || m[0] != byte(arrived) {
						t.Fatalf("message %d: %d bytes, number %d", arrived, len(m), m[0])
					}
					arrived++
				}
			}
			for range 200 {
				l.step()
			}
			if n := l.ends[0].Unacked(); sent <= 2000 && n != 0 {
				t.Errorf("%d messages wait although all have arrived", n)
			}
			l.ends[0].Drop()
			if sent > 2000 {
				return
			}
			l.ends[1].Drop()
			if n := limits.used.Load(); n != 0 {
				t.Errorf("%d bytes are still reserved", n)
			}
		})
	}
}

// segment makes one of any content.
func segment(conv uint32, cmd, frg uint8, sn uint32, data []byte) []byte {
	b := make([]byte, kcp.IKCP_OVERHEAD, kcp.IKCP_OVERHEAD+len(data))
	binary.LittleEndian.PutUint32(b, conv)
	b[offCommand], b[offFragment] = cmd, frg
	binary.LittleEndian.PutUint16(b[6:], window)
	binary.LittleEndian.PutUint32(b[kcp.IKCP_SN_OFFSET:], sn)
	binary.LittleEndian.PutUint32(b[offLength:], uint32(len(data)))
	return append(b, data...)
}

func TestMalformedInput(t *testing.T) {
	good := segment(testConv, kcp.IKCP_CMD_PUSH, 0, 0, []byte("x"))
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[offLength:], 1<<31)
	for name, b := range map[string][]byte{
		"empty":           nil,
		"cut off":         good[:len(good)-1],
		"appendix":        append(bytes.Clone(good), 0),
		"other channel":   segment(testConv+1, kcp.IKCP_CMD_PUSH, 0, 0, []byte("x")),
		"bad second":      append(bytes.Clone(good), segment(testConv+1, kcp.IKCP_CMD_ACK, 0, 0, nil)...),
		"unknown command": segment(testConv, 80, 0, 0, nil),
		"empty data":      segment(testConv, kcp.IKCP_CMD_PUSH, 0, 0, nil),
		"ack with data":   segment(testConv, kcp.IKCP_CMD_ACK, 0, 0, []byte("x")),
		"fragment":        segment(testConv, kcp.IKCP_CMD_PUSH, 1, 0, []byte("x")),
		"negative length": long,
		"larger than MTU": segment(testConv, kcp.IKCP_CMD_PUSH, 0, 0, make([]byte, testMTU)),
	} {
		c := newChannel(func([]byte) {})
		if err := c.Input(time.Now(), b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if c.kcp != nil {
			t.Errorf("%s: started the channel", name)
		}
	}
}

// TestSizes receives messages whose sizes are cut off by segments of a byte, and refuses sizes that
// no channel sends.
func TestSizes(t *testing.T) {
	receive := func(stream []byte) (sizes []int, err error) {
		c := newChannel(func([]byte) {})
		for i, b := range stream {
			check.Must(t, c.Input(time.Now(), segment(testConv, kcp.IKCP_CMD_PUSH, 0, uint32(i), []byte{b})))
			var m []byte
			for ok := true; ok && err == nil; {
				if m, ok, err = c.Receive(time.Now(), nil); ok {
					sizes = append(sizes, len(m))
				}
			}
		}
		return sizes, err
	}
	var stream []byte
	want := []int{1, 2, 127, 128, 129, 130, MaxMessage - 1, MaxMessage}
	for _, n := range want {
		stream = AppendMessage(stream, make([]byte, n))
	}
	if got, err := receive(stream); err != nil || !slices.Equal(got, want) {
		t.Errorf("sizes %d, error %v", got, err)
	}
	for _, size := range [][]byte{{0x80, 0}, {0xff, 0x80}, {0xff, 0xff}} {
		if _, err := receive(size); !errors.Is(err, ErrMalformed) {
			t.Errorf("size % x: got %v, want %v", size, err, ErrMalformed)
		}
	}
}

// FuzzInput feeds the bodies of an input, which are entries, to a channel with a message under way,
// one each 10 ms, and then all of them again and again. The conversation number is replaced by the
// right one.
func FuzzInput(f *testing.F) {
	push := segment(testConv, kcp.IKCP_CMD_PUSH, 0, 0, []byte("x"))
	ack := segment(testConv, kcp.IKCP_CMD_ACK, 0, 0, nil)
	seeds := [][]byte{
		entries.Of(push, false),
		entries.Of(append(bytes.Clone(push), ack...), false),
		append(entries.Of(push, false), entries.Of(ack, false)...),
		entries.Of(segment(testConv, kcp.IKCP_CMD_PUSH, 3, 63, []byte("far ahead")), false),
		entries.Of(segment(testConv, kcp.IKCP_CMD_WASK, 0, 0, nil), false),
	}
	x := corpus.Target{Parser: "reliable", Seeds: seeds, Inputs: 3_000, Check: func(t testing.TB, in []byte) {
		inputs, outputs := 1, 0
		c := newChannel(func(b []byte) {
			outputs++
			if len(b) > testMTU {
				t.Fatalf("%d bytes of segments", len(b))
			}
		})
		now := time.Unix(1, 0)
		check.Must(t, c.Send(now, make([]byte, 3000)))
		for range 10 { // the same again and again must not pile up
			for b := range entries.All(in) {
				b = bytes.Clone(b)
				if len(b) >= 4 {
					binary.LittleEndian.PutUint32(b, testConv)
				}
				inputs++
				_ = c.Input(now, b)
				for range window {
					msg, ok, err := c.Receive(now, nil)
					if len(msg) > MaxMessage {
						t.Fatalf("a message of %d bytes", len(msg))
					}
					if !ok || err != nil {
						break
					}
				}
				now = now.Add(10 * time.Millisecond)
				c.Advance(now)
			}
		}
		if outputs > 10*inputs {
			t.Fatalf("%d datagrams out for %d in", outputs, inputs)
		}
	}}
	x.Run(f)
}

// TestForgedTimes acknowledges a message with timestamps that a peer makes up: times to the
// acknowledgment below 0 and above a minute are not believed.
func TestForgedTimes(t *testing.T) {
	for ago, believed := range map[int32]bool{1: true, maxSample: true, maxSample + 1: false, math.MaxInt32: false, -1: false, math.MinInt32: false} {
		c := newChannel(func([]byte) {})
		now := time.Now()
		check.Must(t, c.Send(now, []byte("x")))
		b := segment(testConv, kcp.IKCP_CMD_ACK, 0, 0, nil)
		binary.LittleEndian.PutUint32(b[offTime:], c.clock-uint32(ago))
		check.Must(t, c.Input(now, b))
		if c.rtt > maxSample || (c.rtt > 0) != believed {
			t.Errorf("%d ms ago: %d ms", ago, c.rtt)
		}
	}
}
