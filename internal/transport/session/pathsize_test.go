package session

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// sendLarge sends a payload of 1,173 bytes each 50 ms for a time, and returns how many arrived.
func (p *pair) sendLarge(from, to *end, d time.Duration) (arrived, sent int) {
	to.payloads = nil
	for range d / (50 * time.Millisecond) {
		p.send(from, fmt.Sprintf("%*d", wire.MaxBody, sent))
		sent++
		p.run(50 * time.Millisecond)
	}
	p.run(2 * oneWay)
	for i := range to.payloads {
		if len(to.payloads[i]) != wire.MaxBody {
			p.t.Errorf("%d bytes arrived", len(to.payloads[i]))
		}
	}
	return len(to.payloads), sent
}

// TestPathShrinksAndGrows checks both directions.
func TestPathShrinksAndGrows(t *testing.T) {
	for _, limit := range []int{548, 900, 1190} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			for _, ends := range [][2]*end{{p.client, p.server}, {p.server, p.client}} {
				from, to := ends[0], ends[1]
				if n, sent := p.sendLarge(from, to, 5*time.Second); n != sent {
					t.Errorf("%s: %d of %d arrived at first", from.name, n, sent)
				}
				to.limit = limit
				if n, sent := p.sendLarge(from, to, 10*time.Second); sent-n > 50 {
					t.Errorf("%s, %d bytes: %d of %d arrived once the path had shrunk", from.name, limit, n, sent)
				}
				if n, sent := p.sendLarge(from, to, 5*time.Second); n != sent {
					t.Errorf("%s, %d bytes: %d of %d arrived later", from.name, limit, n, sent)
				}
				if got := from.s.MaxDatagram(); got != max(min(limit, 872), 548) && got != limit {
					t.Errorf("%s, %d bytes: found %d", from.name, limit, got)
				}
				to.limit = 0
				if n, sent := p.sendLarge(from, to, growInterval+2*time.Second); n != sent || from.s.MaxDatagram() < wire.BaseDatagram {
					t.Errorf("%s: %d of %d arrived once the path had grown, found %d", from.name, n, sent, from.s.MaxDatagram())
				}
			}
		})
	}
}

// TestPathShrinksInAPause: nothing is lost if no large datagrams were sent for two seconds before.
func TestPathShrinksInAPause(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.sendLarge(p.client, p.server, 10*time.Second)
		p.server.limit = 548
		p.run(2 * time.Second)
		if n, sent := p.sendLarge(p.client, p.server, 5*time.Second); n != sent {
			t.Errorf("%d of %d arrived", n, sent)
		}
	})
}

// TestOrdinaryPathCostsNothing: on a path that carries 1,200 bytes, a listener that sends large
// datagrams sends no probes and no parts, also if a tenth of all datagrams is lost.
func TestOrdinaryPathCostsNothing(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			random := rand.New(rand.NewPCG(1, 2))
			parts := 0
			for _, e := range []*end{p.client, p.server} {
				e.drop = func(b []byte) bool {
					h, _ := wire.ParseHeader(b)
					if h.Kind == wire.PartKind {
						parts++
					}
					return random.Float64() < loss
				}
			}
			p.run(12 * time.Second)
			_, sent := p.sendLarge(p.server, p.client, time.Minute)
			if n := p.server.s.Stats().ProbesSent; n != 0 || parts != 0 {
				t.Errorf("loss of %v: %d probes, and %d parts of %d payloads", loss, n, parts, sent)
			}
		})
	}
}

// TestProbesAreSpaced: a peer that asks for answers all the time, and answers no probe, gets one
// each half a second, and six in all.
func TestProbesAreSpaced(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.run(10 * time.Second)
		p.client.limit = wire.MinDatagram
		var last time.Time
		probes := 0
		p.client.drop = func(b []byte) bool {
			h, _ := wire.ParseHeader(b)
			if h.Kind != wire.ProbeKind || len(b) < 100 {
				return false
			}
			if gap := time.Since(last); gap < probeInterval {
				t.Errorf("a probe %v after the one before", gap)
			}
			last = time.Now()
			probes++
			return true
		}
		for range 200 {
			p.send(p.server, fmt.Sprintf("%*d", wire.MaxBody, 0))
			p.client.s.sendHeartbeat(time.Now(), true)
			p.run(50 * time.Millisecond)
		}
		if probes != 6 {
			t.Errorf("%d probes", probes)
		}
	})
}

