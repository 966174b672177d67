package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// TestOutage loses all datagrams of a direction for some seconds, more than the packet number of a
// data datagram distinguishes and up to what that of a heartbeat does. The receiver accepts data
// again from the first heartbeat on, of which the listener sends one in heartbeatInterval, and the
// client in half as much more if it is not asked for one. The sender sends all the time, but the
// receiver need not.
func TestOutage(t *testing.T) {
	const (
		outage = 5 * time.Second
		step   = time.Millisecond
		half   = 1 << (wire.DataNumberBits - 1)
	)
	for _, lost := range []int{half - 100, half + 100, 2*half - 50, 2 * half, 2*half + 100, 5 * half, 1<<(wire.NumberBits-1) - 100} {
		for _, down := range []bool{false, true} {
			for _, answers := range []bool{false, true} {
				inOpenPair(t, func(t *testing.T, p *pair) {
					name := fmt.Sprintf("%d lost, down %v, answered %v", lost, down, answers)
					from, to := p.client, p.server
					if down {
						from, to = to, from
					}
					talk := func(n int) {
						for range n {
							p.send(from, "move")
						}
						if answers {
							p.send(to, "ack")
						}
						p.run(step)
					}
					for range outage / step {
						talk(1)
					}
					to.cut = true
					for end := from.s.next + uint64(lost); from.s.next < end; {
						talk(int(min(end-from.s.next, uint64(lost)/uint64(outage/step)+1)))
					}
					p.run(oneWay)
					to.cut = false
					number := from.s.next
					to.payloads, to.verdicts = nil, nil
					restored := time.Duration(0)
					for start := time.Now(); len(to.payloads) == 0; restored = time.Since(start) {
						if talk(1); time.Since(start) > heartbeatInterval*3/2+oneWay+step {
							t.Fatalf("%s: no payload in %v", name, time.Since(start))
						}
					}
					for _, v := range to.verdicts[:slices.Index(to.verdicts, Payload)] {
						if v != Unauthenticated && v != Duplicate && v != Late && v != Accepted {
							t.Errorf("%s: verdict %d", name, v)
						}
					}
					if lost < half && restored > oneWay+2*step || to.s.Number() < number {
						t.Errorf("%s: data is accepted after %v, with number %d, want %d or more", name, restored, to.s.Number(), number)
					}
					received := len(to.payloads)
					for range 1000 {
						talk(1)
					}
					if got := len(to.payloads) - received; got != 1000 || p.client.s.State() != Open || p.server.s.State() != Open {
						t.Errorf("%s: %d of 1000 payloads arrive afterwards", name, got)
					}
				})
			}
		}
	}
}
