package ds_test

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// flushOnly is a Config.Tick that is longer than a test: payloads wait for Flush or a full
// datagram.
const flushOnly = 1000 * time.Hour

// coalesced are some RPCs of one client that share what they can.
type coalesced struct {
	every, redundancy, rpcs int
	tick                    time.Duration
	link                    simnet.Config
	late                    bool
}

// play calls each RPC 60 times a second, one after the other, and checks what
// arrives.
func (c *coalesced) play(t *testing.T, frames uint64) (*uplinktest.Server, *client.Conn, []client.RPCStats, []uplinktest.Log) {
	t.Helper()
	up, down := symmetric(100*ms, c.link)
	network := uplinktest.NewNetwork(t, up, down)
	var journals []*uplinktest.Journal
	srv := uplinktest.Serve(t, network, ds.Config{DeliverLate: c.late}, func(s *ds.Server) (err error) {
		for i := range c.rpcs {
			journals = append(journals, uplinktest.NewJournal(t, uint64(i)))
			if err == nil {
				err = ds.Handle(s, fmt.Sprint("Move", i), journals[i].Handle)
			}
		}
		return err
	})
	conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive, Redundancy: c.redundancy, Tick: c.tick, BindTimeout: time.Minute, Timeout: time.Minute})
	var moves []*client.Stream[uplinktest.Move]
	for i := range c.rpcs {
		moves = append(moves, uplinktest.Bind(t, conn, fmt.Sprint("Move", i), client.BindConfig{SendEvery: c.every}))
	}
	for n := range frames {
		for i, move := range moves {
			m := uplinktest.MoveAt(uint64(i), n)
			uplinktest.Must(t, move.Send(&m))
		}
		if c.tick == flushOnly {
			uplinktest.Must(t, conn.Flush())
		}
		time.Sleep(time.Second / 60)
	}
	time.Sleep(3 * time.Second)
	var sent []client.RPCStats
	var logs []uplinktest.Log
	for i, got := range srv.Stats().RPCs {
		sent, logs = append(sent, moves[i].Stats()), append(logs, journals[i].Only())
		l, s := &logs[i], &sent[i]
		if got.Frames() != l.Frames() || got.Missed != l.Missed || l.Frames()+l.Missed != l.Next || s.Frames() != frames {
			t.Errorf("%d frames sent, %d delivered, %d missed up to %d; counted %+v", s.Frames(), l.Frames(), l.Missed, l.Next, got)
		}
		if got.Coalesced > s.Coalesced || got.CoalescedBytes > s.CoalescedBytes || got.Bytes > s.Bytes || c.link == (simnet.Config{}) && (got.Coalesced != s.Coalesced || got.CoalescedBytes != s.CoalescedBytes) {
			t.Errorf("counted %+v of %+v", got, s)
		}
		if tag := uint64(transport.AES128GCM.Overhead()); got.AEADBytes != tag*(got.Messages-got.Coalesced) || s.AEADBytes != tag*(s.Messages-s.Coalesced) {
			t.Errorf("seals of %d and %d bytes, counted %+v of %+v", got.AEADBytes, s.AEADBytes, got, s)
		}
		for d, n := range got.Drops {
			if d := ds.Drop(d); n != 0 && d != ds.Late && d != ds.Duplicate {
				t.Errorf("%d payloads dropped as %v", n, d)
			}
		}
	}
	if n := srv.Stats().Drops; n != ([len(n)]uint64{}) {
		t.Errorf("drops %v", n)
	}
	return srv, conn, sent, logs
}

// TestCoalesce verifies all ways to coalesce payloads and to batch frames, over links with and
// without loss.
func TestCoalesce(t *testing.T) {
	n := 0
	for every := 1; every <= client.MaxSendEvery; every++ {
		for _, redundancy := range []int{rpcdelta.RedundancyOff, rpcdelta.RedundancyAuto, 3} {
			for _, tick := range []time.Duration{0, time.Second / 60, flushOnly} {
				for _, link := range []simnet.Config{{}, {Loss: 0.1, Burst: 2, Duplicate: 0.1, Seed: 7}} {
					if n++; n%thin(11) != 0 {
						continue
					}
					name := fmt.Sprintf("every=%d/redundancy=%d/tick=%v/loss=%v", every, redundancy, tick, link.Loss)
					bubble(t, name, func(t *testing.T) {
						checkCoalesce(t, coalesced{every: every, redundancy: redundancy, rpcs: 2, tick: tick, link: link})
					})
				}
			}
		}
	}
}

