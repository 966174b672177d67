package replication

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/fakeconn"
)

// TestProcessed compares what a client learns with what the server processed, and checks that the
// rest of the message is what was appended.
func TestProcessed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := AppendProcessed([]byte("before"))
		want := map[uint8][2]uint64{} // calls processed and sent
		for rpc := range uint8(20) {
			if rapid.Bool().Draw(t, "reported") {
				next := rapid.Uint64Range(0, 1<<40).Draw(t, "next")
				if len(want) < MaxProcessed {
					want[rpc] = [2]uint64{next, next + rapid.Uint64Range(0, 1<<15-1).Draw(t, "later")}
				}
				b = AddProcessed(b, len("before"), rpc, next)
			}
		}
		b = append(b, "behind"...)
		p, rest, err := parseProcessed(b[len("before"):])
		if err != nil || string(rest) != "behind" {
			t.Fatalf("the rest is %q, %v", rest, err)
		}
		for rpc := range uint8(20) {
			next, ok := p.Of(rpc, want[rpc][1])
			if _, reported := want[rpc]; ok != reported || next != want[rpc][0] {
				t.Fatalf("RPC %d: %d, %t, want %d", rpc, next, ok, want[rpc][0])
			}
		}
	})
	for _, b := range []string{"", "\x01\x00\x00", "\x02\x01\x00\x00\x01\x00\x00", "\x11" + string(make([]byte, 99))} {
		if _, _, err := parseProcessed([]byte(b)); !errors.Is(err, snapshot.ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
	if next, ok := (Processed{1, 4, 9, 0}).Of(4, 8); !ok || next != 8 {
		t.Errorf("%d calls of 8 were processed", next)
	}
}

// TestProcessedOfMessages checks that messages of one datagram and of several bring what was
// processed when they were sent.
func TestProcessedOfMessages(t *testing.T) {
	processed := AddProcessed(AppendProcessed(nil), 0, 7, 300)
	p := newPairOver(t, fakeconn.Conn{Keep: true, Processed: processed}).subscribe()
	for i, size := range []int{balls, 400, 1} {
		datagrams := p.send(uint64(i+1), size, func(k int) (snapshot.Object, ball) {
			return snapshot.Object{ID: uint16(k)}, ball{Position: schema.Vec3{X: float64(i*977*k%800) / 3, Y: float64(k*k%700) / 7}}
		})
		if (len(datagrams) > 1) != (size == 400) {
			t.Fatalf("%d objects are %d datagrams", size, len(datagrams))
		}
		p.toClient.Processed = AddProcessed(AppendProcessed(nil), 0, 7, 400) // too late for this message
		for _, b := range datagrams {
			p.deliver(b)
		}
		p.toClient.Processed = processed
		p.ack()
		if p.probe.tick != uint64(i+1) || !bytes.Equal(p.probe.processed, processed) || p.probe.set.Len() != size {
			t.Fatalf("tick %d in %d datagrams: tick %d, %d objects, processed %x", i+1, len(datagrams), p.probe.tick, p.probe.set.Len(), p.probe.processed)
		}
	}
}
