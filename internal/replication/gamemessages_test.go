package replication

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// TestGameMessages delivers snapshots, some of which are lost, and messages of the game, which may
// come long before or after the snapshots of their ticks. Each message is delivered once, in order,
// and with the first snapshot of its tick or a later one, or when the stream ends.
func TestGameMessages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(t).subscribe()
		var underway [][]byte // of the reliable channel
		var ticks []uint64    // of the messages, in order
		tick, seen := uint64(0), uint64(0)
		check := func() {
			want := 0
			for arrived := len(ticks) - len(underway); want < arrived && ticks[want] <= seen; {
				want++
			}
			if len(p.probe.game) != want {
				rt.Fatalf("%d messages were delivered after tick %d, want %d of %v", len(p.probe.game), seen, want, ticks)
			}
		}
		arrive := func() {
			b := underway[0]
			underway = underway[1:]
			must(t, p.reliable(message.Type(b[0]), b[1:]...))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"tick": func(rt *rapid.T) {
				p.now = p.now.Add(time.Second / 60)
				tick++
				datagrams := p.send(tick, 1, func(int) (snapshot.Object, ball) { return snapshot.Object{}, ball{Lit: true} })
				if len(datagrams) > 0 && rapid.IntRange(0, 2).Draw(rt, "lost") > 0 { // else it waits for an ack
					p.deliver(datagrams[0])
					p.ack()
					seen = tick
				}
				check()
			},
			"message": func(rt *rapid.T) {
				at := tick + uint64(rapid.IntRange(0, 3).Draw(rt, "ahead"))
				must(t, p.replica.SendGameMessage(at, binary.LittleEndian.AppendUint32(nil, uint32(len(ticks)))))
				underway, ticks = append(underway, append([]byte(nil), p.toClient.Last...)), append(ticks, at)
			},
			"arrival": func(rt *rapid.T) {
				if len(underway) == 0 {
					rt.Skip("no message")
				}
				arrive()
				check()
			},
		})
		for len(underway) > 0 {
			arrive()
		}
		check()
		p.worlds.End()
		for i, m := range p.probe.game {
			if m.tick != ticks[i] || binary.LittleEndian.Uint32(m.data) != uint32(i) {
				rt.Fatalf("message %d is %+v, want tick %d", i, m, ticks[i])
			}
		}
		if len(p.probe.game) != len(ticks) {
			rt.Fatalf("%d of %d messages were delivered in the end", len(p.probe.game), len(ticks))
		}
	})
}

// TestGameMessageLimits checks what a client holds, and what is refused.
func TestGameMessageLimits(t *testing.T) {
	p := newPair(t)
	if err := p.replica.SendGameMessage(1, nil); !errors.Is(err, ErrNotReady) {
		t.Error(err)
	}
	p.subscribe()
	for _, c := range []struct {
		tick uint64
		size int
	}{{1, MaxGameMessage + 1}, {MaxTick + 1, 0}} {
		if err := p.replica.SendGameMessage(c.tick, make([]byte, c.size)); err == nil {
			t.Errorf("tick %d, %d bytes: no error", c.tick, c.size)
		}
	}
	for i := range 100 {
		must(t, p.replica.SendGameMessage(uint64(100+i), make([]byte, MaxGameMessage)))
		must(t, p.reliable(message.Type(p.toClient.Last[0]), p.toClient.Last[1:]...))
		if size := (i + 1 - len(p.probe.game)) * MaxGameMessage; size > maxHeld {
			t.Fatalf("%d bytes are held", size)
		}
	}
	if n := len(p.probe.game); n < 60 || n > 75 || p.probe.game[n-1].tick != uint64(99+n) {
		t.Errorf("%d messages were delivered early", n)
	}
	for _, b := range [][]byte{{3}, {3, 0x80}, append([]byte{3, 1}, make([]byte, MaxGameMessage+1)...), binary.AppendUvarint([]byte{3}, MaxTick+1)} {
		if err := p.reliable(message.GameMessage, b...); !errors.Is(err, message.ErrMalformed) {
			t.Errorf("%.9x: %v", b, err)
		}
	}
}

// TestTickAt inverts TickTime, also for times and rates at their bounds.
func TestTickAt(t *testing.T) {
	for _, hz := range []float64{MaxRate, 60, 1, 1e-6, 1e-300, math.SmallestNonzeroFloat64} {
		for _, at := range []time.Duration{math.MinInt64, -1, 0, 1, time.Second, 1 << 61, math.MaxInt64 - 1, math.MaxInt64} {
			tick := TickAt(at, hz)
			if tick > MaxTick || tick > 0 && TickTime(tick, hz) > at || tick < MaxTick && at >= 0 && TickTime(tick+1, hz) <= at {
				t.Errorf("%v Hz at %v: tick %d, which is at %v", hz, at, tick, TickTime(tick, hz))
			}
		}
	}
}