func checkCoalesce(t *testing.T, c coalesced) {
	const frames = 1200
	_, conn, sent, logs := c.play(t, frames)
	for i := range sent {
		s, l := &sent[i], &logs[i]
		if n := s.Messages; n != uint64(frames/c.every) {
			t.Errorf("RPC %d: %d payloads of %d frames", i, n, frames)
		}
		if share := float64(l.Frames()) / frames; c.link.Loss == 0 && share != 1 || share < 0.85 || c.redundancy == 3 && c.every < 3 && share < 0.97 {
			t.Errorf("RPC %d: %.4f delivered", i, share)
		}
		if s.Delta < frames*8/10 {
			t.Errorf("RPC %d: %d of %d frames are deltas", i, s.Delta, frames)
		}
	}
	// Both RPCs call at the same time, so that each payload of the second follows one
	// of the first.
	if c.tick == 0 && sent[1].Coalesced != 0 || c.tick != 0 && sent[1].Coalesced < sent[1].Messages*9/10 {
		t.Errorf("%d of %d payloads share a datagram", sent[1].Coalesced, sent[1].Messages)
	}
	alone := sent[0].Messages - sent[0].Coalesced + sent[1].Messages - sent[1].Coalesced
	others := conn.Stats().Transport.DatagramsSent - alone // heartbeats, requests to bind, probes
	if most := uint64(frames/60 + 25); others > most {
		t.Errorf("%d datagrams for %d payloads, want at most %d more", conn.Stats().Transport.DatagramsSent, alone, most)
	}
}

// TestOvertakenFar verifies that payloads are dropped that arrive after so many newer ones that
// their short sequence numbers look like newer ones. Payloads have several frames, and datagrams
// may have several payloads.
func TestOvertakenFar(t *testing.T) {
	for _, tick := range []time.Duration{0, 60 * ms} {
		for seed := range uint64(4 / thin(4)) {
			synctest.Test(t, func(t *testing.T) {
				c := coalesced{every: 4, redundancy: rpcdelta.RedundancyOff, rpcs: 1, tick: tick, late: true, link: simnet.Config{Jitter: 4 * time.Second, Seed: seed}}
				srv, _, sent, logs := c.play(t, 3000)
				got := srv.Stats().RPCs[0]
				if got.LateFrames == 0 || got.Drops[ds.Late] == 0 || logs[0].Frames() < 300 {
					t.Errorf("%d frames delivered, %d of them late, %d of %d payloads dropped as late", logs[0].Frames(), got.LateFrames, got.Drops[ds.Late], sent[0].Messages)
				}
			})
		}
	}
}

// TestBandwidth verifies that a connection reduces redundancy and then batches frames until it
// keeps to its bandwidth limit, loses no frame by that, and returns when the limit permits it.
func TestBandwidth(t *testing.T) {
	for i, c := range []struct {
		limit, redundancy, hz int
		want                  client.BudgetStats // SendEvery and Redundancy
		over                  bool
	}{
		{limit: 100_000, redundancy: 3, hz: 60, want: client.BudgetStats{SendEvery: 1, Redundancy: 7}},
		{limit: 31_000, redundancy: 3, hz: 60, want: client.BudgetStats{SendEvery: 1, Redundancy: 0}},
		{limit: 22_900, redundancy: 3, hz: 60, want: client.BudgetStats{SendEvery: 2, Redundancy: 0}},
		{limit: 5_000, redundancy: 3, hz: 60, want: client.BudgetStats{SendEvery: 4, Redundancy: 0}, over: true},
		{limit: 15_000, redundancy: rpcdelta.RedundancyOff, hz: 120, want: client.BudgetStats{SendEvery: 4, Redundancy: 0}, over: true},
	} {
		if i%thin(2) != 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			network := uplinktest.NewNetwork(t, simnet.Config{Delay: 30 * ms}, simnet.Config{Delay: 30 * ms})
			journal := uplinktest.NewJournal(t, 1)
			uplinktest.Serve(t, network, ds.Config{}, handles("Move", journal.Handle))
			conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive, Redundancy: c.redundancy, Bandwidth: c.limit})
			move := uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: float64(c.hz)})
			settle := func(hz int, calls, first int) (mean float64) {
				before := conn.Stats().Transport
				play(t, move, 1, uint64(first), calls, time.Duration(hz))
				after := conn.Stats().Transport
				bytes := after.BytesSent - before.BytesSent + 28*(after.DatagramsSent-before.DatagramsSent)
				return 8 * float64(bytes) * float64(hz) / float64(calls)
			}
			settle(c.hz, 15*c.hz, 0)
			over := conn.Stats().Budget.OverBits
			mean := settle(c.hz, 10*c.hz, 15*c.hz)
			got := conn.Stats().Budget
			t.Logf("limit %d, redundancy %d: %.0f bits a second, %+v; %d bits over before", c.limit, c.redundancy, mean, got, over)
			if got.Limit != c.limit || got.SendEvery != c.want.SendEvery || got.Redundancy != c.want.Redundancy {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if above := mean > 1.02*float64(c.limit); above != c.over || (got.OverBits > over+uint64(c.limit)/10) != c.over || math.Abs(got.BitsPerSecond/mean-1) > 0.2 {
				t.Errorf("%.0f bits a second above a limit of %d: %+v", mean, c.limit, got)
			}
			settle(10, 600, 25*c.hz) // room
			if got := conn.Stats().Budget; !c.over && (got.SendEvery != 1 || got.Redundancy < 3) {
				t.Errorf("with room for all: %+v", got)
			}
			time.Sleep(time.Second)
			if l := journal.Only(); l.Frames() != uint64(25*c.hz+600) || l.Missed != 0 {
				t.Errorf("%d frames came, %d are missed", l.Frames(), l.Missed)
			}
		})
	}
}

