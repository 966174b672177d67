package rpcdelta

import (
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TestNoAllocations verifies that quantizing, encoding, decoding, restoring and acknowledging a
// frame does not allocate once warm.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	forVariants(t, func(t *testing.T, v variant) {
		checkAllocations(t, v, false)
		checkAllocations(t, v, true)
	})
}

func checkAllocations(t *testing.T, v variant, measured bool) {
	c := mustCompile[ServerMove](t)
	p := newPair(t, c.Schema(), v.encoder(EncoderConfig{}), DecoderConfig{DeliverLate: true})
	if measured {
		p.enc.Measure(NewProfile(c.Schema()))
		p.dec.Measure(NewProfile(c.Schema()))
	}
	rng := rand.New(rand.NewPCG(1, 0))
	moves := walkMoves(rng, 200)
	got := ServerMove{Payload: make([]byte, 0, 64)}
	i := 0
	next := func() *ServerMove {
		i++
		return &moves[i%len(moves)]
	}
	full := func() {
		must(t, c.Quantize(p.frame, next()))
		p.exchange(t)
		must(t, c.Restore(&got, p.delivered))
	}
	repeated := func() { // redundant frames, if any, are delivered too
		p.send(t)
		full()
	}
	held := func() {
		for range 3 {
			must(t, p.enc.Hold(p.frame))
		}
		for p.enc.Held() > 0 {
			p.payload, _ = p.enc.AppendHeld(p.payload[:0])
			p.receive(t)
		}
		p.acknowledge(t)
	}
	for range 200 {
		full()
		full()
		repeated()
		held()
	}
	for name, f := range map[string]func(){
		"held":     held,
		"all":      full,
		"quantize": func() { _ = c.Quantize(p.frame, next()) },
		"restore":  func() { _ = c.Restore(&got, p.delivered) },
		"full":     func() { inspect.FullBits(c.Schema(), p.frame) },
		"ack":      func() { p.acknowledge(t) },
		"peek":     func() { _, _ = PeekRPC(p.payload) },
		"repeated": repeated,
		"lost":     func() { p.send(t) }, // keyframes after a while
		"late": func() {
			if _, err := p.dec.Decode(p.payload); err == nil {
				_, _ = p.dec.Decode(p.payload)
			}
		},
	} {
		if n := allocs.PerRun(300, f); n != 0 {
			t.Errorf("%s, measured %v: %v allocations a run", name, measured, n)
		}
	}
}
