package ds_test

import (
	"errors"
	"math"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestBandwidth verifies that a connection reduces redundancy and then batches frames until it
// keeps to its bandwidth limit, loses no frame by that, and returns when the limit permits it.
func TestBandwidth(t *testing.T) {
	measures(t)
	for _, c := range []struct {
		limit, redundancy, hz int
		every                 float64 // frames per payload
		want                  int     // redundancy
		over                  bool
	}{
		{limit: 100_000, redundancy: 3, hz: 60, every: 1, want: rpcdelta.MaxRedundancy},
		{limit: 31_000, redundancy: 3, hz: 60, every: 1.5, want: 2},
		{limit: 22_900, redundancy: 3, hz: 60, every: 2, want: 2},
		{limit: 5_000, redundancy: 3, hz: 60, every: 4, over: true},
		{limit: 15_000, redundancy: rpcdelta.RedundancyOff, hz: 120, every: 4, over: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := linkedBy(t, 60*ms, simnet.Config{})
			journal := uplinktest.NewJournal(t, 1)
			serve(t, network, ds.Config{}, handles("Move", journal.Handle))
			conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive, Redundancy: c.redundancy}, Bandwidth: c.limit})
			moves, next := uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: float64(c.hz)}), 0
			call := func(hz, calls int) (mean float64) {
				before := conn.Stats().Transport
				play(t, moves, 1, uint64(next), calls, time.Duration(hz))
				next += calls
				after := conn.Stats().Transport
				bytes := after.BytesSent - before.BytesSent + endpoint.IPSize*(after.DatagramsSent-before.DatagramsSent)
				return 8 * float64(bytes) * float64(hz) / float64(calls)
			}
			call(c.hz, 15*c.hz)
			over := conn.Stats().Budget.OverBits
			mean, got := call(c.hz, 10*c.hz), conn.Stats().Budget
			if got.Limit != c.limit || got.FramesPerPayload != c.every || got.Redundancy != c.want {
				t.Errorf("%+v, want %+v", got, c)
			}
			if above := mean > 1.02*float64(c.limit); above != c.over || (got.OverBits > over+uint64(c.limit)/10) != c.over || math.Abs(got.BitsPerSecond/mean-1) > 0.2 {
				t.Errorf("%.0f bits a second above a limit of %d: %+v", mean, c.limit, got)
			}
			call(10, 600) // room
			if got := conn.Stats().Budget; !c.over && (got.FramesPerPayload != 1 || got.Redundancy < 3) {
				t.Errorf("with room for all: %+v", got)
			}
			time.Sleep(time.Second)
			if l := journal.Only(); l.Frames() != uint64(next) || l.Missed != 0 {
				t.Errorf("%d frames came, %d are missed", l.Frames(), l.Missed)
			}
		})
	}
}

// TestSharedBits measures the bits of two RPCs that are called in the same tick, without
// heartbeats, for lab/results.md.
func TestSharedBits(t *testing.T) {
	measures(t)
	type look struct {
		View  schema.Rotator `uplink:"bits=16"`
		Shoot bool
	}
	const ticks = 3600
	run := func(share bool, every int) (bits float64) {
		synctest.Test(t, func(t *testing.T) {
			network := linkedBy(t, 100*ms, simnet.Config{})
			srv := serve(t, network, ds.Config{}, ignores("Move"), handles("Look", func(*ds.Player, ds.Frame[look]) {}))
			conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive, FlushOnly: share}})
			moves := uplinktest.Bind(t, conn, "Move", client.BindConfig{Delay: uplinktest.Wait(every-1, 60)})
			aim, err := client.Bind[look](t.Context(), conn, "Look", client.BindConfig{Delay: uplinktest.Wait(every-1, 60)})
			uplinktest.Must(t, err)
			time.Sleep(time.Second)
			bytes := uint64(0)
			network.Watch(func(from, _ netip.AddrPort, b []byte) {
				if from.String() != uplinktest.Addr && uplinktest.Kind(b) == uplinktest.DataKind {
					bytes += uint64(len(b)) + endpoint.IPSize
				}
			})
			for n := range uint64(ticks) {
				m := uplinktest.MoveAt(1, n)
				uplinktest.Must(t, uplinktest.Sent(moves.Send(&m)))
				uplinktest.Must(t, uplinktest.Sent(aim.Send(&look{View: m.Rotation, Shoot: n%20 == 0})))
				if share {
					uplinktest.Must(t, conn.Flush())
				}
				time.Sleep(time.Second / 60)
			}
			uplinktest.Must(t, errors.Join(moves.Flush(), aim.Flush(), conn.Flush()))
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
	alone, shared, pairs, both := run(false, 1), run(true, 1), run(false, 2), run(true, 2)
	t.Logf("bits a tick of both RPCs: %.1f, in one datagram %.1f, in pairs %.1f, both %.1f", alone, shared, pairs, both)
	around := 8 * float64(endpoint.HeaderSize+transport.AES128GCM.Overhead()+endpoint.IPSize)
	// The bundle has a byte of type and one of length.
	if math.Abs(alone-shared-(around-2*8)) > 8 || alone-pairs < 0.9*around || both > shared*0.7 || both > pairs*0.75 {
		t.Errorf("a datagram has %.1f bits around payloads", around)
	}
}