// TestSharedBits measures the bits of two RPCs that are called in the same tick, without
// heartbeats, for docs/results.md.
func TestSharedBits(t *testing.T) {
	type look struct {
		View  schema.Rotator `uplink:"bits=16"`
		Shoot bool
	}
	ticks := 3600 / thin(4)
	run := func(tick time.Duration, every int) (bits float64) {
		synctest.Test(t, func(t *testing.T) {
			network := uplinktest.NewNetwork(t, simnet.Config{Delay: 50 * ms}, simnet.Config{Delay: 50 * ms})
			srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
				return errors.Join(
					ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {}),
					ds.Handle(s, "Look", func(*ds.Player, ds.Frame[look]) {}))
			})
			conn := uplinktest.Dial(t, network, client.Config{Codec: rpcdelta.Adaptive, Tick: tick})
			move := uplinktest.Bind(t, conn, "Move", client.BindConfig{SendEvery: every})
			aim, err := client.Bind[look](t.Context(), conn, "Look", client.BindConfig{SendEvery: every})
			uplinktest.Must(t, err)
			time.Sleep(time.Second)
			bytes := uint64(0)
			network.Watch(func(from, _ netip.AddrPort, b []byte) {
				if from.Port() != 7777 && uplinktest.Kind(b) == uplinktest.DataKind {
					bytes += uint64(len(b)) + transport.IPSize
				}
			})
			for n := range uint64(ticks) {
				m := uplinktest.MoveAt(1, n)
				uplinktest.Must(t, move.Send(&m))
				uplinktest.Must(t, aim.Send(&look{View: m.Rotation, Shoot: n%20 == 0}))
				if tick != 0 {
					uplinktest.Must(t, conn.Flush())
				}
				time.Sleep(time.Second / 60)
			}
			settle(time.Second)
			for _, r := range srv.Stats().RPCs {
				if r.Frames() != uint64(ticks) {
					t.Errorf("%d frames of %s came", r.Frames(), r.RPC)
				}
			}
			bits = 8 * float64(bytes) / float64(ticks)
		})
		return bits
	}
	alone, shared := run(0, 1), run(flushOnly, 1)
	pairs, both := run(0, 2), run(flushOnly, 2)
	t.Logf("bits a tick of both RPCs: %.1f, in one datagram %.1f, in pairs %.1f, both %.1f", alone, shared, pairs, both)
	around := 8 * float64(transport.HeaderSize+transport.AES128GCM.Overhead()+transport.IPSize)
	if saved := alone - shared; math.Abs(saved-(around-2*8)) > 8 { // the bundle has a byte of type and one of length
		t.Errorf("sharing a datagram saves %.1f bits, want about %.0f", saved, around-2*8)
	}
	if saved := alone - pairs; saved < 0.9*around {
		t.Errorf("pairs save %.1f bits, want about %.0f", saved, around)
	}
	if both > shared*0.7 || both > pairs*0.75 {
		t.Errorf("%.1f bits with both", both)
	}
}