// TestParts delivers bodies whose parts arrive in any order, not twice, and with the number of the
// first part, and drops invalid ones.
func TestParts(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		p.client.s.resetPathSize()
		body := bytes.Repeat([]byte("0123456789"), 117)
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2, 1, 0}} {
			p.flying, p.server.payloads = nil, nil
			p.client.s.pathSize.doubted = true
			first := p.client.s.next
			p.send(p.client, string(body))
			parts := slices.Clone(p.flying[:3]) // before a probe
			size := 0
			for _, f := range parts {
				size += len(f.data)
			}
			for _, i := range order {
				if p.server.input(time.Now(), parts[i].data) == Payload && (p.server.s.Number() != first || p.server.s.Size() != size) {
					t.Errorf("number %d and size %d, want %d and %d", p.server.s.Number(), p.server.s.Size(), first, size)
				}
			}
			if len(p.server.payloads) != 1 || p.server.payloads[0] != string(body) {
				t.Errorf("order %v: %d payloads", order, len(p.server.payloads))
			}
		}
		for name, part := range map[string]struct {
			wire.Part
			data string
		}{
			"one part":           {wire.Part{Count: 1}, "x"},
			"index above count":  {wire.Part{Count: 2, Index: 2, Offset: 1}, "x"},
			"no bytes":           {wire.Part{Count: 2}, ""},
			"first with offset":  {wire.Part{Count: 2, Offset: 1}, "x"},
			"other without":      {wire.Part{Count: 2, Index: 1}, "x"},
			"beyond the maximum": {wire.Part{Count: 2, Index: 1, Offset: wire.MaxDatagram}, "x"},
		} {
			p.client.s.sendKind(time.Now(), serverAddr, wire.PartKind, wire.AppendPart(nil, part.Part), []byte(part.data))
			if v := p.server.input(time.Now(), p.last()); v != Malformed {
				t.Errorf("%s: verdict %d", name, v)
			}
		}
		// The second of two parts, after one of 1 byte.
		for name, last := range map[string]wire.Part{
			"a gap":         {Count: 2, Index: 1, Offset: 2},
			"another kind":  {Count: 2, Index: 1, Offset: 1, Reliable: true},
			"another count": {Count: 3, Index: 1, Offset: 1},
		} {
			p.client.s.sendKind(time.Now(), serverAddr, wire.PartKind, wire.AppendPart(nil, wire.Part{Count: 2}), []byte("x"))
			if v := p.server.input(time.Now(), p.last()); v != Accepted {
				t.Errorf("%s: verdict %d of the first part", name, v)
			}
			p.client.s.sendKind(time.Now(), serverAddr, wire.PartKind, wire.AppendPart(nil, last), []byte("y"))
			if v := p.server.input(time.Now(), p.last()); v != Malformed {
				t.Errorf("%s: verdict %d", name, v)
			}
		}
		if _, err := new(assembly).add(0, 100, append(wire.AppendPart(nil, wire.Part{Count: 2, Index: 1, Offset: 1}), 'x')); err == nil {
			t.Error("a second part without a packet number for the first one")
		}
	})
}

// TestLateParts: a body whose first part has a packet number far behind the newest one is late, as
// a datagram with the whole body would be.
func TestLateParts(t *testing.T) {
	for _, between := range []int{maxReordering - 3, maxReordering} {
		inOpenPair(t, func(t *testing.T, p *pair) {
			p.client.s.sendKind(time.Now(), serverAddr, wire.PartKind, wire.AppendPart(nil, wire.Part{Count: 2}), []byte("x"))
			first := p.last()
			p.client.s.sendKind(time.Now(), serverAddr, wire.PartKind, wire.AppendPart(nil, wire.Part{Count: 2, Index: 1, Offset: 1}), []byte("y"))
			second := p.last()
			p.server.input(time.Now(), first)
			for range between {
				p.server.input(time.Now(), p.lastSent())
			}
			want := Payload
			if between == maxReordering {
				want = Late
			}
			if v := p.server.input(time.Now(), second); v != want {
				t.Errorf("%d datagrams later: verdict %d, want %d", between, v, want)
			}
		})
	}
}

// TestPartsAreBounded: a peer whose bodies never complete makes an end keep at most maxAssembled.
func TestPartsAreBounded(t *testing.T) {
	inOpenPair(t, func(t *testing.T, p *pair) {
		rest := make([]byte, wire.BodyOf(wire.MaxDatagram)-wire.PartSize)
		for range 10 * maxAssembled {
			p.client.s.next++ // leaves out the first part
			p.client.s.sendKind(time.Now(), serverAddr, wire.PartKind, wire.AppendPart(nil, wire.Part{Count: 2, Index: 1, Offset: 1}), rest)
			if v := p.server.input(time.Now(), p.last()); v != Accepted {
				t.Fatalf("verdict %d", v)
			}
		}
		size := 0
		for _, b := range p.server.s.parts.bodies {
			size += cap(b.body)
		}
		if n := len(p.server.s.parts.bodies); n != maxAssembled || size > 32<<10 {
			t.Errorf("%d bodies, %d bytes", n, size)
		}
		p.server.payloads = nil
		p.client.s.resetPathSize()
		p.flying = nil
		p.send(p.client, string(rest[:1000]))
		p.run(2 * oneWay)
		if len(p.server.payloads) != 1 {
			t.Errorf("%d payloads arrived after incomplete ones", len(p.server.payloads))
		}
		p.run(5 * time.Second)
		if p.server.s.parts != nil {
			t.Error("the memory of parts is kept although none arrive")
		}
	})
}
